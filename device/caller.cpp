#include "device/caller.h"

#include <pthread.h>

#include <cfenv>
#include <cstddef>

namespace ballast::device {
namespace {

constexpr uint64_t kCallerBytes = 32 << 10;
// Kernels keep blocks of their operands on the stack, as they may: a driver's workers have 8 MiB.
constexpr uintptr_t kStackBytes = 1 << 20;

struct Stack {
  uintptr_t lowest = ~uintptr_t{0}, end = 0;
};

// This thread's; none where the system does not say.
Stack find_stack() {
  pthread_attr_t attributes;
  void* lowest = nullptr;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  const int code = pthread_attr_getstack(&attributes, &lowest, &size);
  pthread_attr_destroy(&attributes);
  if (code != 0) return {};
  const auto begin = reinterpret_cast<uintptr_t>(lowest);
  return {begin, begin + size};
}

// False on the stack of a fiber, too.
bool has_stack() {
  thread_local const Stack stack = find_stack();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here > stack.lowest && here < stack.end && here - stack.lowest > kStackBytes;
}

}  // namespace

bool is_for_caller(uint64_t bytes) { return bytes > 0 && bytes <= kCallerBytes && has_stack(); }

void run_on_caller(Task task, const TaskWords& launch) {
  fenv_t environment;
  fegetenv(&environment);
  fesetenv(FE_DFL_ENV);
  alignas(64) std::byte shared[kTaskLocalBytes];
  const TaskCall call(task, launch.data(), launch.data() + launch.size(), shared);
  const uint64_t groups = launch[0] * launch[1] * launch[2];
  for (uint64_t group = 0; group < groups; ++group) call.run(group);
  fesetenv(&environment);
}

}  // namespace ballast::device
