// Softmax and log-softmax along one axis, and their gradients in terms of the results.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/reduce/axis_generator.h"
#include "kernels/reduce/prefetch.h"
#include "kernels/softmax/softmax_line.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

// cached: a row's exponentials are kept on the stack, so that they are computed once.
class Softmax : public AxisGenerator<Softmax> {
 public:
  GeneratorParam<bool> is_log{"is_log", false};
  GeneratorParam<bool> is_cached{"is_cached", false};
  GeneratorParam<bool> streams{"streams", false};  // the result goes past the caches
  Input<Buffer<>> in{"in", Float(32)};
  Input<int> rows_per_group{"rows_per_group"};
  Output<Buffer<>> out{"out", Float(32)};

  void configure() { set_tensors({&in}, {&out}); }

  void generate() {
    AxisNest nest = make_nest();
    const Expr x = read(in, nest)(nest.at(nest.r));
    const bool is_kept = is_cached || ((is_short() || is_narrow()) && !is_log);
    const auto asking = [&](const Expr& value) { return with_next(in, nest, value, x); };
    SoftmaxLine line(nest, "softmax", x, is_log, [&](const Expr& value) {
      const Expr asked = asks_last() ? value : asking(value);
      // Of long rows the result's would be gone from the nearest cache before it is written.
      return is_kept && !streams ? with_row_of(nest, out, asked) : asked;
    });
    const Expr result = asks_last() ? asking(line.result()) : line.result();
    AxisSchedule schedule = write(out, nest, result, rows_per_group);
    line.keep(schedule, !is_kept ? 0 : is_short() ? kShortRow : kLongestCachedRow);
  }

 private:
  // The last pass asks for the next row: the one before asks for the result's, and for both memory
  // is asked faster than it answers. Not beside stores past the caches.
  bool asks_last() const { return is_cached && !streams; }
};

// dx = (dy - sum(dy y)) y; of the logarithm dx = dy - exp(y) sum(dy).
class SoftmaxGrad : public AxisGenerator<SoftmaxGrad> {
 public:
  GeneratorParam<bool> is_log{"is_log", false};
  Input<Buffer<>> dy{"dy", Float(32)};
  Input<Buffer<>> y{"y", Float(32)};
  Input<int> rows_per_group{"rows_per_group"};
  Output<Buffer<>> dx{"dx", Float(32)};

  void configure() { set_tensors({&dy, &y}, {&dx}); }

  void generate() {
    AxisNest nest = make_nest();
    const Expr g = read(dy, nest)(nest.at(nest.r)), result = read(y, nest)(nest.at(nest.r));
    Fold total(nest, "total", {{FoldKind::kSum, is_log ? g : strict_float(g * result)}});
    Expr value = is_log ? strict_float(g - exp_f32(result) * total[0])
                        : strict_float((g - total[0]) * result);
    for (const Expr& input : {g, result}) {
      value = with_next(dy, nest, value, input);
    }
    AxisSchedule schedule = write(dx, nest, value, rows_per_group);
    schedule.keep(total);
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::Softmax, softmax)
HALIDE_REGISTER_GENERATOR(ballast::kernels::SoftmaxGrad, softmax_grad)
