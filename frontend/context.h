// Process-wide settings: execution mode, jit level, device. Thread-safe; read when a function is
// compiled, so a change affects later compilations only.
#pragma once

#include "frontend/backend.h"

#include <optional>
#include <string>

namespace ballast {

enum class Mode {
  kPyNative,  // op by op, unless jitted
  kGraph,     // every outermost nn::Cell call is compiled
};
enum class JitLevel : int32_t {
  kO0 = 1,  // kernel by kernel
  kO1 = 2,  // simplified and fused
};

// What set_context changes; unset fields stay as they are.
struct ContextOptions {
  std::optional<Mode> mode;
  std::optional<JitLevel> jit_level;  // first value: $BALLAST_JIT_LEVEL ("O0", "O1"), else O1
  std::optional<std::string> device;  // selector as for set_device; opened with `device_options`
  DeviceOptions device_options;
};

void set_context(const ContextOptions& options);
Mode execution_mode();
JitLevel default_jit_level();

}  // namespace ballast
