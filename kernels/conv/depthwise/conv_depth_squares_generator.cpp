// Depthwise 3x3 and 5x5 of stride 1 between zeros one or two wide, on CPUs, where planes are small
// squares: a plane is in registers as a whole, a row to each vector of 8 or 16 lanes, or two rows
// of up to eight pixels to one of 16. The side is a constant, so that what a tap sees is a shuffle,
// never a mask.
//
//   conv_depth_squares         y, or dx with flipped weights: the bits of conv_depth
//   conv_depth_weight_squares  dw: sums over pixels in a vector of sums per tap, added at the end
#include "kernels/conv/depthwise/conv_depth_squares_recipe.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/shuffle.h"

#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

class ConvDepthSquares : public SquareResults<SquaresGenerator<ConvDepthSquares>> {
 public:
  void generate() {
    row(l, v, g, n) = with_pitch(l, v, in(place_of(v, l), g, n));
    Expr sum = 0.0f;
    for (int ky = 0; ky < across(); ++ky) {
      for (int kx = 0; kx < across(); ++kx) {
        const Expr weight = windows.weight(across(), kx, ky, {g});
        const auto vector = [&](const Expr& v) { return row(l, v, g, n); };
        sum = with_tap(sum, weight, vector, v, kx - reach(), ky - reach());
      }
    }
    sums(l, v, g, n) = sum;
    store_sums();
  }

  void schedule() { schedule_sums({row}); }

 private:
  Func row{"row"};
};

class ConvDepthWeightSquares : public SquareWeights<SquaresGenerator<ConvDepthWeightSquares>> {
 public:
  void generate() {
    start_sums(vectors());
    const RVar v = part.x, image = part.y;
    // Asks for the next image's, which are far from these.
    const auto with_next = [&](const Expr& value, const Func& tensor) {
      const Expr next = unsafe_promise_clamped(image + 1, 0, in.dim(2).extent() - 1);
      return with_prefetch(value, tensor(place_of(v, l), g, next));
    };
    const auto dy_of = [&](const Expr& at) {
      return with_pitch(l, at, dy(place_of(at, l), g, image));
    };
    row(l, u, g, n) = with_pitch(l, u, in(place_of(u, l), g, n));
    const auto x_of = [&](const Expr& at) { return row(l, at, g, image); };
    // Where a vector is a row, a row of x at a time, shifted once for each column, beside those of
    // dy around it: fewer registers than the shifted rows around one of dy, which took 32 moves
    // from and to the stack for a plane of 7x7 (on a Zen 3 118 instructions instead of 145).
    const auto with_row = [&](const Expr& sum, int right, int down) {
      const Expr of = v - down, last = vectors() - 1;
      const Expr more = fma_f32(shifted(x_of(v), right), dy_of(clamp(of, 0, last)), sum);
      return select(of < 0 || of > last, sum, more);
    };
    std::vector<Expr> sums;
    for (int tap = 0; tap < taps(); ++tap) {
      const int right = tap % across() - reach(), down = tap / across() - reach();
      const Expr sum = old_sum(tap);
      sums.push_back(rows() == 1 ? with_row(sum, right, down)
                                 : with_tap(sum, dy_of(v), x_of, v, right, down));
    }
    sums[0] = with_next(with_next(sums[0], in), dy);
    store_sums(sums);
  }

  void schedule() {
    schedule_sums();
    if (rows() == 1) return;  // inlined, a row at a time
    row.compute_at(lanes, g).store_in(MemoryType::Register);
    row.bound(l, 0, lane_count()).bound(u, 0, vectors()).vectorize(l).unroll(u);
  }

 private:
  Var u{"u"};
  Func row{"row"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthSquares, conv_depth_squares)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthWeightSquares, conv_depth_weight_squares)
