#include "kernels/plan/registers.h"

namespace ballast::kernels {
namespace {

int64_t registers_of_this_cpu() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return kWideRegisters;
#endif
  return kNarrowRegisters;
}

bool is_zen_4() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amdfam19h") && __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

thread_local int64_t scoped_bytes = 0;

}  // namespace

int64_t vector_register_bytes() {
  static const int64_t own = registers_of_this_cpu();
  return scoped_bytes > 0 ? scoped_bytes : own;
}

bool halves_wide_registers() {
  static const bool halves = is_zen_4();
  return halves && scoped_bytes == 0;
}

RegistersScope::RegistersScope(int64_t bytes) : before_(scoped_bytes) { scoped_bytes = bytes; }
RegistersScope::~RegistersScope() { scoped_bytes = before_; }

}  // namespace ballast::kernels
