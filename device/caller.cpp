#include "device/caller.h"

#include <pthread.h>

#include <cstddef>

#if defined(__SSE__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace ballast::device {
namespace {

constexpr uint64_t kCallerBytes = 32 << 10;
// Kernels keep blocks of their operands on the stack, up to 2.5 MiB of them, as they may: a driver's
// workers have 8 MiB.
constexpr uintptr_t kStackBytes = 4 << 20;

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

// That of a new thread, as long as it exists; then what was before.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
#if defined(__SSE__)
  // Kernels compute in vector registers. libc's functions also save and load the x87 unit's state,
  // which takes as long as a small kernel.
  DefaultFloatEnvironment() : before_(_mm_getcsr()) { _mm_setcsr(kMasked); }
  ~DefaultFloatEnvironment() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned kMasked = 0x1f80;  // rounds to nearest, keeps denormals, no traps
  unsigned before_;
#else
  DefaultFloatEnvironment() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
#endif
};

}  // namespace

bool is_for_caller(uint64_t bytes) { return bytes > 0 && bytes <= kCallerBytes && has_stack(); }

void run_on_caller(Task task, const TaskWords& launch) {
  const DefaultFloatEnvironment environment;
  alignas(64) std::byte shared[kTaskLocalBytes];
  const TaskCall call(task, launch.data(), launch.data() + launch.size(), shared);
  const uint64_t groups = launch[0] * launch[1] * launch[2];
  for (uint64_t group = 0; group < groups; ++group) call.run(group);
}

}  // namespace ballast::device
