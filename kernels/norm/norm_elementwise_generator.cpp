// The parts of the normalisations that touch every element on its own: applying moments, and the
// gradient once its sums are known. Up to five nested loops with any strides, as in
// elementwise_generator.h; the operands that repeat have stride 0.
#include "kernels/norm/norm_limits.h"
#include "kernels/pointwise/elementwise_generator.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

// Patterns: along the innermost dimension, what statistics and parameters do there: 00 for
// channels of images, 01 for layers, 11 for channels of vectors.
template <class Derived>
class NormElementwise : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  // "rms": no mean and no beta. "inference": the statistics are a mean and a variance.
  GeneratorParam<std::string> kind{"kind", "layer"};
  GeneratorInput<int> chunk_x{"chunk_x"};
  GeneratorInput<int> chunk_y{"chunk_y"};

 protected:
  using Operand = GeneratorInput<Buffer<>>;
  Nest nest_ = make_nest(kNormLoops);

  bool is_rms() const { return kind.value() == "rms"; }
  Operand& tensor(const std::string& name) { return add(name, tensors_); }
  Operand& statistic(const std::string& name) { return add(name, statistics_); }
  Operand& parameter(const std::string& name) { return add(name, parameters_); }
  Expr at(Operand* operand) { return (*operand)(nest_.vars()); }

  void schedule_norm(GeneratorOutput<Buffer<>>& out) {
    const bool is_gpu = device_class.value() == "gpu";
    for (int d = 0; d < kNormLoops; ++d) {
      out.dim(d).set_min(0);
      for (const auto* group : {&tensors_, &statistics_, &parameters_}) {
        for (Operand* operand : *group) operand->dim(d).set_min(0).set_stride(Expr());
      }
    }
    Func func = out;
    schedule_nest(func, nest_, chunk_x, chunk_y, is_gpu);
    const Expr lanes = out.dim(0).extent();
    for (const std::string pattern : {"00", "01", "11"}) {
      const auto fits = [&](int dimension) {
        Expr condition = lanes == (dimension == 0 ? kLanes : 1);
        const auto require = [&](const std::vector<Operand*>& group, int stride) {
          for (Operand* operand : group) {
            condition = condition && operand->dim(dimension).stride() == stride;
          }
        };
        require(tensors_, 1);
        require(statistics_, pattern[0] - '0');
        require(parameters_, pattern[1] - '0');
        return condition;
      };
      if (!is_gpu) func.specialize(fits(0)).vectorize(nest_.lane, kLanes);
      func.specialize(fits(1));
    }
    func.specialize(lanes == 1);
  }

 private:
  Operand& add(const std::string& name, std::vector<Operand*>& group) {
    group.push_back(this->template add_input<Buffer<>>(name, Float(32), kNormLoops));
    return *group.back();
  }

  std::vector<Operand*> tensors_, statistics_, parameters_;
};

// y = (x - mean) rstd gamma + beta
class NormApply : public NormElementwise<NormApply> {
 public:
  Input<float> epsilon{"epsilon"};
  Output<Buffer<>> y{"y", Float(32), kNormLoops};

  void configure() {
    x_ = &tensor("x");
    gamma_ = &parameter("gamma");
    if (!is_rms()) beta_ = &parameter("beta");
    if (!is_rms()) mean_ = &statistic("mean");
    rstd_ = &statistic("rstd");
  }
  void generate() {
    const Expr distance = is_rms() ? at(x_) : at(x_) - at(mean_);
    const bool is_variance = kind.value() == "inference";
    const Expr rstd = is_variance ? 1.0f / sqrt(at(rstd_) + epsilon) : at(rstd_);
    const Expr scaled = distance * rstd * at(gamma_);
    y(nest_.vars()) = strict_float(is_rms() ? scaled : scaled + at(beta_));
    schedule_norm(y);
  }

 private:
  Operand *x_ = nullptr, *gamma_ = nullptr, *beta_ = nullptr, *mean_ = nullptr, *rstd_ = nullptr;
};

// dx = rstd (dy gamma - (slopes + x' products) / count), x' = (x - mean) rstd, with the sums over
// what shares these moments: slopes of dy gamma, products of dy gamma x'.
class NormDx : public NormElementwise<NormDx> {
 public:
  Input<float> count{"count"};
  Output<Buffer<>> dx{"dx", Float(32), kNormLoops};

  void configure() {
    dy_ = &tensor("dy");
    x_ = &tensor("x");
    gamma_ = &parameter("gamma");
    rstd_ = &statistic("rstd");
    products_ = &statistic("products");
    if (!is_rms()) mean_ = &statistic("mean");
    if (!is_rms()) slopes_ = &statistic("slopes");
  }
  void generate() {
    const Expr distance = is_rms() ? at(x_) : at(x_) - at(mean_);
    const Expr part = distance * at(rstd_) * at(products_);
    const Expr shared = is_rms() ? part : at(slopes_) + part;
    dx(nest_.vars()) = strict_float((at(dy_) * at(gamma_) - shared / count) * at(rstd_));
    schedule_norm(dx);
  }

 private:
  Operand *dy_ = nullptr, *x_ = nullptr, *gamma_ = nullptr, *rstd_ = nullptr, *products_ = nullptr,
          *mean_ = nullptr, *slopes_ = nullptr;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::NormApply, norm_apply)
HALIDE_REGISTER_GENERATOR(ballast::kernels::NormDx, norm_dx)
