// dx of depthwise 5x5 convolutions of stride 2 on CPUs, in planes of even extents. A work-group
// copies the rows of dy that a block needs to its stack, between zeros. Of two pixels of x side by
// side, three taps of a row reach one and two the other, likewise of two rows: each kind is a plain
// convolution of dy, and columns are laid in order by shuffles. Rows of one kind are stored before
// those of the other are computed: of all four kinds at once compilers moved weights from register
// to register for half of the time.
//
// Sums are fma chains over rows, then columns of the window.
#include "kernels/conv/conv_recipe.h"
#include "kernels/conv/depthwise/conv_depth_couples.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/shuffle.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

class ConvDepthCouples : public Generator<ConvDepthCouples> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> lanes_of_vector{"lanes", 16};
  // Whether paddings are: taps of both kinds then see the same elements of dy, which compilers
  // keep.
  GeneratorParam<bool> is_even{"even", false};

  Input<int> in_width{"in_width"}, width{"width"};  // of x, and of dy: a vector of couples and more
  Input<int> top{"top"}, left{"left"};              // up to two pixels
  // Couples of rows of a block. What it needs of dy takes so many elements, in rows so far apart,
  // both in whole vectors.
  Input<int> rows{"rows"}, elements{"elements"}, pitch{"pitch"};
  Input<int> planes{"planes"};                 // of a work-group
  Input<Buffer<float, 3>> dy{"dy"};            // (a plane's pixels, g, n)
  Input<Buffer<float, 3>> weights{"weights"};  // (kx, ky, g)
  Output<Buffer<float, 3>> dx{"dx"};           // (a plane's pixels, g, n)

  void generate() {
    copy_rows();
    add_taps();
    part = RDom({{0, lanes()},
                 {0, 2},
                 {0, 2},
                 {0, (couples() + lanes() - 1) / lanes()},
                 {0, rows},
                 {0, (row_couples() + rows - 1) / rows}},
                "part");
    const RVar half = part[1], kind = part[2], vector = part[3], row = part[4], block = part[5];
    const auto sum = [&](int odd) {
      const auto of = [&](int columns) {
        return Expr(sums(part[0], columns, kind, vector, row, block, g, n));
      };
      return select(is_odd(left) == odd, of(0), of(1));
    };
    const auto in_order = [&](int first) { return weave_lanes(sum(0), sum(1), lanes(), first); };
    const Expr y = 2 * (first_row(block) + row) + (is_odd(top) + kind) % 2,
               x = 2 * start_of(vector) + half * lanes() + part[0];
    dx(f, g, n) = undef<float>();
    dx(unsafe_promise_clamped(y * in_width + x, 0, dx.dim(0).extent() - 1), g, n) =
        select(half == 0, in_order(0), in_order(lanes() / 2));
  }

  void schedule() {
    set_mins(dy, dx);
    set_any_layout(weights);
    Func(dx)
        .update()
        .allow_race_conditions()
        .split(g, g, gi, planes, TailStrategy::GuardWithIf)
        .reorder({part[0], part[1], part[2], part[3], part[4], part[5], gi, g, n})
        .vectorize(part[0])
        .unroll(part[1])
        .unroll(part[2])
        .gpu_blocks(g, n)
        .never_partition_all();
    given.compute_at(dx, part[5]).store_in(MemoryType::Stack).never_partition_all();
    given.bound(f, 0, elements).bound_storage(f, kDepthCouplesElements);
    for (const Var& one : {b, g, n}) given.bound_extent(one, 1);
    given.vectorize(f, lanes(), TailStrategy::RoundUp);
    given.update().allow_race_conditions().vectorize(copied[0]).never_partition_all();
    sums.compute_at(dx, part[2]).store_in(MemoryType::Register);
    sums.bound_extent(l, lanes()).bound(c, 0, 2).vectorize(l).unroll(c);
    for (const Var& one : {r, v, m, b, g, n}) sums.bound_extent(one, 1);
  }

 private:
  static constexpr int kWindow = 5, kReach = kWindow / 2;

  int lanes() const { return lanes_of_vector; }
  Expr couples() const { return in_width / 2; }
  Expr row_couples() const { return dx.dim(0).extent() / in_width / 2; }
  // The last vector of a row moves inwards, and so does the last block.
  Expr start_of(const Expr& vector) const { return min(vector * lanes(), couples() - lanes()); }
  Expr first_row(const Expr& block) const { return min(block * rows, row_couples() - rows); }

  Expr is_odd(const Expr& padding) const { return is_even ? Expr(0) : padding % 2; }

  // Zeros before dy, so that the three taps that reach couple m see elements from m on.
  static Expr before(const Expr& padding) { return kReach - (padding + 1) / 2; }

  void copy_rows() {
    const Expr height = dy.dim(0).extent() / width;
    copied =
        RDom({{0, lanes()}, {0, (width + lanes() - 1) / lanes()}, {0, rows + kReach}}, "copied");
    const Expr x = min(copied[1] * lanes(), width - lanes()) + copied[0],
               y = first_row(b) + copied[2] - before(top);
    copied.where(y >= 0 && y < height);
    // Later planes lie behind, and are asked for.
    const auto at = [&](const Expr& place) {
      return dy(unsafe_promise_clamped(place, 0, dy.dim(0).extent() - 1), g, n);
    };
    given(f, b, g, n) = 0.0f;
    given(held(copied[2] * pitch + x + before(left)), b, g, n) =
        with_early_prefetch(at(y * width + x), at(y * width + x + kEarly));
  }
  Expr held(const Expr& place) const { return unsafe_promise_clamped(place, 0, elements - 1); }

  // At (lane, c, r, ...): 0 for the pixels of a couple that even taps reach, 1 for those of odd.
  void add_taps() {
    const auto element = [this](int tap, const Expr& padding) {
      return tap % 2 == 0 ? Expr(kReach - tap / 2) : kReach - is_odd(padding) - tap / 2;
    };
    const auto sum_of = [&](int odd_row, int odd_column) {
      Expr sum = 0.0f;
      for (int ky = odd_row; ky < kWindow; ky += 2) {
        for (int kx = odd_column; kx < kWindow; kx += 2) {
          const Expr place = (m + element(ky, top)) * pitch + start_of(v) + l + element(kx, left);
          sum = fma_f32(given(held(place), b, g, n), weights(kx, ky, g), sum);
        }
      }
      return sum;
    };
    sums(l, c, r, v, m, b, g, n) = select(r == 0, select(c == 0, sum_of(0, 0), sum_of(0, 1)),
                                          select(c == 0, sum_of(1, 0), sum_of(1, 1)));
  }

  Var f{"f"}, l{"l"}, c{"c"}, r{"r"}, v{"v"}, m{"m"}, b{"b"}, g{"g"}, gi{"gi"}, n{"n"};
  Func given{"given"}, sums{"sums"};
  RDom copied, part;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthCouples, conv_depth_couples)
