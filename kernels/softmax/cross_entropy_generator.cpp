// Softmax cross entropy with integer labels, forward and backward. Rows of the batch lie in lanes:
// b = 16 x + lane, or b = x where the batch is no multiple of 16.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pointwise/pointwise_recipe.h"

#include <cmath>

namespace ballast::kernels {
namespace {

using namespace Halide;

template <class Derived>
class CrossEntropyGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

 protected:
  Var c{"c"}, l{"l"}, x{"x"};
  Func peak{"peak"}, total{"total"};
  RDom classes;

  // The largest logit and the sum of exp(logit - largest) of every row.
  void add_statistics(GeneratorInput<Buffer<>>& logits) {
    const Expr count = logits.dim(0).extent();
    peak(l, x) = logits(0, l, x);
    classes = RDom(0, count, "classes");
    const Expr logit = logits(classes, l, x);
    peak(l, x) = select(lt(peak(l, x), logit), logit, peak(l, x));
    total(l, x) = 0.0f;
    total(l, x) = strict_float(total(l, x) + exp_f32(logit - peak(l, x)));
  }

  // `func` has the loops x (blocks) and lane.
  void schedule_rows(Func func, GeneratorInput<Buffer<>>& logits, const Expr& lanes) {
    for (int d = 0; d < 3; ++d) logits.dim(d).set_min(0);
    const Var xo("xo"), xi("xi");
    if (device_class.value() == "gpu") {
      constexpr int kItems = 64;
      func.bound(l, 0, 1).split(x, xo, xi, kItems, TailStrategy::GuardWithIf);
      func.gpu_blocks(xo).gpu_threads(xi);
      for (Func stage : {peak, total}) stage.compute_at(func, xi).store_in(MemoryType::Stack);
      return;
    }
    func.specialize(lanes == kLanes).vectorize(l, kLanes).gpu_blocks(x);
    func.specialize(lanes == 1).gpu_blocks(x);
    func.specialize_fail("lanes are 16 or 1");
    for (Func stage : {peak, total}) {
      stage.compute_at(func, x).store_in(MemoryType::Stack);
      stage.specialize(lanes == kLanes).vectorize(l, kLanes);
      stage.update().reorder(l, x, classes).specialize(lanes == kLanes).vectorize(l, kLanes);
    }
  }
};

class CrossEntropy : public CrossEntropyGenerator<CrossEntropy> {
 public:
  Input<Buffer<>> logits{"logits", Float(32), 3};
  Input<Buffer<>> labels{"labels", Int(32), 2};
  Output<Buffer<>> loss{"loss", Float(32), 2};

  void generate() {
    add_statistics(logits);
    const Expr count = logits.dim(0).extent();
    const Expr label = labels(l, x);
    const Expr chosen = logits(clamp(label, 0, count - 1), l, x);
    const Expr value = strict_float((log_f32(total(l, x)) + peak(l, x)) - chosen);
    loss(l, x) = select(label >= 0 && label < count, value, Expr(NAN));
  }

  void schedule() {
    for (int d = 0; d < 2; ++d) {
      labels.dim(d).set_min(0);
      loss.dim(d).set_min(0);
    }
    schedule_rows(loss, logits, loss.dim(0).extent());
  }
};

class CrossEntropyGrad : public CrossEntropyGenerator<CrossEntropyGrad> {
 public:
  Input<Buffer<>> dloss{"dloss", Float(32), 2};
  Input<Buffer<>> logits{"logits", Float(32), 3};
  Input<Buffer<>> labels{"labels", Int(32), 2};
  Output<Buffer<>> dlogits{"dlogits", Float(32), 3};

  void generate() {
    add_statistics(logits);
    const Expr count = logits.dim(0).extent();
    const Expr label = labels(l, x);
    const Expr softmax = exp_f32(logits(c, l, x) - peak(l, x)) / total(l, x);
    const Expr value = strict_float(dloss(l, x) * (softmax - select(c == label, 1.0f, 0.0f)));
    dlogits(c, l, x) = select(label >= 0 && label < count, value, Expr(NAN));
  }

  void schedule() {
    for (int d = 0; d < 2; ++d) {
      dloss.dim(d).set_min(0);
      labels.dim(d).set_min(0);
    }
    for (int d = 0; d < 3; ++d) dlogits.dim(d).set_min(0);
    Func(dlogits).reorder(l, c, x);
    schedule_rows(dlogits, logits, dlogits.dim(1).extent());
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::CrossEntropy, cross_entropy)
HALIDE_REGISTER_GENERATOR(ballast::kernels::CrossEntropyGrad, cross_entropy_grad)
