#include "kernels/registers.h"

namespace ballast::kernels {
namespace {

int64_t registers_of_this_cpu() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return kWideRegisters;
#endif
  return kNarrowRegisters;
}

thread_local int64_t scoped_bytes = 0;

}  // namespace

int64_t vector_register_bytes() {
  static const int64_t own = registers_of_this_cpu();
  return scoped_bytes > 0 ? scoped_bytes : own;
}

RegistersScope::RegistersScope(int64_t bytes) : before_(scoped_bytes) { scoped_bytes = bytes; }
RegistersScope::~RegistersScope() { scoped_bytes = before_; }

}  // namespace ballast::kernels
