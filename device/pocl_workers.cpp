#include "device/pocl_workers.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

namespace ballast::device {
namespace {

bool may_use_all_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return false;
  return CPU_COUNT(&allowed) == sysconf(_SC_NPROCESSORS_CONF);
}

}  // namespace

void keep_pocl_workers_apart() {
  static std::once_flag once;
  std::call_once(once, [] {
    constexpr int kKeepsTheUsers = 0;
    if (may_use_all_cores()) setenv("POCL_AFFINITY", "1", kKeepsTheUsers);
  });
}

}  // namespace ballast::device
