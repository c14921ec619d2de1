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
    Fold peak(nest, "peak", {{FoldKind::kMax, logits(nest.at(nest.r))}});
    const Expr shifted = logits(nest.at(nest.r)) - peak[0];
    const Expr exponential = with_next_row(nest, exp_of_negative(shifted), logits(nest.at(nest.r)),
                                           logits.dim(1).extent());
    Fold total(nest, "total", {{FoldKind::kSum, exponential}, {FoldKind::kSum, shifted}});
    const Expr label = labels(nest.place());
    const Expr is_valid = label >= 0 && label < nest.length;
    const Expr chosen = logits(nest.at(clamp(label, 0, nest.length - 1))) - peak[0];
    // A class with a logit of -inf must not matter where there is no smoothing.
    const Expr mean = select(smoothing > 0.0f, total[1] / cast<float>(nest.length), 0.0f);
    const Expr value =
        strict_float((log_f32(total[0]) - (1.0f - smoothing) * chosen) - smoothing * mean);
    loss(nest.place_vars()) = select(is_valid, value, Expr(NAN));
    AxisSchedule schedule = make_schedule(nest, loss, rows_per_group);
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
    Fold peak(nest, "peak", {{FoldKind::kMax, logits(nest.at(nest.r))}});
    Func e("e"), scale("scale"), bias("bias");
    const Expr logit = logits(nest.at(nest.r)), own = exp_of_negative(logit - peak[0]);
    const auto with_next = [&](const Expr& value) {
      return with_next_row(nest, value, logit, logits.dim(1).extent());
    };
    const bool asks_last = is_cached && !streams;  // as softmax does
    e(nest.at_vars()) = asks_last ? with_row_of(nest, dlogits, own) : with_next(own);
    const Expr exponential = e(nest.at(nest.r));
    Fold total(nest, "total", {{FoldKind::kSum, exponential}});
    const Expr label = labels(nest.place());
    const Expr is_valid = label >= 0 && label < nest.length;
    scale(nest.place_vars()) = select(is_valid, 1.0f / total[0], Expr(NAN));
    bias(nest.place_vars()) = smoothing / cast<float>(nest.length);
    const Expr target = select(nest.r == label, 1.0f - smoothing, 0.0f) + bias(nest.place());
    const Expr result =
        strict_float((exponential * scale(nest.place()) - target) * dloss(nest.place()));
    dlogits(nest.at_vars()) = asks_last ? with_next(result) : result;
    AxisSchedule schedule = make_schedule(nest, dlogits, rows_per_group);
    schedule.keep(peak);
    if (is_cached) schedule.keep_row(e, kLongestCachedRow);
    schedule.keep(total);
    schedule.keep(scale);
    schedule.keep(bias);
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::CrossEntropy, cross_entropy)
HALIDE_REGISTER_GENERATOR(ballast::kernels::CrossEntropyGrad, cross_entropy_grad)
