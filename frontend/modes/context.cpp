#include "frontend/modes/context.h"

#include "frontend/tensor/error.h"

#include <atomic>
#include <cstdlib>

namespace ballast {

namespace {

std::atomic<Mode> mode{Mode::kPyNative};

JitLevel level_of_environment() {
  const char* text = std::getenv("BALLAST_JIT_LEVEL");
  std::string level = text ? text : "O1";
  if (level == "O0") return JitLevel::kO0;
  if (level == "O1" || level.empty()) return JitLevel::kO1;
  fail(BALLAST_INVALID_ARGUMENT, "[set_context] BALLAST_JIT_LEVEL is {}, expected O0 or O1", level);
}

std::atomic<JitLevel>& jit_level() {
  static std::atomic<JitLevel> level{level_of_environment()};
  return level;
}

}  // namespace

void set_context(const ContextOptions& options) {
  if (options.device) set_device(*options.device, options.device_options);
  if (options.mode) mode = *options.mode;
  if (options.jit_level) jit_level() = *options.jit_level;
}

Mode execution_mode() { return mode; }

JitLevel default_jit_level() { return jit_level(); }

}  // namespace ballast
