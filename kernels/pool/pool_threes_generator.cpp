// Pooling of windows of 3 x 3, 1 or 2 apart, on CPUs. Nothing is copied: three rows of x are folded
// into one in registers, and the three taps of a vector of windows are shuffled from what came out.
// A step does four rows of windows, which share rows of x, and of these only the first and the last
// can be padding; the last step of a column, and of a row, moves inwards and repeats what its
// neighbour did.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pool/pool_recipe.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/layout.h"
#include "kernels/recipe/shuffle.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kSide = 3, kRows = kPoolRows;

class PoolThrees : public AveragingGenerator<PoolThrees> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<std::string> result{"result", "max"};  // or average
  GeneratorParam<int> stride{"stride", 2};
  GeneratorParam<int> lanes{"lanes", 16};

  // `top` and `left` are 0 or 1, and no window reaches farther than one beyond the last element.
  Input<int> top{"top"}, left{"left"}, planes_per_group{"planes_per_group"};

  void configure() {
    if (is_average()) add_counts();
    in_ = add_input<Buffer<float>>("in", 3);
    out_ = add_output<Buffer<float>>("out", 3);
  }

  void generate() {
    const Expr windows = out_->dim(0).extent(), rows = out_->dim(1).extent();
    const auto first_of = [&](const Expr& vector) { return min(vector * lanes, windows - lanes); };
    first_row = min(k * kRows, rows - kRows) * stride - top;
    start = first_of(v) * stride - left;
    columns(l, j, i, v, k, p) = fold_rows(begin_of(j) + l, j);
    taps(l, t, i, v, k, p) = mux(t, stride == 2 ? taps_apart() : taps_beside());
    step = RDom({{0, lanes},
                 {0, kRows},
                 {0, (windows + lanes - 1) / lanes},
                 {0, (rows + kRows - 1) / kRows}},
                "step");
    std::vector<Expr> values;
    for (int t = 0; t < kSide; ++t) {
      values.push_back(taps(step[0], t, step[1], step[2], step[3], p));
    }
    const Expr window = first_of(step[2]) + step[0];
    const Expr row = min(step[3] * kRows, rows - kRows) + step[1];
    Func out = *out_;
    out(x, y, p) = undef<float>();
    out(window, row, p) = is_average() ? average_of(fold(values), window, row) : fold(values);
  }

  void schedule() {
    set_mins(*in_, *out_);
    Stage stage = Func(*out_).update();
    if (is_average()) tile(stage.specialize(have_one_count()));
    tile(stage);
    columns.compute_at(*out_, step[2]).reorder(l, i, j).unroll(i).unroll(j);
    taps.compute_at(*out_, step[1]).unroll(t);
    for (Func vector : {columns, taps}) {
      vector.store_in(MemoryType::Register).bound_extent(l, lanes).vectorize(l);
    }
    columns.bound_extent(i, kRows).bound_extent(j, kSide);
    taps.bound_extent(t, kSide);
  }

 private:
  bool is_average() const { return result.value() == "average"; }
  Expr none() const { return is_average() ? 0.0f : -INFINITY; }

  // NaN stays. Beside the largest element goes one and the sum of squares, which are a NaN where
  // there is one, and never a denormal number: two instructions an element with no mask.
  Expr fold(const std::vector<Expr>& values) const {
    if (is_average()) {
      Expr sum = 0.0f;
      for (const Expr& value : values) sum = strict_float(sum + value);
      return sum;
    }
    Expr largest = values[0], squares = fma_f32(largest, largest, 1.0f);
    for (size_t i = 1; i < values.size(); ++i) {
      largest = select(lt(largest, values[i]), values[i], largest);
      squares = fma_f32(values[i], values[i], squares);
    }
    return select(eq(squares, squares), largest, squares);
  }

  // The rows of window i, folded; for a maximum those outside of x are one that is inside, again.
  Expr fold_rows(const Expr& column, const Expr& j) const {
    const Expr last = in_->dim(1).extent() - 1;
    const auto pixel = [&](const Expr& at_x, const Expr& at_y) {
      return (*in_)(unsafe_promise_clamped(at_x, 0, in_->dim(0).extent() - 1),
                    unsafe_promise_clamped(at_y, 0, last), p);
    };
    const int last_nth = (kRows - 1) * stride + kSide - 1;
    std::vector<Expr> values;
    for (int ky = 0; ky < kSide; ++ky) {
      const Expr nth = i * stride + ky, row = first_row + nth;
      const Expr inside = select(nth == 0, max(row, 0), nth == last_nth, min(row, last), row);
      Expr value = pixel(column, inside);
      // Asks for as much of x as a step reads of rows that are its own, in order.
      const Expr vectors = (v * stride * kRows + i * stride + ky) * stride + j;
      const Expr next = pixel(l + vectors * lanes + kEarly, k * kRows * stride);
      if (ky < stride) value = select(j < stride, with_early_prefetch(value, next), value);
      const Expr padded = select(nth == 0, select(row >= 0, value, 0.0f), nth == last_nth,
                                 select(row <= last, value, 0.0f), value);
      values.push_back(is_average() ? padded : value);
    }
    return fold(values);
  }

  // Where vector j of columns begins. Two apart: two vectors from the first tap on, and one that
  // ends with the last tap. Side by side: a vector for each tap. All inside of x.
  Expr begin_of(const Expr& j) const {
    const Expr last = in_->dim(0).extent() - lanes;
    if (stride == 1) return clamp(start + j, 0, last);
    return select(j < 2, max(start, 0) + j * lanes, min(start + lanes + 1, last));
  }
  Expr is_late() const { return start < 0; }
  Expr is_early() const { return start + (lanes - 1) * stride + kSide > in_->dim(0).extent(); }

  std::vector<Expr> taps_apart() const {
    const auto column = [&](int j) { return Expr(columns(l, j, i, v, k, p)); };
    const Expr low = column(0), high = column(1), end = column(2), outside = none();
    const auto even = [&](int lane) { return 2 * lane; };
    const auto odd = [&](int lane) { return 2 * lane + 1; };
    const auto before = [&](int lane) { return lanes - 1 + lane; };
    const auto after = [&](int lane) { return lane < lanes - 1 ? lane + 1 : 2 * lanes - 1; };
    const Expr evens = take_lanes(low, high, lanes, even), odds = take_lanes(low, high, lanes, odd);
    return {
        select(is_late(), take_lanes(outside, odds, lanes, before), evens),
        select(is_late(), evens, odds),
        select(is_late(), odds, take_lanes(evens, select(is_early(), outside, end), lanes, after))};
  }

  std::vector<Expr> taps_beside() const {
    const auto column = [&](int j) { return Expr(columns(l, j, i, v, k, p)); };
    const Expr middle = column(1), outside = none();
    const auto before = [&](int lane) { return lanes - 1 + lane; };
    const auto after = [&](int lane) { return lane + 1; };
    return {select(is_late(), take_lanes(outside, middle, lanes, before), column(0)), middle,
            select(is_early(), take_lanes(middle, outside, lanes, after), column(2))};
  }

  Expr average_of(const Expr& total, const Expr& window, const Expr& row) const {
    return average(total, window * stride - left, row * stride - top, kSide, kSide,
                   in_->dim(0).extent(), in_->dim(1).extent());
  }

  void tile(Stage stage) {
    const Var plane_group("plane_group");
    stage.allow_race_conditions()
        .split(p, plane_group, p, planes_per_group, TailStrategy::GuardWithIf)
        .reorder({step[0], step[1], step[2], step[3], p, plane_group})
        .vectorize(step[0])
        .unroll(step[1])
        .gpu_blocks(plane_group)
        .never_partition_all();
  }

  Var x{"x"}, y{"y"}, p{"p"}, l{"l"}, j{"j"}, t{"t"}, i{"i"}, v{"v"}, k{"k"};
  GeneratorInput<Buffer<float>>* in_ = nullptr;
  GeneratorOutput<Buffer<float>>* out_ = nullptr;
  Func columns{"columns"}, taps{"taps"};
  RDom step;
  Expr first_row, start;  // where a step's windows begin, perhaps in the padding
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PoolThrees, pool_threes)
