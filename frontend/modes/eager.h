// The eager interpreter: ops run as they are called, on the device's default stream, without
// waiting.
#pragma once

#include "frontend/program/program.h"

#include <string>
#include <vector>

namespace ballast {

// One primitive: by its own rule, as a view, or by the plugin.
std::vector<Tensor> run_eagerly(const std::string& primitive, const std::vector<Tensor>& inputs,
                                const Attrs& attrs, const Bodies& bodies);

// One op of the plugin, on the device of its first input, else the current one.
std::vector<Tensor> launch_op(const std::string& name, const std::vector<Tensor>& inputs,
                              const Attrs& attrs);

}  // namespace ballast
