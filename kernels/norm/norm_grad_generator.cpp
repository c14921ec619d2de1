// The parts of the normalisations' gradients that fold lines, and those of whole rows in one
// kernel.
#include "kernels/norm/norm_limits.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/lanes.h"
#include "kernels/reduce/axis_generator.h"
#include "kernels/reduce/prefetch.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

// What the gradients of a line's moments need: the sums over the line of dy' and of dy' x', where
// x' = (x - mean) rstd; dy' is dy, or for layers dy gamma(r). "rms" needs the second sum only and
// has no mean; "batch" has no gamma, nor has "channels", whose line l has statistic l / each %
// count.
template <class Derived>
class GradientSums : public AxisGenerator<Derived> {
 public:
  using Base = AxisGenerator<Derived>;
  Halide::GeneratorParam<std::string> kind{"kind", "layer"};
  Halide::GeneratorInput<Buffer<>> dy{"dy", Float(32)};
  Halide::GeneratorInput<Buffer<>> x{"x", Float(32)};
  Halide::GeneratorInput<Buffer<>> rstd{"rstd", Float(32)};
  Halide::GeneratorInput<int> rows_per_group{"rows_per_group"};

 protected:
  bool has_mean() const { return kind.value() != "rms"; }
  bool are_channels() const { return kind.value() == "channels"; }
  bool has_gamma() const { return kind.value() != "batch" && !are_channels(); }

  void add_inputs(const std::vector<GeneratorOutput<Buffer<>>*>& tensors) {
    if (has_gamma()) gamma_ = this->template add_input<Buffer<>>("gamma", Float(32), 1);
    this->set_tensors({&dy, &x}, tensors);
    this->set_per_line({&rstd}, {});
    if (has_mean()) mean_ = this->add_line_input("mean");
    if (are_channels()) each_ = this->template add_input<int>("each");
    if (are_channels()) count_ = this->template add_input<int>("count");
  }
  std::vector<Expr> statistic(const AxisNest& nest) const {
    if (!are_channels()) return nest.place();
    const Expr number = nest.place()[0] / *each_ % *count_;
    return nest.is_rows ? std::vector<Expr>{number} : std::vector<Expr>{number, 0};
  }
  Expr distance(const AxisNest& nest) {
    const Expr value = x(nest.at(nest.r));
    return has_mean() ? value - (*mean_)(statistic(nest)) : value;
  }
  Expr normal(const AxisNest& nest) { return strict_float(distance(nest) * rstd(statistic(nest))); }
  Expr slope(const AxisNest& nest) {
    const Expr value = dy(nest.at(nest.r));
    return has_gamma() ? strict_float(value * (*gamma_)(nest.r)) : value;
  }
  Fold make_sums(const AxisNest& nest) {
    std::vector<Term> terms = {{FoldKind::kSum, strict_float(slope(nest) * normal(nest))}};
    if (has_mean()) terms.push_back({FoldKind::kSum, slope(nest)});
    if (has_gamma()) gamma_->dim(0).set_min(0);
    return Fold(nest, "sums", terms);
  }

 private:
  GeneratorInput<Buffer<>>* gamma_ = nullptr;
  GeneratorInput<Buffer<>>* mean_ = nullptr;
  GeneratorInput<int>*each_ = nullptr, *count_ = nullptr;
};

class NormSums : public GradientSums<NormSums> {
 public:
  void configure() {
    add_inputs({});
    result_ = add_output<Func>("result", std::vector<Type>(has_mean() ? 2 : 1, Float(32)),
                               is_rows() ? 1 : 2);
  }
  void generate() {
    AxisNest nest = make_nest();
    Fold sums = make_sums(nest);
    std::vector<Expr> values = {sums[0]};
    if (has_mean()) values.push_back(sums[1]);
    Func result("result");
    result(nest.place_vars()) = Tuple(values);
    *result_ = result;
    AxisSchedule schedule = make_schedule(nest, result, rows_per_group);
    set_first_mins(result);
    schedule.keep(sums);
  }

 private:
  GeneratorOutput<Func>* result_ = nullptr;
};

// dx = rstd (dy' - mean(dy') - x' mean(dy' x')) for rows; and on CPUs of each group of rows, which
// is near at hand then, the sums of dy x' and dy, parts of dgamma and dbeta. Rows have there at
// least kNormGradBlock elements.
class LayerNormGrad : public GradientSums<LayerNormGrad> {
 public:
  Output<Buffer<>> dx{"dx", Float(32)};

  void configure() {
    add_inputs({&dx});
    if (is_gpu()) return;
    result_ = add_output<Func>("result", std::vector<Type>(has_mean() ? 2 : 1, Float(32)), 2);
  }
  void generate() {
    AxisNest nest = make_nest();
    Fold sums = make_sums(nest);
    // dx = (dy' - slope - (x - mean) product) rstd
    Func means("means");
    const Expr count = cast<float>(nest.length);
    std::vector<Expr> values = {strict_float(sums[0] / count * rstd(nest.row))};
    if (has_mean()) values.push_back(sums[1] / count);
    means(nest.row) = Tuple(values);
    const std::vector<Expr> mean = values_at(means, {nest.row});
    Expr value = slope(nest);
    if (has_mean()) value = value - mean[1];
    value = strict_float(fma_f32(-1.0f * distance(nest), mean[0], value) * rstd(nest.row));
    for (const Expr& input : {dy(nest.at(nest.r)), x(nest.at(nest.r))}) {
      value = with_next_row(nest, value, input, x.dim(1).extent());
    }
    dx(nest.at_vars()) = value;
    AxisSchedule schedule = make_schedule(nest, dx, rows_per_group);
    schedule.keep(sums);
    schedule.keep(means);
    if (!is_gpu()) add_parameter_sums(nest, schedule);
  }

 private:
  void add_parameter_sums(const AxisNest& nest, AxisSchedule& schedule) {
    const Var i("i"), group = nest.row, block("block"), inner("inner");
    const Expr rows = x.dim(1).extent();
    RDom steps(0, rows_per_group, "steps");
    const Expr row = group * rows_per_group + steps;
    steps.where(row < rows);
    const auto at = [&](const Expr& value) {
      return substitute({{nest.r.name(), i}, {nest.row.name(), row}}, value);
    };
    std::vector<Expr> zeros = {0.0f},
                      terms = {at(strict_float(dy(nest.r, nest.row) * normal(nest)))};
    if (has_mean()) {
      zeros.push_back(0.0f);
      terms.push_back(at(dy(nest.r, nest.row)));
    }
    Func total("total"), result("result");
    total(i, group) = Tuple(zeros);
    const std::vector<Expr> before = values_at(total, {i, group});
    for (size_t k = 0; k < terms.size(); ++k) terms[k] = strict_float(before[k] + terms[k]);
    total(i, group) = Tuple(terms);
    result(i, group) = Tuple(values_at(total, {i, group}));
    *result_ = result;

    set_first_mins(result);
    result.split(i, block, inner, kNormGradBlock, TailStrategy::ShiftInwards)
        .vectorize(inner, kLanes)
        .unroll(inner);
    total.compute_at(result, block).store_in(MemoryType::Stack);
    total.bound_storage(i, kNormGradBlock).bound_storage(group, 1).vectorize(i, kLanes).unroll(i);
    total.update().reorder(i, steps).vectorize(i, kLanes).unroll(i);
    schedule.add_by_group(result, (rows + rows_per_group - 1) / rows_per_group);
  }

  GeneratorOutput<Func>* result_ = nullptr;
};

// dgamma and dbeta of a layer: the sums of dy x' and dy over `chunk` rows each; x(i, row), one row
// after the other, with vectors along i.
class NormParameterSums : public AxisGenerator<NormParameterSums> {
 public:
  GeneratorParam<bool> is_rms{"is_rms", false};
  Input<Buffer<>> dy{"dy", Float(32), 2};
  Input<Buffer<>> x{"x", Float(32), 2};
  Input<Buffer<>> rstd{"rstd", Float(32), 1};
  Input<int> chunk{"chunk"};

  void configure() {
    if (!is_rms) mean_ = add_input<Buffer<>>("mean", Float(32), 1);
    result_ = add_output<Func>("result", std::vector<Type>(is_rms ? 1 : 2, Float(32)), 2);
  }
  void generate() {
    AxisNest nest("columns", is_gpu());
    nest.length = chunk;
    const Expr step = nest.o * chunk + nest.r, rows = x.dim(1).extent();
    const Expr row = min(step, rows - 1);
    Expr distance = x(nest.i, row);
    if (!is_rms) distance = distance - (*mean_)(row);
    const Expr slope = select(step < rows, dy(nest.i, row), 0.0f);
    std::vector<Term> terms = {
        {FoldKind::kSum, strict_float(slope * strict_float(distance * rstd(row)))}};
    if (!is_rms) terms.push_back({FoldKind::kSum, slope});
    Fold sums(nest, "sums", terms);
    std::vector<Expr> values = {sums[0]};
    if (!is_rms) values.push_back(sums[1]);
    Func result("result");
    result(nest.place_vars()) = Tuple(values);
    *result_ = result;
    AxisSchedule schedule(nest, result, x.dim(0).extent(), Internal::const_true());
    for (In* input : std::vector<In*>{&dy, &x, &rstd, mean_}) {
      if (input != nullptr) set_mins(*input);
    }
    set_first_mins(result);
    schedule.keep(sums);
  }

 private:
  In* mean_ = nullptr;
  GeneratorOutput<Func>* result_ = nullptr;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::NormSums, norm_sums)
HALIDE_REGISTER_GENERATOR(ballast::kernels::LayerNormGrad, layer_norm_grad)
HALIDE_REGISTER_GENERATOR(ballast::kernels::NormParameterSums, norm_parameter_sums)
