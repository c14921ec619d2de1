// The parts of the normalisations that fold lines: moments, and layers of whole rows in one
// kernel. Variances are sums of squared distances from the mean, computed in a second pass over a
// line that is in the cache by then; never E[x^2] - E[x]^2.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/reduce/axis_generator.h"
#include "kernels/reduce/prefetch.h"

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

// y = (x - mean) rstd gamma + beta for rows, with the moments, in one pass over memory.
class LayerNorm : public AxisGenerator<LayerNorm> {
 public:
  GeneratorParam<bool> is_rms{"is_rms", false};  // no mean and no beta
  GeneratorParam<bool> whole_steps{"whole_steps", false};
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
    nest.has_whole_steps = whole_steps;
    const Expr value = x(nest.r, nest.row), count = cast<float>(nest.length);
    Fold total(nest, "total", {{FoldKind::kSum, value}});
    Func mean("line_mean"), rstd("line_rstd");
    mean(nest.row) = strict_float(total[0] / count);
    const Expr distance = is_rms ? value : value - mean(nest.row);
    const Expr square = with_row_of(nest, y, strict_float(distance * distance));
    Fold squares(nest, "squares", {{FoldKind::kSum, square}});
    rstd(nest.row) = inverse_root(squares[0] / count + epsilon);
    Expr result = strict_float(distance * rstd(nest.row) * gamma(nest.r));
    if (!is_rms) result = strict_float(result + (*beta_)(nest.r));
    y(nest.r, nest.row) = with_next_row(nest, result, value, x.dim(1).extent());
    (*rstd_)(nest.row) = rstd(nest.row);
    if (!is_rms) (*mean_)(nest.row) = mean(nest.row);

    AxisSchedule schedule = make_schedule(nest, y, rows_per_group);
    gamma.dim(0).set_min(0);
    if (!is_rms) {
      beta_->dim(0).set_min(0);
      schedule.keep(total, mean);
      mean_->dim(0).set_bounds(0, y.dim(1).extent());
      schedule.add_output(*mean_, rows_per_group);
    }
    schedule.keep(squares, rstd);
    rstd_->dim(0).set_bounds(0, y.dim(1).extent());
    schedule.add_output(*rstd_, rows_per_group);
  }

 private:
  In* beta_ = nullptr;
  Out* mean_ = nullptr;
  Out* rstd_ = nullptr;
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
HALIDE_REGISTER_GENERATOR(ballast::kernels::BatchMoments, batch_moments)
