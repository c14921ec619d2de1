// The program text of the "fused" op: written by the fuse_pointwise pass, read by the op.
#pragma once

#include "graph/op.h"

#include <string>
#include <vector>

namespace ballast::graph {

std::string fused_step_text(const std::string& op, const std::vector<std::string>& args,
                            DType dtype);
kernels::FusedPointwise parse_fused(const std::string& program, const std::vector<int64_t>& outputs,
                                    const std::vector<TensorType>& inputs);

}  // namespace ballast::graph
