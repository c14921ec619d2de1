// Pooling by rows on CPUs. Rows of y are folded along y first, by whole rows of x, then along x:
//
//   folded  the rows of x under a row of y, folded into one: vectors of x, the last one of which
//           moves inwards and repeats what its neighbour did
//   line    these rows between their padding, one after the other
//   phases  (for strides of 2) the even and the odd elements of the lines, so that what a tap takes
//           for neighbouring windows lies side by side
//   total   the taps of the windows
//
// Lines and phases are on the stack, in the nearest cache. They hold many rows, because a vector
// that is read from two that were just written waits until these have left the core.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pool/pool_recipe.h"
#include "kernels/recipe/lanes.h"
#include "kernels/recipe/layout.h"

#include <cmath>
#include <string>

namespace ballast::kernels {
namespace {

using namespace Halide;

// What is folded: a sum, a maximum, or for the index of the maximum a pair of numbers that compare
// as their places do (the larger key wins, the lower index among equal keys).
class PoolRows : public AveragingGenerator<PoolRows> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<std::string> result{"result", "max"};  // or index, average
  GeneratorParam<bool> is_stride_2{"is_stride_2", false};
  GeneratorParam<int> lanes{"lanes", kPoolStep};  // of a vector

  // Lines are `pitch` elements apart, an even number.
  Input<int> kernel_h{"kernel_h"}, kernel_w{"kernel_w"}, stride_h{"stride_h"}, stride_w{"stride_w"},
      top{"top"}, left{"left"}, dilation_h{"dilation_h"}, dilation_w{"dilation_w"}, pitch{"pitch"},
      planes_per_group{"planes_per_group"};

  void configure() {
    if (is_average()) add_counts();
    in_ = add_input<Buffer<float>>("in", 3);
    out_ = add_output<Buffer<>>("out", is_index() ? Int(32) : Float(32),
                                4);  // (x, r, g, p): y = g rows + r
  }

  void generate() {
    const Expr width = in_->dim(0).extent(), height = in_->dim(1).extent();
    const Expr first = min(v * step_lanes(), width - step_lanes());
    ky = RDom(0, kernel_h, "ky");
    const Expr y = g * out_->dim(1).extent() + r;
    // The taps inside of x, solved for ky so that the loop has these bounds.
    const Expr above = max(top - y * stride_h, 0), below = height - 1 + top - y * stride_h;
    ky.where(ky >= (above + dilation_h - 1) / dilation_h && ky <= below / dilation_h);
    const Expr row = unsafe_promise_clamped(y * stride_h + ky * dilation_h - top, 0, height - 1);
    const Expr value = (*in_)(unsafe_promise_clamped(first + l, 0, width - 1), row, p);
    if (is_index()) {
      folded(l, v, r, g, p) = Tuple(Expr(-INFINITY), -1);
      const Expr old = folded(l, v, r, g, p)[0], old_row = folded(l, v, r, g, p)[1];
      const Expr wins = old_row < 0 || (!le(value, old) && eq(old, old));
      folded(l, v, r, g, p) = Tuple(select(wins, value, old), select(wins, row, old_row));
    } else {
      folded(l, v, r, g, p) = none_folded();
      folded(l, v, r, g, p) = fold(all(folded(l, v, r, g, p)), Tuple(value));
    }
    fill_line(width);
    const Func& source = is_stride_2 ? add_phases() : line;
    kx = RDom(0, kernel_w, "kx");
    const Expr at = kx * dilation_w;
    total(x, r, g, p) = none_folded();
    const Expr place = is_stride_2 ? r * (pitch / 2) + x + at / 2 : r * pitch + x * stride_w + at;
    const Tuple tap = read(is_stride_2 ? source(place, at % 2, g, p) : source(place, g, p));
    total(x, r, g, p) = fold(all(total(x, r, g, p)), tap);
    (*out_)(x, r, g, p) = is_average() ? average_of(width, height)
                          : is_index() ? Expr(total(x, r, g, p)[1])
                                       : largest(all(total(x, r, g, p)));
  }

  void schedule() {
    set_mins(*in_, *out_);
    Func out = *out_;
    const Expr is_wide = out_->dim(0).extent() >= step_lanes();
    if (is_average()) {
      schedule_rows(out.specialize(is_wide && have_one_count()), true);
      schedule_rows(out.specialize(have_one_count()), false);
    }
    schedule_rows(out.specialize(is_wide), true);
    schedule_rows(out, false);

    const auto at_row = [&](Func row, int vector) {
      row.compute_at(out, p).store_in(MemoryType::Stack);
      row.bound_storage(x, kPoolLines + 4 * kLanes);
      row.never_partition_all().vectorize(x, vector, TailStrategy::RoundUp);
    };
    folded.compute_at(line, step.y).store_in(MemoryType::Register);
    folded.bound_extent(l, step_lanes()).vectorize(l);
    folded.update().reorder(l, ky).vectorize(l);
    at_row(line, kLanes);
    line.update().allow_race_conditions().vectorize(step.x);
    if (is_stride_2) {
      at_row(phases, kPoolStep);
      phases.bound_extent(i, 2).reorder(i, x).unroll(i);
    }
    total.compute_at(out, xo).store_in(MemoryType::Register);
    total.never_partition_all().vectorize(x, step_lanes(), TailStrategy::RoundUp);
    Stage taps = total.update();
    taps.never_partition_all().reorder(x, kx);
    if (!is_stride_2) {
      taps.specialize(stride_w == 1).vectorize(x, step_lanes(), TailStrategy::RoundUp);
    }
    taps.vectorize(x, step_lanes(), TailStrategy::RoundUp);
  }

 private:
  bool is_average() const { return result.value() == "average"; }
  bool is_index() const { return result.value() == "index"; }
  bool is_max() const { return result.value() == "max"; }
  int step_lanes() const { return lanes; }

  Tuple read(const FuncRef& at) const {
    return is_index() ? Tuple(Expr(at[0]), Expr(at[1])) : Tuple(Expr(at));
  }

  Tuple none() const {
    if (is_index()) return Tuple(Expr(kNoKey), Expr(-1));
    return Tuple(is_average() ? Expr(0.0f) : Expr(-INFINITY));
  }

  // What is carried from tap to tap: of a maximum also the largest magnitude, as bits, which is
  // that of a NaN where there is one. So a tap is three instructions with no mask between them.
  Tuple all(const FuncRef& at) const {
    return is_max() ? Tuple(Expr(at[0]), Expr(at[1])) : read(at);
  }
  Tuple none_folded() const { return is_max() ? Tuple(Expr(-INFINITY), Expr(0)) : none(); }
  Expr largest(const Tuple& folded) const {
    const int infinity = 0x7f800000;
    return select(folded[1] > infinity, reinterpret<float>(folded[1]), folded[0]);
  }

  // NaN stays, and of equal elements the first.
  Tuple fold(const Tuple& old, const Tuple& next) const {
    if (is_average()) return Tuple(strict_float(old[0] + next[0]));
    if (is_index()) {
      const Expr wins = next[0] > old[0] || (next[0] == old[0] && next[1] < old[1]);
      return Tuple(select(wins, next[0], old[0]), select(wins, next[1], old[1]));
    }
    const Expr magnitude = reinterpret<int>(next[0]) & 0x7fffffff;
    return Tuple(select(lt(old[0], next[0]), next[0], old[0]), max(old[1], magnitude));
  }

  void fill_line(const Expr& width) {
    line(x, g, p) = none();
    step = RDom(0, step_lanes(), 0, (width + step_lanes() - 1) / step_lanes(), 0,
                out_->dim(1).extent());
    const Expr at = min(step.y * step_lanes(), width - step_lanes()) + step.x;
    const Expr place = unsafe_promise_clamped(step.z * pitch + left + at, 0, kPoolLines - 1);
    const FuncRef of_rows = folded(step.x, step.y, step.z, g, p);
    const Tuple column = is_max() ? Tuple(largest(all(of_rows))) : read(of_rows);
    if (!is_index()) {
      line(place, g, p) = column;
      return;
    }
    const Expr is_padding = column[1] < 0;
    line(place, g, p) = Tuple(select(is_padding, kNoKey, ordered_key(column[0])),
                              select(is_padding, -1, column[1] * width + at));
  }

  const Func& add_phases() {
    phases(x, i, g, p) = read(line(2 * x + i, g, p));
    return phases;
  }

  Expr average_of(const Expr& width, const Expr& height) {
    const Expr y = g * out_->dim(1).extent() + r;
    return average(total(x, r, g, p), x * stride_w - left, y * stride_h - top, kernel_w, kernel_h,
                   width, height);
  }

  void schedule_rows(Stage stage, bool is_wide) {
    const Var plane_group("plane_group");
    stage.split(p, plane_group, p, planes_per_group, TailStrategy::GuardWithIf)
        .split(x, xo, x, is_wide ? step_lanes() : 1, TailStrategy::ShiftInwards)
        .reorder(x, xo, r, p, g, plane_group)
        .gpu_blocks(g, plane_group)
        .never_partition_all();
    if (is_wide) stage.vectorize(x);
  }

  Var x{"x"}, xo{"xo"}, r{"r"}, g{"g"}, p{"p"}, l{"l"}, v{"v"}, i{"i"};
  GeneratorInput<Buffer<float>>* in_ = nullptr;
  GeneratorOutput<Buffer<>>* out_ = nullptr;
  Func folded{"folded"}, line{"line"}, phases{"phases"}, total{"total"};
  RDom ky, kx, step;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PoolRows, pool_rows)
