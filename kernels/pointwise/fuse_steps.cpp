#include "kernels/pointwise/fuse_steps.h"

#include "kernels/pointwise/pointwise_recipe.h"

#include <string>

namespace ballast::kernels {

std::vector<Halide::Func> make_steps(const FusedPointwise& fused,
                                     const std::vector<Halide::Var>& vars,
                                     const std::function<Halide::Expr(uint32_t)>& input) {
  std::vector<Halide::Func> steps;
  for (const FusedStep& step : fused.steps) {
    std::vector<Halide::Expr> args;
    for (const FusedStep::Ref& ref : step.args) {
      args.push_back(ref.is_input ? input(ref.index) : Halide::Expr(steps[ref.index](vars)));
    }
    const DType dtype = step.type.dtype;
    steps.emplace_back("step" + std::to_string(steps.size()));
    steps.back()(vars) = rounded(apply_pointwise(step.op, dtype, args), dtype);
  }
  return steps;
}

}  // namespace ballast::kernels
