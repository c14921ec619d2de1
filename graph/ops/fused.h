// The program text of the "fused", "fused_rows" and "fused_matmul" ops: written by the passes that
// make them, read by the ops.
#pragma once

#include "graph/op.h"

#include <string>
#include <vector>

namespace ballast::graph {

std::string fused_step_text(const std::string& op, const std::vector<std::string>& args,
                            DType dtype);
// What the chain's steps may be.
enum class FusedKind { kPointwise, kRows };
kernels::FusedPointwise parse_fused(FusedKind kind, const std::string& program,
                                    const std::vector<int64_t>& outputs,
                                    const std::vector<TensorType>& inputs);
// The same where the result is that of the last step.
kernels::FusedPointwise parse_chain(FusedKind kind, const std::string& program,
                                    const std::vector<TensorType>& inputs);

}  // namespace ballast::graph
