// Process-wide settings: execution mode, jit level, device. Thread-safe. Read at every call: a
// function that was jitted under another level or device is compiled anew, and once for each.
#pragma once

#include "frontend/backend/backend.h"

#include <optional>
#include <string>

namespace ballast {

// Whether what is called outside of any jit runs op by op (the default), or compiled, as if it had
// been jitted: calls of cells, optimizers, and functions made by grad and value_and_grad. Bare ops
// and other functions run op by op in both modes.
enum class Mode {
  kPyNative,
  kGraph,
};
inline constexpr Mode PYNATIVE_MODE = Mode::kPyNative;
inline constexpr Mode GRAPH_MODE = Mode::kGraph;

enum class JitLevel : int32_t {
  kO0 = 1,  // kernel by kernel
  kO1 = 2,  // simplified and fused
};

// What set_context changes; unset fields stay as they are. set_context({GRAPH_MODE}).
struct ContextOptions {
  std::optional<Mode> mode = {};
  std::optional<JitLevel> jit_level = {};  // first value: $BALLAST_JIT_LEVEL ("O0", "O1"), else O1
  std::optional<std::string> device = {};  // selector as for set_device; opened with the options
  DeviceOptions device_options = {};
};

void set_context(const ContextOptions& options);
Mode execution_mode();
JitLevel default_jit_level();

}  // namespace ballast
