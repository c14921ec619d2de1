// Softmax cross entropy with integer labels and label smoothing, forward and backward.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/reduce/axis_generator.h"
#include "kernels/reduce/prefetch.h"

#include <cmath>

namespace ballast::kernels {
namespace {

using namespace Halide;

class CrossEntropy : public AxisGenerator<CrossEntropy> {
 public:
  Input<Buffer<>> logits{"logits", Float(32)};
  Input<Buffer<>> labels{"labels", Int(32)};
  Input<float> smoothing{"smoothing"};
  Input<int> rows_per_group{"rows_per_group"};
  Output<Buffer<>> loss{"loss", Float(32)};

  void configure() {
    set_tensors({&logits}, {});
    set_per_line({&labels}, {&loss});
  }

  // With t = onehot (1 - s) + s / C and z = logit - peak: log total - (1 - s) z_label - s mean(z).
  void generate() {
    AxisNest nest = make_nest();
    const Func given = read(logits, nest);
    const Expr logit = given(nest.at(nest.r));
    Fold peak(nest, "peak", {{FoldKind::kMax, logit}});
    const Expr shifted = logit - peak[0];
    const Expr exponential = with_next(logits, nest, exp_of_negative(shifted), logit);
    Fold total(nest, "total", {{FoldKind::kSum, exponential}, {FoldKind::kSum, shifted}});
    const Expr label = read_line(labels, nest)(nest.place());
    const Expr is_valid = label >= 0 && label < nest.length;
    const Expr chosen = given(nest.at(clamp(label, 0, nest.length - 1))) - peak[0];
    // A class with a logit of -inf must not matter where there is no smoothing.
    const Expr mean = select(smoothing > 0.0f, total[1] / cast<float>(nest.length), 0.0f);
    const Expr value =
        strict_float((log_f32(total[0]) - (1.0f - smoothing) * chosen) - smoothing * mean);
    AxisSchedule schedule = write(loss, nest, select(is_valid, value, Expr(NAN)), rows_per_group);
    schedule.keep(peak);
    schedule.keep(total);
  }
};

// cached: a row's exponentials are kept on the stack, so that they are computed once.
class CrossEntropyGrad : public AxisGenerator<CrossEntropyGrad> {
 public:
  GeneratorParam<bool> is_cached{"is_cached", false};
  GeneratorParam<bool> streams{"streams", false};  // the result goes past the caches
  Input<Buffer<>> dloss{"dloss", Float(32)};
  Input<Buffer<>> logits{"logits", Float(32)};
  Input<Buffer<>> labels{"labels", Int(32)};
  Input<float> smoothing{"smoothing"};
  Input<int> rows_per_group{"rows_per_group"};
  Output<Buffer<>> dlogits{"dlogits", Float(32)};

  void configure() {
    set_tensors({&logits}, {&dlogits});
    set_per_line({&dloss, &labels}, {});
  }

  // dloss (e / total - s / C) everywhere, and dloss (1 - s) less at the label.
  void generate() {
    AxisNest nest = make_nest();
    const Expr logit = read(logits, nest)(nest.at(nest.r));
    Fold peak(nest, "peak", {{FoldKind::kMax, logit}});
    Func e("e"), scale("scale"), bias("bias");
    const Expr own = exp_of_negative(logit - peak[0]);
    const bool asks_last = is_cached && !streams;  // as softmax does
    e(nest.at_vars()) =
        asks_last ? with_row_of(nest, dlogits, own) : with_next(logits, nest, own, logit);
    const Expr exponential = e(nest.at(nest.r));
    Fold total(nest, "total", {{FoldKind::kSum, exponential}});
    const Expr label = read_line(labels, nest)(nest.place());
    const Expr is_valid = label >= 0 && label < nest.length;
    scale(nest.place_vars()) = select(is_valid, 1.0f / total[0], Expr(NAN));
    bias(nest.place_vars()) = smoothing / cast<float>(nest.length);
    const Expr target = select(nest.r == label, 1.0f - smoothing, 0.0f) + bias(nest.place());
    const Expr result = strict_float((exponential * scale(nest.place()) - target) *
                                     read_line(dloss, nest)(nest.place()));
    AxisSchedule schedule = write(
        dlogits, nest, asks_last ? with_next(logits, nest, result, logit) : result, rows_per_group);
    schedule.keep(peak);
    if (is_cached || is_narrow()) schedule.keep_row(e, is_narrow() ? kLanes : kLongestCachedRow);
    schedule.keep(total);
    schedule.keep(scale);
    schedule.keep(bias);
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::CrossEntropy, cross_entropy)
HALIDE_REGISTER_GENERATOR(ballast::kernels::CrossEntropyGrad, cross_entropy_grad)
