// Softmax and log-softmax of a line, for the kernels built ahead of time and those that the row
// fuser compiles. Needs Halide; stateless.
#pragma once

#include "kernels/pointwise/pointwise_math.h"
#include "kernels/reduce/axis_recipe.h"

#include <functional>
#include <string>

namespace ballast::kernels {

// Three passes over a line: its largest element, exponentials and their sum, the result.
class SoftmaxLine {
 public:
  // `x` at nest.r. Values of the second pass go through `hint`, which may ask for what comes next.
  using Hint = std::function<Halide::Expr(const Halide::Expr& value)>;
  SoftmaxLine(const AxisNest& nest, const std::string& name, const Halide::Expr& x, bool is_log,
              const Hint& hint)
      : peak_(nest, name + "_peak", {{FoldKind::kMax, x}}),
        exponential_(name + "_e"),
        total_(sum(nest, name, x, hint)),
        scale_(name + "_scale") {
    scale_(nest.place_vars()) = is_log ? log_f32(total_[0]) : 1.0f / total_[0];
    const Halide::Expr factor = scale_(nest.place());
    result_ = is_log ? Halide::strict_float((x - peak_[0]) - factor)
                     : Halide::strict_float(exponential_(nest.at(nest.r)) * factor);
  }

  const Halide::Expr& result() const { return result_; }

  // `longest`: of lines whose exponentials are kept on the stack, so that they are computed once;
  // 0: they are not.
  void keep(AxisSchedule& schedule, int longest) {
    schedule.keep(peak_);
    if (longest > 0) schedule.keep_row(exponential_, longest);
    schedule.keep(total_, scale_);
  }

 private:
  Fold sum(const AxisNest& nest, const std::string& name, const Halide::Expr& x, const Hint& hint) {
    exponential_(nest.at_vars()) = hint(exp_of_negative(x - peak_[0]));
    const Halide::Expr value = exponential_(nest.at(nest.r));
    return Fold(nest, name + "_total", {{FoldKind::kSum, value}});
  }

  Fold peak_;
  Halide::Func exponential_;
  Fold total_;
  Halide::Func scale_;
  Halide::Expr result_;
};

}  // namespace ballast::kernels
