// Optimizer steps: algorithms, then the elementwise schedule. All outputs may be inputs' buffers.
#include "kernels/pointwise/elementwise_generator.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

class SgdGenerator : public ElementwiseGenerator<SgdGenerator> {
 public:
  Input<Buffer<>> param{"param", Float(32), 4};
  Input<Buffer<>> grad{"grad", Float(32), 4};
  Input<Buffer<>> rate{"rate", Float(32), 4};
  Input<int> chunk_x{"chunk_x"};
  Input<int> chunk_y{"chunk_y"};
  Output<Buffer<>> new_param{"new_param", Float(32), 4};

  void generate() {
    const auto at = nest_.vars();
    new_param(at) = strict_float(param(at) - rate(at) * grad(at));
  }

  void schedule() {
    schedule_elementwise(new_param, {new_param}, {&param, &grad, &rate}, chunk_x, chunk_y);
  }
};

class MomentumGenerator : public ElementwiseGenerator<MomentumGenerator> {
 public:
  GeneratorParam<bool> nesterov{"nesterov", false};
  Input<Buffer<>> param{"param", Float(32), 4};
  Input<Buffer<>> accum{"accum", Float(32), 4};
  Input<Buffer<>> grad{"grad", Float(32), 4};
  Input<Buffer<>> rate{"rate", Float(32), 4};
  Input<Buffer<>> momentum{"momentum", Float(32), 4};
  Input<int> chunk_x{"chunk_x"};
  Input<int> chunk_y{"chunk_y"};
  Output<Func> result{"result", {Float(32), Float(32)}, 4};

  void generate() {
    const auto at = nest_.vars();
    const Expr new_accum = momentum(at) * accum(at) + grad(at);
    const Expr step = nesterov ? grad(at) + momentum(at) * new_accum : new_accum;
    outputs_ =
        make_outputs(nest_, {strict_float(param(at) - rate(at) * step), strict_float(new_accum)});
    result = outputs_.out;
  }

  void schedule() {
    schedule_elementwise(outputs_.out, outputs_.out.output_buffers(),
                         {&param, &accum, &grad, &rate, &momentum}, chunk_x, chunk_y);
    schedule_values(outputs_, nest_);
  }

 private:
  Outputs outputs_;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::SgdGenerator, sgd)
HALIDE_REGISTER_GENERATOR(ballast::kernels::MomentumGenerator, momentum)
