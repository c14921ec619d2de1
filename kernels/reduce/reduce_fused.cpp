#include "kernels/reduce/reduce_fused.h"

#include "kernels/pointwise/fuse.h"
#include "kernels/pointwise/fuse_steps.h"
#include "kernels/recipe/layout.h"
#include "kernels/reduce/reduce_kernels.h"

namespace ballast::kernels {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::ImageParam;

ImageParam add_input(JitKernel& kernel, const std::string& name, const Operand& operand) {
  ImageParam input(storage_type(operand.dtype), static_cast<int>(operand.extents.size()), name);
  set_mins(input);
  input.dim(0).set_stride(static_cast<int>(operand.strides[0]));
  kernel.arguments.push_back(input);
  return input;
}

template <class T>
void bind_scalar(JitKernel& kernel, Halide::Internal::AbstractGenerator& generator,
                 const std::string& name) {
  const Halide::Param<T> param(name);
  kernel.arguments.push_back(param);
  generator.bind_input(name, {Expr(param)});
}

bool are_rows(const FusedReduceOperands& operands) { return operands.in.extents.size() == 2; }

template <class Kernel>
JitKernel build(DeviceClass device_class, const std::string& kind, const FusedPointwise& chain,
                const FusedReduceOperands& operands) {
  JitKernel kernel;
  const auto generator = Kernel::create(Halide::GeneratorContext(jit_target(false)));
  Halide::Internal::AbstractGenerator& base = *generator;
  base.set_generatorparam_value("device_class", device_class == DeviceClass::kCpu ? "cpu" : "gpu");
  base.set_generatorparam_value("kind", kind);
  base.set_generatorparam_value("dtype", name_of(operands.in.dtype));
  base.bind_input("in", {add_input(kernel, "whole", operands.in).parameter()});
  std::vector<ImageParam> inputs;
  for (const Operand& operand : operands.of_chain) {
    inputs.push_back(add_input(kernel, "in" + std::to_string(inputs.size()), operand));
  }
  bind_scalar<int>(kernel, base, "chunk");
  bind_scalar<float>(kernel, base, "divisor");
  bind_scalar<int>(kernel, base, are_rows(operands) ? "rows_per_group" : "outer_per_group");
  std::vector<Halide::Var> vars;
  for (size_t d = 0; d < operands.in.extents.size(); ++d)
    vars.emplace_back("v" + std::to_string(d));
  const Func last = make_steps(chain, vars, [&](uint32_t input) {
                      return loaded(inputs[input](vars), chain.inputs[input].dtype);
                    }).back();
  generator->chain = [&](const std::vector<Expr>& at) {
    return stored(last(at), operands.in.dtype);
  };
  kernel.func = base.build_pipeline().outputs()[0];
  return kernel;
}

}  // namespace

void record_fused_reduce(Recorder& recorder, DeviceClass device_class, const std::string& kind,
                         const FusedPointwise& chain, const FusedReduceOperands& operands) {
  const bool is_rows = are_rows(operands);
  std::vector<HostArg> args = {operands.in};
  args.insert(args.end(), operands.of_chain.begin(), operands.of_chain.end());
  args.insert(args.end(), operands.scalars.begin(), operands.scalars.end());
  args.emplace_back(operands.out);
  record_jit(
      recorder,
      [&] {
        return is_rows ? build<ReduceRows>(device_class, kind, chain, operands)
                       : build<ReduceColumns>(device_class, kind, chain, operands);
      },
      fmt::format("{}_reduce_{}_{}", label_of(chain), is_rows ? "rows" : "columns", kind), args);
}

}  // namespace ballast::kernels
