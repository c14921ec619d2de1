// Depthwise 3x3 and 5x5 of stride 1 between zeros one or two wide, on CPUs, where planes are small
// squares: a plane is in registers as a whole, a row to each vector of 8 or 16 lanes, or two rows
// of up to eight pixels to one of 16. The side is a constant, so that what a tap sees is a shuffle,
// never a mask.
//
//   conv_depth_squares         y, or dx with flipped weights: the bits of conv_depth
//   conv_depth_weight_squares  dw: sums over pixels in a vector of sums per tap, added at the end
//
// Rows end with their lanes; those before them are zeros, and results in them are overwritten by
// the vector before. So the first vector of a plane, which may lack a row, begins where the plane
// does, and the last one ends with it. (The other way round, masks would be instructions of their
// own: of lanes in order from the first, compilers make vexpandps, two on a Zen 4.)
#include "kernels/conv/conv_depth.h"
#include "kernels/conv/conv_depth_recipe.h"
#include "kernels/hints.h"
#include "kernels/lane_fold.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/shuffle.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

template <class Derived>
class SquaresGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> side_of_plane{"side", 14};
  GeneratorParam<int> window{"window", 3};  // rows and columns of it: 3 or 5
  GeneratorParam<int> lanes_of_vector{"lanes", 16};

 protected:
  int lane_count() const { return lanes_of_vector; }
  int zero() const { return lane_count(); }  // as a lane to take: of a second operand of zeros
  int across() const { return window; }
  int reach() const { return across() / 2; }
  int taps() const { return across() * across(); }
  int side() const { return side_of_plane; }
  int pitch() const { return side() > lane_count() / 2 ? lane_count() : lane_count() / 2; }
  int rows() const { return lane_count() / pitch(); }  // of a vector
  int vectors() const { return (side() + rows() - 1) / rows(); }
  int plane() const { return side() * side(); }

  // Where in its plane lane l of vector v lies.
  Expr place_of(const Expr& v, const Expr& l) {
    const Expr start = plane() - lane_count() - (vectors() - 1 - v) * (rows() * side());
    return unsafe_promise_clamped(select(v == 0, 0, start) + l, 0, plane() - 1);
  }

  // Of lane `lane` of vector v, less than 0 where no pixel is.
  int row_of(int v, int lane) const { return side() - rows() * (vectors() - v) + lane / pitch(); }
  int column_of(int lane) const { return lane % pitch() - (pitch() - side()); }

  // Vector v of a plane, from what lies there.
  Expr with_pitch(const Expr& l, const Expr& v, const Expr& pixels) {
    const auto spread = [&](int vector, int start) {
      return take_lanes(pixels, Expr(0.0f), lane_count(), [&](int lane) {
        const int row = row_of(vector, lane), column = column_of(lane);
        return row < 0 || column < 0 ? zero() : row * side() + column - start;
      });
    };
    const Expr any = rows() == 1 ? select(l < lane_count() - side(), 0.0f, pixels)
                                 : spread(vectors() - 1, plane() - lane_count());
    return select(v == 0, spread(0, 0), any);
  }

  // What lies there, vector v, of a plane whose vectors are `vector(v)`.
  Expr without_pitch(const Expr& v, const std::function<Expr(Expr)>& vector) {
    const auto lane_of = [&](int row, int column) {
      return (row + rows() * vectors() - side()) * pitch() + pitch() - side() + column;
    };
    const auto first = [&](int lane) { return lane_of(lane / side(), lane % side()); };
    const auto dense = [&](int lane) {
      const int place = std::max(plane() - lane_count() + lane, plane() - rows() * side());
      return lane_of(place / side(), place % side()) % lane_count();
    };
    const Expr any =
        rows() == 1 ? vector(v) : take_lanes(vector(v), vector(v), lane_count(), dense);
    return select(v == 0, take_lanes(vector(v), vector(v + 1), lane_count(), first), any);
  }

  // `sum` with the product of `weight` and what the tap so many columns and rows away sees from
  // vector v.
  Expr with_tap(const Expr& sum, const Expr& weight, const std::function<Expr(Expr)>& vector,
                const Expr& v, int right, int down) {
    const int last = vectors() - 1;
    const auto lanes_apart = down * pitch() + lane_count() * 2;  // from two vectors before
    const Expr from = v + (lanes_apart / lane_count() - 2);
    const auto at = [&](const Expr& which) { return vector(clamp(which, 0, last)); };
    const auto is_outside = [&](const Expr& which) { return which < 0 || which > last; };
    Expr seen = at(from);
    if (lanes_apart % lane_count() != 0) {
      seen = take_lanes(select(is_outside(from), 0.0f, at(from)),
                        select(is_outside(from + 1), 0.0f, at(from + 1)), lane_count(),
                        [&](int lane) { return lane + pitch(); });
    }
    // Those that it sees.
    const Expr last_row = side() - 1 - (last - v) * rows() + down,
               first_row = last_row + 1 - rows();
    return select(last_row < 0 || first_row >= side(), sum,
                  fma_f32(shifted(seen, right), weight, sum));
  }

  Expr shifted(const Expr& seen, int right) {
    if (right == 0) return seen;
    if (std::abs(right) <= pitch() - side()) {  // zeros come around
      return take_lanes(seen, seen, lane_count(),
                        [&](int lane) { return (lane + right + lane_count()) % lane_count(); });
    }
    return take_lanes(seen, Expr(0.0f), lane_count(), [&](int lane) {
      const int column = column_of(lane);
      const bool exists = column >= 0 && column + right >= 0 && column + right < side();
      return exists ? lane + right : zero();
    });
  }
};

class ConvDepthSquares : public SquaresGenerator<ConvDepthSquares> {
 public:
  Input<Buffer<float, 3>> in{"in"};  // (a plane's pixels, g, n)
  DepthWindows<3> windows;           // (kx, ky, g)
  EpilogueInputs<1, 3> epilogue;
  Output<Buffer<float, 3>> out{"out"};  // as in

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
    part = RDom(0, lane_count(), 0, vectors(), "part");
    const int last = vectors() - 1;
    const Expr at = last - part.y;  // each before those that it overwrites
    const Expr place = place_of(at, part.x);
    const Expr result =
        without_pitch(at, [&](const Expr& v) { return sums(part.x, min(v, last), g, n); });
    out(f, g, n) = undef<float>();
    // Asks for the next plane's: rows that are stored last to first wait longer for their memory.
    const Expr value = with_prefetch(result, out(place + plane(), g, n));
    out(place, g, n) = epilogue.with_relu(epilogue.with_terms(value, {g}, {place, g, n}));
  }

  void schedule() {
    set_mins(in, out);
    set_any_layout(windows.weights);
    epilogue.set_layouts();
    epilogue.specialize(Func(out).update(), [this](Stage stage) { tile(stage); });
    for (Func func : {row, sums}) {
      func.compute_at(out, gi).store_in(MemoryType::Register);
      func.bound(l, 0, lane_count()).bound(v, 0, vectors()).vectorize(l).unroll(v);
    }
  }

 private:
  void tile(Stage stage) {
    stage.allow_race_conditions()
        .split(g, g, gi, windows.planes, TailStrategy::GuardWithIf)
        .reorder({part.x, part.y, gi, g, n})
        .vectorize(part.x)
        .unroll(part.y)
        .gpu_blocks(g, n)
        .never_partition_all();
  }

  Var f{"f"}, l{"l"}, v{"v"}, g{"g"}, gi{"gi"}, n{"n"};
  Func row{"row"}, sums{"sums"};
  RDom part;
};

// Of some planes of an image that lie one after the other, then of the same ones of the next image:
// those of one plane in all images are short streams, and often multiples of 4 KiB apart, more of
// them than a set of the nearest cache has lines.
class ConvDepthWeightSquares : public SquaresGenerator<ConvDepthWeightSquares> {
 public:
  Input<Buffer<float, 3>> in{"in"}, dy{"dy"};  // (a plane's pixels, g, n)
  Input<int> planes{"planes"};                 // of a work-group
  Output<Buffer<float, 3>> dw{"dw"};           // (kx, ky, g)

  void generate() {
    part = RDom(0, vectors(), 0, in.dim(2).extent(), "part");
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
    lanes(l, g) = Tuple(std::vector<Expr>(taps(), 0.0f));
    for (int tap = 0; tap < taps(); ++tap) {
      const int right = tap % across() - reach(), down = tap / across() - reach();
      const Expr sum = lanes(l, g)[tap];
      sums.push_back(rows() == 1 ? with_row(sum, right, down)
                                 : with_tap(sum, dy_of(v), x_of, v, right, down));
    }
    sums[0] = with_next(with_next(sums[0], in), dy);
    lanes(l, g) = Tuple(sums);
    fold = {LaneFold(lanes, lane_count(), {g}, add_by_tap)};
    dw(kx, ky, g) = mux(ky * across() + kx, fold[0].total());
  }

  void schedule() {
    set_mins(in, dy, dw);
    for (int d = 0; d < 2; ++d) dw.dim(d).set_bounds(0, across());
    Func(dw)
        .split(g, g, gi, planes, TailStrategy::GuardWithIf)
        .reorder(kx, ky, gi, g)
        .gpu_blocks(g)
        .unroll(kx)
        .unroll(ky)
        .never_partition_all();
    fold[0].keep(dw, gi);
    lanes.compute_at(dw, g).bound_storage(g, kDepthWeightPlanes);
    lanes.update().reorder({l, part.x, g, part.y}).vectorize(l).unroll(part.x);
    if (rows() == 1) return;  // inlined, a row at a time
    row.compute_at(lanes, g).store_in(MemoryType::Register);
    row.bound(l, 0, lane_count()).bound(u, 0, vectors()).vectorize(l).unroll(u);
  }

 private:
  Var l{"l"}, u{"u"}, g{"g"}, gi{"gi"}, n{"n"}, kx{"kx"}, ky{"ky"};
  Func row{"row"}, lanes{"lanes"};
  std::vector<LaneFold> fold;
  RDom part;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthSquares, conv_depth_squares)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthWeightSquares, conv_depth_weight_squares)
