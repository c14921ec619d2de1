// Pooling by rows on CPUs. A row of y is folded along y first, by whole rows of x, then along x:
//
//   folded  the rows of x under a row of y, folded into one: vectors of x, the last one of which
//           moves inwards and repeats what its neighbour did
//   line    that row between its padding
//   phases  (for strides of 2) the line's even and odd elements, so that what a tap takes for
//           neighbouring windows lies side by side
//   total   the taps of the windows
//
// All are rows on the stack, so they stay in the nearest cache.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pool/pool_recipe.h"

#include <cmath>
#include <limits>
#include <string>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kLanes = 16;
constexpr int kNone = std::numeric_limits<int>::min();

// What is folded: a sum, a maximum, or for the index of the maximum a pair of numbers that compare
// as their places do (the larger key wins, the lower index among equal keys).
class PoolRows : public Generator<PoolRows> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<std::string> result{"result", "max"};  // or index, average
  GeneratorParam<bool> is_stride_2{"is_stride_2", false};

  Input<int> kernel_h{"kernel_h"}, kernel_w{"kernel_w"}, stride_h{"stride_h"}, stride_w{"stride_w"},
      top{"top"}, left{"left"}, dilation_h{"dilation_h"}, dilation_w{"dilation_w"},
      rows_per_group{"rows_per_group"}, planes_per_group{"planes_per_group"};

  void configure() {
    if (is_average()) {
      bottom_ = add_input<int>("bottom");
      right_ = add_input<int>("right");
      counts_padding_ = add_input<int>("counts_padding");
      share_ = add_input<float>("share");  // 1 / count where all windows have one, else 0
    }
    in_ = add_input<Buffer<float>>("in", 3);
    out_ = add_output<Buffer<>>("out", is_index() ? Int(32) : Float(32), 3);
  }

  void generate() {
    const Expr width = in_->dim(0).extent(), height = in_->dim(1).extent();
    const Expr first = min(v * kPoolStep, width - kPoolStep);
    ky = RDom(0, kernel_h, "ky");
    const Expr row = unsafe_promise_clamped(y * stride_h + ky * dilation_h - top, 0, height - 1);
    ky.where(y * stride_h + ky * dilation_h >= top &&
             y * stride_h + ky * dilation_h - top < height);
    const Expr value = (*in_)(unsafe_promise_clamped(first + l, 0, width - 1), row, p);
    if (is_index()) {
      folded(l, v, y, p) = Tuple(Expr(-INFINITY), -1);
      const Expr old = folded(l, v, y, p)[0], old_row = folded(l, v, y, p)[1];
      const Expr wins = old_row < 0 || (!le(value, old) && eq(old, old));
      folded(l, v, y, p) = Tuple(select(wins, value, old), select(wins, row, old_row));
    } else {
      folded(l, v, y, p) = none();
      folded(l, v, y, p) = fold(read(folded(l, v, y, p)), Tuple(value));
    }
    fill_line(width);
    const Func& source = is_stride_2 ? add_phases() : line;
    kx = RDom(0, kernel_w, "kx");
    const Expr at = kx * dilation_w;
    total(x, y, p) = none();
    total(x, y, p) = fold(
        read(total(x, y, p)),
        read(is_stride_2 ? source(x + at / 2, at % 2, y, p) : source(x * stride_w + at, y, p)));
    (*out_)(x, y, p) =
        is_average() ? average(width, height) : read(total(x, y, p))[is_index() ? 1 : 0];
  }

  void schedule() {
    for (int d = 0; d < 3; ++d) {
      in_->dim(d).set_min(0);
      out_->dim(d).set_min(0);
    }
    Func out = *out_;
    const Expr is_wide = out_->dim(0).extent() >= kPoolStep;
    if (is_average()) {
      schedule_rows(out.specialize(is_wide && *share_ != 0.0f), true);
      schedule_rows(out.specialize(*share_ != 0.0f), false);
    }
    schedule_rows(out.specialize(is_wide), true);
    schedule_rows(out, false);

    const auto at_row = [&](Func row) {
      row.compute_at(out, y).store_in(MemoryType::Stack);
      row.bound_storage(x, kPoolLine + 4 * kLanes);
      row.never_partition_all().vectorize(x, kLanes, TailStrategy::RoundUp);
    };
    folded.compute_at(line, step.y).store_in(MemoryType::Register);
    folded.bound_extent(l, kPoolStep).vectorize(l);
    folded.update().reorder(l, ky).vectorize(l);
    at_row(line);
    line.update().allow_race_conditions().vectorize(step.x);
    at_row(total);
    Stage taps = total.update();
    taps.never_partition_all().reorder(x, kx);
    if (is_stride_2) {
      at_row(phases);
      phases.bound_extent(i, 2).reorder(i, x).unroll(i);
      pair.compute_at(phases, x).store_in(MemoryType::Register);
      pair.bound_extent(v, 1).bound_extent(l, 2 * kLanes).vectorize(l, kLanes).unroll(l);
    } else {
      taps.specialize(stride_w == 1).vectorize(x, kLanes, TailStrategy::RoundUp);
    }
    taps.vectorize(x, kLanes, TailStrategy::RoundUp);
  }

 private:
  bool is_average() const { return result.value() == "average"; }
  bool is_index() const { return result.value() == "index"; }

  Tuple read(const FuncRef& at) const {
    return is_index() ? Tuple(Expr(at[0]), Expr(at[1])) : Tuple(Expr(at));
  }

  Tuple none() const {
    if (is_index()) return Tuple(Expr(kNone), Expr(-1));
    return Tuple(is_average() ? Expr(0.0f) : Expr(-INFINITY));
  }

  // NaN stays, and of equal elements the first.
  Tuple fold(const Tuple& old, const Tuple& next) const {
    if (is_average()) return Tuple(strict_float(old[0] + next[0]));
    if (is_index()) {
      const Expr wins = next[0] > old[0] || (next[0] == old[0] && next[1] < old[1]);
      return Tuple(select(wins, next[0], old[0]), select(wins, next[1], old[1]));
    }
    const Expr wins = !le(next[0], old[0]) && eq(old[0], old[0]);
    return Tuple(select(wins, next[0], old[0]));
  }

  void fill_line(const Expr& width) {
    line(x, y, p) = none();
    step = RDom(0, kPoolStep, 0, (width + kPoolStep - 1) / kPoolStep, "step");
    const Expr at = min(step.y * kPoolStep, width - kPoolStep) + step.x;
    const Expr place = unsafe_promise_clamped(left + at, 0, kPoolLine - 1);
    const Tuple column = read(folded(step.x, step.y, y, p));
    if (!is_index()) {
      line(place, y, p) = column;
      return;
    }
    // Integers in the order of the floats; both zeros are one, NaN is the largest.
    const Expr bits = reinterpret<int>(column[0]);
    const Expr ordered = select(bits == kNone, 0, bits ^ ((bits >> 31) & 0x7fffffff));
    const Expr key = select(eq(column[0], column[0]), ordered, std::numeric_limits<int>::max());
    const Expr is_padding = column[1] < 0;
    line(place, y, p) =
        Tuple(select(is_padding, kNone, key), select(is_padding, -1, column[1] * width + at));
  }

  const Func& add_phases() {
    pair(l, v, y, p) = read(line(v * 2 * kLanes + l, y, p));
    // 2 (x % kLanes) + i, so that no ramp is seen: Halide's OpenCL misnames the lanes of a vector
    // taken in steps of two.
    const Expr lane = (2 * (x % kLanes) + 64) ^ (64 + i);
    phases(x, i, y, p) =
        read(pair(unsafe_promise_clamped(lane, 0, 2 * kLanes - 1), x / kLanes, y, p));
    return phases;
  }

  Expr average(const Expr& width, const Expr& height) {
    const Expr count =
        count_along(x * stride_w - left, kernel_w, width, *right_, *counts_padding_) *
        count_along(y * stride_h - top, kernel_h, height, *bottom_, *counts_padding_);
    return select(*share_ != 0.0f, strict_float(total(x, y, p) * *share_),
                  strict_float(total(x, y, p) / cast<float>(count)));
  }

  void schedule_rows(Stage stage, bool is_wide) {
    const Var row_group("row_group"), plane_group("plane_group");
    stage.split(y, row_group, y, rows_per_group, TailStrategy::GuardWithIf)
        .split(p, plane_group, p, planes_per_group, TailStrategy::GuardWithIf)
        .reorder(x, y, p, row_group, plane_group)
        .gpu_blocks(row_group, plane_group)
        .never_partition_all();
    if (is_wide) stage.vectorize(x, kPoolStep, TailStrategy::ShiftInwards);
  }

  Var x{"x"}, y{"y"}, p{"p"}, l{"l"}, v{"v"}, i{"i"};
  GeneratorInput<int>*bottom_ = nullptr, *right_ = nullptr, *counts_padding_ = nullptr;
  GeneratorInput<float>* share_ = nullptr;
  GeneratorInput<Buffer<float>>* in_ = nullptr;
  GeneratorOutput<Buffer<>>* out_ = nullptr;
  Func folded{"folded"}, line{"line"}, pair{"pair"}, phases{"phases"}, total{"total"};
  RDom ky, kx, step;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PoolRows, pool_rows)
