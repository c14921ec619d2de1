// Small squares in registers: how rows of a plane lie in vectors, for depthwise convolutions on
// CPUs. Needs Halide; stateless.
//
// Rows end with their lanes; those before them are zeros, and results in them are overwritten by
// the vector before. So the first vector of a plane, which may lack a row, begins where the plane
// does, and the last one ends with it. (The other way round, masks would be instructions of their
// own: of lanes in order from the first, compilers make vexpandps, two on a Zen 4.)
#pragma once

#include "kernels/conv/conv_recipe.h"
#include "kernels/conv/depthwise/conv_depth.h"
#include "kernels/conv/depthwise/conv_depth_recipe.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/lane_fold.h"
#include "kernels/recipe/layout.h"
#include "kernels/recipe/shuffle.h"

#include <Halide.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ballast::kernels {

template <class Derived>
class SquaresGenerator : public Halide::Generator<Derived> {
 public:
  Halide::GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Halide::GeneratorParam<int> side_of_plane{"side", 14};
  Halide::GeneratorParam<int> window{"window", 3};  // rows and columns of it: 3 or 5
  Halide::GeneratorParam<int> lanes_of_vector{"lanes", 16};

 protected:
  using Expr = Halide::Expr;

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
    return Halide::unsafe_promise_clamped(select(v == 0, 0, start) + l, 0, plane() - 1);
  }

  // Of lane `lane` of vector v, less than 0 where no pixel is.
  int row_of(int v, int lane) const { return side() - rows() * (vectors() - v) + lane / pitch(); }
  int column_of(int lane) const { return lane % pitch() - (pitch() - side()); }

  // Whether a vector's lanes are in order_of_halves().
  virtual bool is_in_halves() const { return false; }
  // Which lane of its vector lane `lane` of a row is, and the other way round.
  int order(int lane) const { return is_in_halves() ? order_of_halves(lane) : lane; }
  // Lanes before a row that are no zeros.
  int unclear_lanes() const { return is_in_halves() ? lane_count() - side() : 0; }

  // Vector v of a plane, from what lies there.
  Expr with_pitch(const Expr& l, const Expr& v, const Expr& pixels) {
    const auto spread = [&](int vector, int start) {
      return take_lanes(pixels, Expr(0.0f), lane_count(), [&](int lane) {
        const int row = row_of(vector, order(lane)), column = column_of(order(lane));
        return row < 0 || column < 0 ? zero() : row * side() + column - start;
      });
    };
    Expr any = spread(vectors() - 1, plane() - lane_count());
    if (rows() == 1) {
      any = is_in_halves() ? reordered_halves(pixels)
                           : select(l < lane_count() - side(), 0.0f, pixels);
    }
    return select(v == 0, spread(0, 0), any);
  }

  // What lies there, vector v, of a plane whose vectors are `vector(v)`.
  Expr without_pitch(const Expr& v, const std::function<Expr(Expr)>& vector) {
    const auto lane_of = [&](int row, int column) {
      const int lane = (row + rows() * vectors() - side()) * pitch() + pitch() - side() + column;
      return lane / lane_count() * lane_count() + order(lane % lane_count());
    };
    const auto first = [&](int lane) { return lane_of(lane / side(), lane % side()); };
    const auto dense = [&](int lane) {
      const int place = std::max(plane() - lane_count() + lane, plane() - rows() * side());
      return lane_of(place / side(), place % side()) % lane_count();
    };
    Expr any = take_lanes(vector(v), vector(v), lane_count(), dense);
    if (rows() == 1) any = is_in_halves() ? reordered_halves(vector(v)) : vector(v);
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

// What kernels have whose results are such planes. `Base` is a SquaresGenerator; what is derived
// defines sums(lane, vector, g, n) of a plane.
template <class Base>
class SquareResults : public Base {
 public:
  using Expr = Halide::Expr;

  Halide::GeneratorInput<Halide::Buffer<float, 3>> in{"in"};  // (a plane's pixels, g, n)
  DepthWindows<3> windows;                                    // (kx, ky, g)
  EpilogueInputs<1, 3> epilogue;
  Halide::GeneratorOutput<Halide::Buffer<float, 3>> out{"out"};  // as in

 protected:
  using Base::vectors;

  Halide::Var l{"l"}, v{"v"}, g{"g"}, gi{"gi"}, n{"n"};
  Halide::Func sums{"sums"};

  void store_sums() {
    part = Halide::RDom(0, this->lane_count(), 0, vectors(), "part");
    const int last = vectors() - 1;
    const Expr at = last - part.y;  // each before those that it overwrites
    const Expr place = this->place_of(at, part.x);
    const Expr result =
        this->without_pitch(at, [&](const Expr& v) { return sums(part.x, min(v, last), g, n); });
    out(f, g, n) = Halide::undef<float>();
    // Asks for the next plane's: rows that are stored last to first wait longer for their memory.
    const Expr value = with_prefetch(result, out(place + this->plane(), g, n));
    out(place, g, n) = epilogue.with_relu(epilogue.with_terms(value, {g}, {place, g, n}));
  }

  // `held`: by vector too, in registers for a plane, as the sums are.
  void schedule_sums(std::vector<Halide::Func> held = {}) {
    set_mins(in, out);
    set_any_layout(windows.weights);
    epilogue.set_layouts();
    epilogue.specialize(Halide::Func(out).update(), [this](Halide::Stage stage) { tile(stage); });
    held.push_back(sums);
    for (Halide::Func func : held) {
      func.compute_at(out, gi).store_in(Halide::MemoryType::Register);
      func.bound(l, 0, this->lane_count()).bound(v, 0, vectors()).vectorize(l).unroll(v);
    }
  }

 private:
  void tile(Halide::Stage stage) {
    stage.allow_race_conditions()
        .split(g, g, gi, windows.planes, Halide::TailStrategy::GuardWithIf)
        .reorder({part.x, part.y, gi, g, n})
        .vectorize(part.x)
        .unroll(part.y)
        .gpu_blocks(g, n)
        .never_partition_all();
  }

  Halide::Var f{"f"};
  Halide::RDom part;
};

// What kernels of their weight gradients have: of some planes of an image that lie one after the
// other, then of the same ones of the next image. Those of one plane in all images are short
// streams, and often multiples of 4 KiB apart, more of them than a set of the nearest cache has
// lines. What is derived says what a vector of results adds to a tap's sum.
template <class Base>
class SquareWeights : public Base {
 public:
  using Expr = Halide::Expr;

  Halide::GeneratorInput<Halide::Buffer<float, 3>> in{"in"}, dy{"dy"};  // (a plane's pixels, g, n)
  Halide::GeneratorInput<int> planes{"planes"};                         // of a work-group
  Halide::GeneratorOutput<Halide::Buffer<float, 3>> dw{"dw"};           // (kx, ky, g)

 protected:
  Halide::Var l{"l"}, g{"g"}, gi{"gi"}, n{"n"};
  Halide::Func lanes{"lanes"};
  Halide::RDom part;  // step, image

  // In so many steps of a plane.
  void start_sums(int steps) {
    part = Halide::RDom(0, steps, 0, in.dim(2).extent(), "part");
    lanes(l, g) = Halide::Tuple(std::vector<Expr>(this->taps(), 0.0f));
  }
  Expr old_sum(int tap) { return lanes(l, g)[tap]; }
  void store_sums(const std::vector<Expr>& sums) {
    lanes(l, g) = Halide::Tuple(sums);
    Halide::Func folded = lanes;
    if (this->unclear_lanes() > 0) {
      std::vector<Expr> of_pixels;
      for (int tap = 0; tap < this->taps(); ++tap) {
        of_pixels.push_back(select(l < this->unclear_lanes(), 0.0f, lanes(l, g)[tap]));
      }
      folded = Halide::Func("of_pixels");
      folded(l, g) = Halide::Tuple(of_pixels);
    }
    fold.emplace(folded, this->lane_count(), std::vector<Halide::Var>{g}, add_by_tap);
    dw(kx, ky, g) = mux(ky * this->across() + kx, fold->total());
  }

  void schedule_sums() {
    set_mins(in, dy, dw);
    for (int d = 0; d < 2; ++d) dw.dim(d).set_bounds(0, this->across());
    Halide::Func(dw)
        .split(g, g, gi, planes, Halide::TailStrategy::GuardWithIf)
        .reorder(kx, ky, gi, g)
        .gpu_blocks(g)
        .unroll(kx)
        .unroll(ky)
        .never_partition_all();
    fold->keep(dw, gi);
    if (this->unclear_lanes() > 0) lanes.bound(l, 0, this->lane_count()).vectorize(l);
    lanes.compute_at(dw, g).store_in(Halide::MemoryType::Stack);
    lanes.bound_storage(g, kDepthWeightPlanes);
    lanes.update().reorder({l, part.x, g, part.y}).vectorize(l).unroll(part.x);
  }

 private:
  Halide::Var kx{"kx"}, ky{"ky"};
  std::optional<LaneFold> fold;
};

}  // namespace ballast::kernels
