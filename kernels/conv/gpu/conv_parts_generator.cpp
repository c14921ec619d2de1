// The sum of parts of a convolution's sums (conv_blocks.cpp), in their order, and its epilogue, on
// GPUs.
#include "kernels/conv/conv_recipe.h"

#include <string>

namespace ballast::kernels {
namespace {

using namespace Halide;

class ConvParts : public Generator<ConvParts> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "gpu"};

  Input<Buffer<float, 4>> parts{"parts"};  // (pixel, c, n, part)
  EpilogueInputs<1, 3> epilogue;
  Output<Buffer<float, 3>> out{"out"};

  void generate() {
    constexpr int kItems = 64;
    const Var pixel("pixel"), c("c"), n("n"), item("item"), group("group");
    const RDom rest(1, parts.dim(3).extent() - 1, "rest");
    Func sum("sum");
    sum(pixel, c, n) = parts(pixel, c, n, 0);
    sum(pixel, c, n) = strict_float(sum(pixel, c, n) + parts(pixel, c, n, rest));
    out(pixel, c, n) =
        epilogue.with_relu(epilogue.with_terms(sum(pixel, c, n), {c}, {pixel, c, n}));
    Func store = out;
    epilogue.specialize(store, [&](Stage stage) {
      stage.split(pixel, group, item, kItems, TailStrategy::GuardWithIf)
          .gpu_blocks(group, c, n)
          .gpu_threads(item);
    });
    sum.compute_at(store, item).store_in(MemoryType::Register);
    set_mins(parts, out);
    parts.dim(0).set_stride(1);
    out.dim(0).set_stride(1);
    epilogue.set_layouts();
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvParts, conv_parts)
