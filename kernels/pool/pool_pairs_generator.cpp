// Pooling of windows of 2 x 2 that tile the plane, and its gradients, on CPUs. A step takes two
// vectors of 16 from two rows of x, which in registers become (or come from) the four taps of 8
// windows, or of 8 and 4 in narrower rows; the last step of a row moves inwards and repeats what
// its neighbour did. Nothing needs a second launch: the winners of a gradient are found where they
// are used.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/layout.h"

#include <cmath>
#include <string>

namespace ballast::kernels {
namespace {

using namespace Halide;

class PoolPairs : public Generator<PoolPairs> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<bool> is_max{"is_max", true};
  GeneratorParam<bool> is_grad{"is_grad", false};
  GeneratorParam<int> windows_of_step{"windows", 8};

  Input<int> rows_per_group{"rows_per_group"};

  // y(x, row) and the rows of x in pairs: (x, which of the pair, row of y).
  void configure() {
    if (is_grad) dy_ = add_input<Buffer<float>>("dy", 2);
    if (is_max || !is_grad) in_ = add_input<Buffer<float>>("in", 3);
    out_ = add_output<Buffer<float>>("out", is_grad ? 3 : 2);
  }

  void generate() {
    for (auto* tensor : {dy_, in_}) {
      if (tensor != nullptr) set_mins(*tensor);
    }
    set_mins(*out_);
    const Expr across = is_grad ? dy_->dim(0).extent() : out_->dim(0).extent();
    const int windows = windows_of_step;
    const Expr steps = (across + windows - 1) / windows;
    const auto first = [&](const Expr& step) { return min(step * windows, across - windows); };
    if (in_ != nullptr) {
      taps(l, t, v, row) = (*in_)(2 * (first(v) + l) + t % 2, t / 2, row);
      find_winners();
    }
    Func out = *out_;
    if (!is_grad) {
      RDom step(0, windows, 0, steps, "step");
      out(x, row) = undef<float>();
      out(first(step.y) + step.x, row) =
          is_max
              ? winners(step.x, step.y, row)[0]
              : strict_float(
                    strict_float(
                        strict_float(taps(step.x, 0, step.y, row) + taps(step.x, 1, step.y, row)) +
                        strict_float(taps(step.x, 2, step.y, row) + taps(step.x, 3, step.y, row))) *
                    0.25f);
      schedule_steps(out.update(), step[0], step[1], windows);
      return;
    }
    given(l, v, row) = (*dy_)(first(v) + l, row);
    shares(l, t, v, row) = is_max ? select(winners(l, v, row)[1] == t, given(l, v, row), 0.0f)
                                  : given(l, v, row) * 0.25f;
    RDom step(0, 2 * windows, 0, 2, 0, steps, "step");
    out(x, r, row) = undef<float>();
    out(2 * first(step.z) + step.x, step.y, row) =
        shares(step.x / 2, step.x % 2 + 2 * step.y, step.z, row);
    out.update().unroll(step.y);
    schedule_steps(out.update(), step[0], step[2], 2 * windows);
  }

  void schedule() {}

 private:
  // The first of the largest; a NaN before any number.
  void find_winners() {
    Expr value = taps(l, 0, v, row), winner = 0;
    for (int tap = 1; tap < 4; ++tap) {
      const Expr next = taps(l, tap, v, row);
      const Expr wins = !le(next, value) && eq(value, value);
      value = select(wins, next, value);
      winner = select(wins, tap, winner);
    }
    winners(l, v, row) = Tuple(value, winner);
  }

  void schedule_steps(Stage stage, const RVar& lane, const RVar& step, int lanes) {
    const Var group("group");
    stage.allow_race_conditions()
        .split(row, group, row, rows_per_group, TailStrategy::GuardWithIf)
        .reorder(step, row, group)
        .vectorize(lane, lanes)
        .gpu_blocks(group)
        .never_partition_all();
    const auto keep = [&](Func stage_of) {
      stage_of.compute_at(*out_, step).store_in(MemoryType::Register);
    };
    if (in_ != nullptr) {
      keep(taps);
      taps.bound_extent(l, windows_of_step).bound_extent(t, 4).vectorize(l).unroll(t);
    }
    if (is_max) {
      keep(winners);
      winners.bound_extent(l, windows_of_step).vectorize(l);
    }
    if (is_grad) {
      keep(given);
      given.bound_extent(l, windows_of_step).vectorize(l);
      keep(shares);
      shares.bound_extent(l, windows_of_step).bound_extent(t, 4).vectorize(l).unroll(t);
    }
  }

  Var x{"x"}, r{"r"}, row{"row"}, l{"l"}, t{"t"}, v{"v"};
  GeneratorInput<Buffer<float>>*dy_ = nullptr, *in_ = nullptr;
  GeneratorOutput<Buffer<float>>* out_ = nullptr;
  Func taps{"taps"}, winners{"winners"}, given{"given"}, shares{"shares"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PoolPairs, pool_pairs)
