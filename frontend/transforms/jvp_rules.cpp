#include "frontend/transforms/jvp_rules.h"

#include "frontend/ops/ops.h"
#include "frontend/transforms/vjp_rules.h"

namespace ballast::jvp_rules {

std::vector<Tensor> multilinear(const JvpArgs& args) {
  std::vector<Tensor> sums(args.outputs.size());
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    if (!args.tangents[i].defined()) continue;
    std::vector<Tensor> operands = args.inputs;
    operands[i] = args.tangents[i];
    const std::vector<Tensor> terms = ops::call(args.primitive, operands, args.attrs);
    for (size_t o = 0; o < sums.size(); ++o) {
      sums[o] = sums[o].defined() ? sums[o] + terms[o] : terms[o];
    }
  }
  return sums;
}

std::vector<Tensor> linear(const JvpArgs& args) {
  std::vector<Tensor> operands = args.inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (is_float(operands[i].dtype())) {
      operands[i] = vjp_rules::or_zero(args.tangents[i], operands[i]);
    }
  }
  return ops::call(args.primitive, operands, args.attrs);
}

}  // namespace ballast::jvp_rules
