// Sums over lines for the gradients of normalisations on GPUs, two at a time: those of dy x' and of
// dy, which earlier launches leave by line.
#include "kernels/recipe/layout.h"

#include <Halide.h>

namespace ballast::kernels {
namespace {

using namespace Halide;

// Over r: products(i, r), slopes(i, r). A work-group takes kWidth of i, for each of which kParts
// items add up every kParts-th line. is_weighted: the sums times gamma(i) too.
class NormLineSums : public Generator<NormLineSums> {
 public:
  static constexpr int kWidth = 16, kParts = 16;
  GeneratorParam<std::string> device_class{"device_class", "gpu"};
  GeneratorParam<bool> is_weighted{"is_weighted", false};
  Input<Buffer<float, 2>> products{"products"}, slopes{"slopes"};

  void configure() {
    if (is_weighted) gamma_ = add_input<Buffer<float, 1>>("gamma");
    result_ = add_output<Func>("result", std::vector<Type>(is_weighted ? 4 : 2, Float(32)), 1);
  }

  void generate() {
    // Algorithm.
    const Expr lines = products.dim(1).extent(), column = min(i, products.dim(0).extent() - 1);
    own(i, part) = Tuple(0.0f, 0.0f);
    RDom all(0, (lines + kParts - 1) / kParts, "all");
    const Expr line = all * kParts + part;
    const auto added = [&](int which, const Expr& value) {
      return strict_float(own(i, part)[which] + select(line < lines, value, 0.0f));
    };
    const Expr read = min(line, lines - 1);
    own(i, part) = Tuple(added(0, products(column, read)), added(1, slopes(column, read)));
    parts(i, part) = Tuple(own(i, part)[0], own(i, part)[1]);
    std::vector<Expr> sums = {parts(i, 0)[0], parts(i, 0)[1]};
    for (int k = 1; k < kParts; ++k) {
      for (int which : {0, 1}) sums[which] = strict_float(sums[which] + parts(i, k)[which]);
    }
    if (is_weighted) {
      for (int which : {0, 1}) sums.push_back(strict_float(sums[which] * (*gamma_)(i)));
    }
    Func result("result");
    result(i) = Tuple(sums);
    *result_ = result;

    // Schedule.
    const Var block("block");
    set_mins(products, slopes);
    if (is_weighted) gamma_->dim(0).set_min(0);
    result.output_buffers()[0].dim(0).set_min(0);
    result.split(i, block, i, kWidth, TailStrategy::GuardWithIf).gpu_blocks(block).gpu_threads(i);
    parts.compute_at(result, block).store_in(MemoryType::GPUShared);
    parts.bound_extent(i, kWidth).bound(part, 0, kParts).gpu_threads(i, part);
    own.compute_at(parts, i).store_in(MemoryType::Stack);
  }

 private:
  Var i{"i"}, part{"part"};
  Func own{"own"}, parts{"parts"};
  GeneratorInput<Buffer<float, 1>>* gamma_ = nullptr;
  GeneratorOutput<Func>* result_ = nullptr;
};

// Of groups of channels: the sums of products(c, g, b) gamma(c, g) and of slopes(c, g, b) gamma(c,
// g) over the few channels c of each group g.
class NormGroupSums : public Generator<NormGroupSums> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "gpu"};
  Input<Buffer<float, 3>> products{"products"}, slopes{"slopes"};
  Input<Buffer<float, 2>> gamma{"gamma"};
  Output<Func> result{"result", {Float(32), Float(32)}, 2};

  void generate() {
    RDom c(0, products.dim(0).extent(), "c");
    total(g, b) = Tuple(0.0f, 0.0f);
    const auto added = [&](int which, const Expr& value) {
      return strict_float(total(g, b)[which] + strict_float(value * gamma(c, g)));
    };
    total(g, b) = Tuple(added(0, products(c, g, b)), added(1, slopes(c, g, b)));
    result(g, b) = Tuple(total(g, b)[0], total(g, b)[1]);

    set_mins(products, slopes, gamma);
    Func func = result;
    for (int d : {0, 1}) func.output_buffers()[0].dim(d).set_min(0);
    const Var go("go"), gi("gi"), bo("bo"), bi("bi");
    func.gpu_tile(g, b, go, bo, gi, bi, 16, 4, TailStrategy::GuardWithIf);
    total.compute_at(func, gi).store_in(MemoryType::Stack);
  }

 private:
  Var g{"g"}, b{"b"};
  Func total{"total"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::NormLineSums, norm_line_sums)
HALIDE_REGISTER_GENERATOR(ballast::kernels::NormGroupSums, norm_group_sums)
