// The parts of the normalisations that fold lines: moments, the sums of their gradients, and for
// CPUs whole layers in one kernel. Variances are sums of squared distances from the mean, computed
// in a second pass over a line that is in the cache by then; never E[x^2] - E[x]^2.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/reduce/axis_generator.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

Expr inverse_root(const Expr& x) { return 1.0f / sqrt(x); }

// One line's mean, and what `kind` says: "layer" 1 / sqrt(variance + epsilon), "batch" the sum of
// squared distances from the mean, "rms" 1 / sqrt(mean of squares + epsilon), with 0 for the mean.
class MomentsGenerator : public AxisGenerator<MomentsGenerator> {
 public:
  GeneratorParam<std::string> kind{"kind", "layer"};
  Input<Buffer<>> x{"x", Float(32)};
  Input<float> epsilon{"epsilon"};
  Input<int> rows_per_group{"rows_per_group"};
  Output<Func> result{"result", {Float(32), Float(32)}};

  void configure() {
    set_tensors({&x}, {});
    result.set_dimensions(is_rows() ? 1 : 2);
  }

  void generate() {
    AxisNest nest = make_nest();
    const bool has_mean = kind.value() != "rms";
    const Expr value = x(nest.at(nest.r)), count = cast<float>(nest.length);
    Fold total(nest, "total", {{FoldKind::kSum, value}});
    Func mean("mean");
    mean(nest.place_vars()) = has_mean ? strict_float(total[0] / count) : Expr(0.0f);
    const Expr distance = has_mean ? value - mean(nest.place()) : value;
    Fold squares(nest, "squares", {{FoldKind::kSum, strict_float(distance * distance)}});
    const Expr second =
        kind.value() == "batch" ? squares[0] : inverse_root(squares[0] / count + epsilon);
    result(nest.place_vars()) = Tuple(Expr(mean(nest.place())), second);
    AxisSchedule schedule = make_schedule(nest, result, rows_per_group);
    set_first_mins(Func(result));
    if (has_mean) schedule.keep(total);
    schedule.keep(mean);
    schedule.keep(squares);
  }
};

// y = (x - mean) rstd gamma + beta for rows on CPUs, with the moments, in one pass over memory.
class LayerNorm : public AxisGenerator<LayerNorm> {
 public:
  GeneratorParam<bool> is_rms{"is_rms", false};  // no mean and no beta
  Input<Buffer<>> x{"x", Float(32)};
  Input<Buffer<>> gamma{"gamma", Float(32), 1};
  Input<float> epsilon{"epsilon"};
  Input<int> rows_per_group{"rows_per_group"};
  Output<Buffer<>> y{"y", Float(32)};

  void configure() {
    set_tensors({&x}, {&y});
    if (!is_rms) {
      beta_ = add_input<Buffer<>>("beta", Float(32), 1);
      mean_ = add_output<Buffer<>>("mean", Float(32), 1);
    }
    rstd_ = add_output<Buffer<>>("rstd", Float(32), 1);
  }

  void generate() {
    AxisNest nest = make_nest();
    const Expr value = x(nest.r, nest.row), count = cast<float>(nest.length);
    Fold total(nest, "total", {{FoldKind::kSum, value}});
    Func mean("line_mean"), rstd("line_rstd");
    mean(nest.row) = strict_float(total[0] / count);
    const Expr distance = is_rms ? value : value - mean(nest.row);
    Fold squares(nest, "squares", {{FoldKind::kSum, strict_float(distance * distance)}});
    rstd(nest.row) = inverse_root(squares[0] / count + epsilon);
    Expr result = strict_float(distance * rstd(nest.row) * gamma(nest.r));
    if (!is_rms) result = strict_float(result + (*beta_)(nest.r));
    y(nest.r, nest.row) = result;
    (*rstd_)(nest.row) = rstd(nest.row);
    if (!is_rms) (*mean_)(nest.row) = mean(nest.row);

    AxisSchedule schedule = make_schedule(nest, y, rows_per_group);
    gamma.dim(0).set_min(0);
    if (!is_rms) {
      beta_->dim(0).set_min(0);
      schedule.keep(total);
      schedule.keep(mean);
      mean_->dim(0).set_bounds(0, y.dim(1).extent());
      schedule.add_output(*mean_, rows_per_group);
    }
    schedule.keep(squares);
    schedule.keep(rstd);
    rstd_->dim(0).set_bounds(0, y.dim(1).extent());
    schedule.add_output(*rstd_, rows_per_group);
  }

 private:
  In* beta_ = nullptr;
  Out* mean_ = nullptr;
  Out* rstd_ = nullptr;
};

// What the gradients of a line's moments need: the sums over the line of dy' and of dy' x', where
// x' = (x - mean) rstd; dy' is dy, or for layers dy gamma(r). "rms" needs the second sum only and
// has no mean; "batch" has no gamma.
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
  bool has_gamma() const { return kind.value() != "batch"; }

  void add_inputs(const std::vector<GeneratorOutput<Buffer<>>*>& tensors) {
    if (has_gamma()) gamma_ = this->template add_input<Buffer<>>("gamma", Float(32), 1);
    this->set_tensors({&dy, &x}, tensors);
    this->set_per_line({&rstd}, {});
    if (has_mean()) mean_ = this->add_line_input("mean");
  }
  Expr normal(const AxisNest& nest) {
    Expr distance = x(nest.at(nest.r));
    if (has_mean()) distance = distance - (*mean_)(nest.place());
    return strict_float(distance * rstd(nest.place()));
  }
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

// dx = rstd (dy' - mean(dy') - x' mean(dy' x')) for rows on CPUs.
class LayerNormDx : public GradientSums<LayerNormDx> {
 public:
  Output<Buffer<>> dx{"dx", Float(32)};

  void configure() { add_inputs({&dx}); }
  void generate() {
    AxisNest nest = make_nest();
    Fold sums = make_sums(nest);
    Func means("means");
    std::vector<Expr> values = {sums[0] / cast<float>(nest.length)};
    if (has_mean()) values.push_back(sums[1] / cast<float>(nest.length));
    means(nest.row) = Tuple(values);
    const auto mean = [&](int k) {
      return values.size() == 1 ? Expr(means(nest.row)) : Expr(means(nest.row)[k]);
    };
    Expr value = slope(nest) - normal(nest) * mean(0);
    if (has_mean()) value = value - mean(1);
    dx(nest.at_vars()) = strict_float(value * rstd(nest.row));
    AxisSchedule schedule = make_schedule(nest, dx, rows_per_group);
    schedule.keep(sums);
    schedule.keep(means);
  }
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

// The same for rows that are whole vectors, on CPUs: x(lane, v, row). Rows are read as they lie,
// the totals of a whole row stay in the nearest cache. Down columns of a power of two in length, as
// above, 8192 x 1024 took five times as long.
class NormParameterRows : public AxisGenerator<NormParameterRows> {
 public:
  GeneratorParam<bool> is_rms{"is_rms", false};
  Input<Buffer<>> dy{"dy", Float(32), 3};
  Input<Buffer<>> x{"x", Float(32), 3};
  Input<Buffer<>> rstd{"rstd", Float(32), 1};
  Input<int> chunk{"chunk"};

  void configure() {
    if (!is_rms) mean_ = add_input<Buffer<>>("mean", Float(32), 1);
    result_ = add_output<Func>("result", std::vector<Type>(is_rms ? 1 : 2, Float(32)), 3);
  }
  void generate() {
    constexpr int kVector = 16;
    const Var lane("lane"), v("v"), group("group");
    RDom steps(0, chunk, "steps");
    const Expr row = group * chunk + steps;
    steps.where(row < x.dim(2).extent());
    Expr distance = x(lane, v, row);
    if (!is_rms) distance = distance - (*mean_)(row);
    const Expr slope = dy(lane, v, row);
    const Expr product = strict_float(slope * strict_float(distance * rstd(row)));
    Func total("total"), result("result");
    if (is_rms) {
      total(lane, v, group) = 0.0f;
      total(lane, v, group) = strict_float(total(lane, v, group) + product);
      result(lane, v, group) = total(lane, v, group);
    } else {
      total(lane, v, group) = Tuple(0.0f, 0.0f);
      total(lane, v, group) = Tuple(strict_float(total(lane, v, group)[0] + product),
                                    strict_float(total(lane, v, group)[1] + slope));
      result(lane, v, group) = Tuple(total(lane, v, group)[0], total(lane, v, group)[1]);
    }
    *result_ = result;
    for (In* input : std::vector<In*>{&dy, &x, &rstd, mean_}) {
      if (input != nullptr) set_mins(*input);
    }
    dy.dim(0).set_extent(kVector);
    x.dim(0).set_extent(kVector);
    set_first_mins(result);
    result.output_buffers()[0].dim(0).set_extent(kVector);
    result.vectorize(lane, kVector).gpu_blocks(group);
    total.compute_at(result, group).store_in(MemoryType::Stack);
    total.bound_storage(v, kLongestCachedRow / kVector).bound_storage(group, 1);
    total.vectorize(lane, kVector);
    total.update().reorder(lane, v, steps).vectorize(lane, kVector);
  }

 private:
  In* mean_ = nullptr;
  GeneratorOutput<Func>* result_ = nullptr;
};

// The moments of a channel from those of its lines, mean(c, n) and squares(c, n), each of `count`
// elements (Chan, Golub and LeVeque 1983): the mean of the means; the sum of the squares and of
// count (mean_n - mean)^2. With them the running values.
class BatchMoments : public AxisGenerator<BatchMoments> {
 public:
  Input<Buffer<>> means{"means", Float(32)};
  Input<Buffer<>> squares{"squares", Float(32)};
  Input<Buffer<>> running_mean{"running_mean", Float(32)};
  Input<Buffer<>> running_var{"running_var", Float(32)};
  Input<float> count{"count"};
  Input<float> epsilon{"epsilon"};
  Input<float> momentum{"momentum"};
  Output<Func> result{"result", {Float(32), Float(32), Float(32), Float(32)}, 2};

  void configure() {
    set_tensors({&means, &squares}, {});
    set_per_line({&running_mean, &running_var}, {});
  }

  void generate() {
    AxisNest nest = make_nest();
    const Expr lines = cast<float>(nest.length), elements = lines * count;
    Fold total(nest, "total", {{FoldKind::kSum, means(nest.at(nest.r))}});
    Func mean("mean");
    mean(nest.place_vars()) = strict_float(total[0] / lines);
    const Expr distance = means(nest.at(nest.r)) - mean(nest.place());
    Fold sums(
        nest, "sums",
        {{FoldKind::kSum, strict_float(squares(nest.at(nest.r)) + count * distance * distance)}});
    // The batch's variance is that of these elements; the running one estimates the population's.
    const Expr unbiased = sums[0] / (elements - 1.0f);
    const auto moved = [&](const Expr& old, const Expr& now) {
      return strict_float((1.0f - momentum) * old + momentum * now);
    };
    result(nest.place_vars()) =
        Tuple(moved(running_mean(nest.place()), mean(nest.place())),
              moved(running_var(nest.place()), unbiased), Expr(mean(nest.place())),
              inverse_root(sums[0] / elements + epsilon));
    AxisSchedule schedule = make_schedule(nest, result, {});
    set_first_mins(Func(result));
    schedule.keep(total);
    schedule.keep(mean);
    schedule.keep(sums);
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::MomentsGenerator, moments)
HALIDE_REGISTER_GENERATOR(ballast::kernels::LayerNorm, layer_norm)
HALIDE_REGISTER_GENERATOR(ballast::kernels::NormSums, norm_sums)
HALIDE_REGISTER_GENERATOR(ballast::kernels::LayerNormDx, layer_norm_dx)
HALIDE_REGISTER_GENERATOR(ballast::kernels::NormParameterSums, norm_parameter_sums)
HALIDE_REGISTER_GENERATOR(ballast::kernels::NormParameterRows, norm_parameter_rows)
HALIDE_REGISTER_GENERATOR(ballast::kernels::BatchMoments, batch_moments)
