// Depthwise 3x3 and 5x5 of stride 1 or 2 between zeros one or two wide, on CPUs with wide units,
// where planes of results are squares of at most half a vector: rows of two planes side by side are
// a register. That is half as many multiply-adds as with a plane's own rows in half vectors, and a
// shuffle for both. With a stride of 2 a row of x is up to a vector, of which that shuffle takes
// every other pixel.
//
//   conv_depth_pairs         y, or dx with flipped weights, taps added column by column
//   conv_depth_weight_pairs  dw: sums over pixels in a vector of sums per tap, added at the end
//
// A row ends with its half. Lanes before it have what lies before it, which no tap sees, and their
// results are overwritten by the row before; the first row begins where the plane does.
#include "kernels/conv/depthwise/conv_depth.h"
#include "kernels/conv/depthwise/conv_depth_recipe.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/lane_fold.h"
#include "kernels/recipe/shuffle.h"

#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kHalf = kLanes / 2;

template <class Derived>
class PairsGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> side_of_plane{"side", 7};
  GeneratorParam<int> window{"window", 3};  // rows and columns of it: 3 or 5
  GeneratorParam<int> stride{"stride", 1};  // 1 or 2, where planes are even squares

 protected:
  static constexpr int kAhead = 2;  // pairs: so long before it is used, memory is asked for

  int side() const { return side_of_plane; }
  int across() const { return window; }
  int reach() const { return across() / 2; }
  int taps() const { return across() * across(); }
  int margin() const { return kHalf - side(); }  // lanes before a row
  int plane() const { return side() * side(); }
  int whole() const { return stride * side(); }  // rows and columns of x
  int pixels() const { return whole() * whole(); }

  GeneratorInput<int> pairs{"pairs"};         // of a work-group
  GeneratorInput<Buffer<float, 4>> in{"in"};  // (a plane's pixels, half, pair, n)
  Var l{"l"}, v{"v"}, h{"h"}, g{"g"}, n{"n"};

  // Where row v's half begins in its plane.
  Expr place_of(const Expr& v) const { return select(v == 0, 0, v * side() - margin()); }
  Expr clamped(const Expr& place) const { return unsafe_promise_clamped(place, 0, plane() - 1); }

  // Rows v of both planes.
  template <class Planes>
  Expr row_of(Planes& planes, const Expr& v, const Expr& image) {
    const auto half = [&](int which) {
      return Expr(planes(clamped(place_of(v) + l), which, g, image));
    };
    const Expr row = join_lanes({half(0), half(1)});
    const Expr first = take_lanes(
        row, row, kLanes, [&](int lane) { return lane / kHalf * kHalf + (lane + side()) % kHalf; });
    return margin() == 0 ? row : select(v == 0, first, row);
  }

  // What a tap in column kx of a window sees of row `row` of x of both planes; with a stride of 1
  // of those, which are `rows`.
  Expr seen(const Expr& row, int kx, const Expr& rows, const Expr& image) {
    if (stride == 1) return shifted(rows, kx - reach());
    const auto column = [&](int lane) { return 2 * (lane % kHalf - margin()) + kx - reach(); };
    const auto exists = [&](int lane) {
      return lane % kHalf >= margin() && column(lane) >= 0 && column(lane) < whole();
    };
    // Planes end with their last row.
    const int last = whole() - 1, before = last * whole() - (pixels() - kLanes);
    const Expr start = select(row == last, pixels() - kLanes, row * whole());
    const auto plane_of = [&](int which) {
      return Expr(in(unsafe_promise_clamped(start + l, 0, pixels() - 1), which, g, image));
    };
    const auto of_row = [&](int skipped) {
      return take_lanes(plane_of(0), plane_of(1), kLanes, [&](int lane) {
        return exists(lane) ? lane / kHalf * kLanes + skipped + column(lane) : 0;
      });
    };
    Expr value = select(row == last, of_row(before), of_row(0));
    if (!exists(margin())) value = select(l % kHalf > margin(), value, 0.0f);
    if (!exists(kHalf - 1)) value = select(l % kHalf < kHalf - 1, value, 0.0f);
    return value;
  }

  // What a tap so many columns to the right sees of them.
  Expr shifted(const Expr& row, int right) const {
    if (right == 0) return row;
    return take_lanes(row, Expr(0.0f), kLanes, [&](int lane) {
      const int column = lane % kHalf - margin();
      const bool exists = column >= 0 && column + right >= 0 && column + right < side();
      return exists ? lane + right : kLanes;
    });
  }

  // Dense planes, or windows, whose halves are their dimension `half`, of so many elements each.
  template <class Planes>
  static void set_pairs(Planes& planes, int half, int elements) {
    planes.dim(half).set_bounds(0, 2).set_stride(elements);
    planes.dim(half + 1).set_stride(2 * elements);
  }
  template <class Windows>
  void set_windows(Windows& windows) {
    windows.dim(0).set_bounds(0, across());
    windows.dim(1).set_bounds(0, across()).set_stride(across());
    set_pairs(windows, 2, taps());
  }

  // Asks for share v of what comes so many pairs later, of planes of so many pixels.
  template <class Planes>
  Expr asking(const Expr& value, Planes& planes, int all, const Expr& v, const Expr& lane,
              const Expr& image) {
    const Expr pixel = v * kLanes;  // of those of both planes
    return with_prefetch(
        value, planes(unsafe_promise_clamped(pixel % all + lane, 0, all - 1), pixel / all,
                      unsafe_promise_clamped(g + kAhead, 0, planes.dim(2).extent() - 1), image));
  }

  // The same, row v asking for so many shares.
  template <class Planes>
  Expr asking_row(Expr value, Planes& planes, int all, int shares, const Expr& v,
                  const Expr& image) {
    for (int k = 0; k < shares; ++k) {
      const Expr share = shares * v + k;  // with a stride some are beyond the last
      value = asking(value, planes, all, stride == 1 ? share : min(share, 2 * all / kLanes - 1), l,
                     image);
    }
    return value;
  }
};

class ConvDepthPairs : public PairsGenerator<ConvDepthPairs> {
 public:
  DepthWindows<4> given;  // (kx, ky, half, pair); planes are images, of which it makes windows once
  EpilogueInputs<2, 4> epilogue;        // its channel: (half, pair)
  Output<Buffer<float, 4>> out{"out"};  // as in

  void generate() {
    const auto weight = [&](int half) { return given.weight(across(), x, y, {half, g}); };
    windows(l, x, y, g) = select(l < kHalf, weight(0), weight(1));
    if (stride == 1) row(l, v, g, n) = asking_row(row_of(in, v, n), in, plane(), 1, v, n);
    // Column by column of taps, whose shifted rows and all sums are registers; a sum waits four
    // cycles for the one before.
    window_taps = RDom(0, across(), 0, across(), "taps");
    const Expr ky = window_taps.x, kx = window_taps.y, from = stride * v + (ky - reach());
    std::vector<Expr> of_taps;
    for (int tap = 0; tap < across(); ++tap) {
      of_taps.push_back(seen(v, tap, stride == 1 ? Expr(row(l, v, g, n)) : Expr(), n));
    }
    if (stride == 2) of_taps[0] = asking_row(of_taps[0], in, pixels(), stride, v, n);
    moved(l, v, t, g, n) = mux(t, of_taps);
    sums(l, v, g, n) = 0.0f;
    sums(l, v, g, n) = select(from < 0 || from >= whole(), sums(l, v, g, n),
                              fma_f32(moved(l, clamp(from, 0, whole() - 1), kx, g, n),
                                      windows(l, kx, ky, g), sums(l, v, g, n)));
    // The first row's half goes on with the second row.
    const Expr first = take_lanes(sums(l, 0, g, n), sums(l, 1, g, n), kLanes, [&](int lane) {
      const int place = lane % kHalf, at = lane / kHalf * kHalf + margin();
      return place < side() ? at + place : kLanes + at + place - side();
    });
    stored(l, v, g, n) = margin() == 0 ? sums(l, v, g, n) : select(v == 0, first, sums(l, v, g, n));

    part = RDom(0, kHalf, 0, side(), 0, 2, "part");
    const Expr at = side() - 1 - part.y;  // each before those that it overwrites
    const Expr place = clamped(place_of(at) + part.x);
    const Expr value = stored(part.x + part.z * kHalf, at, g, n);
    out(f, h, g, n) = undef<float>();
    const std::vector<Expr> to{place, part.z, g, n};
    // Stores wait for their memory too.
    const Expr ahead = out(kAhead * 2 * plane() + at * kLanes + part.x, 0, g, n);
    const Expr asked = select(part.z == 0, with_prefetch(value, ahead), value);
    out(to) = epilogue.with_relu(epilogue.with_terms(asked, {part.z, g}, to));
  }

  void schedule() {
    set_mins(in, out, given.weights);
    set_pairs(in, 1, pixels());
    set_pairs(out, 1, plane());
    set_windows(given.weights);
    epilogue.set_layouts();
    epilogue.specialize(Func(out).update(), [this](Stage stage) { tile(stage); });
    windows.compute_at(out, g).store_in(MemoryType::Stack).vectorize(l);
    windows.bound(l, 0, kLanes).bound(x, 0, across()).bound(y, 0, across());
    windows.unroll(x).unroll(y).bound_storage(g, kDepthPairs);
    std::vector<Func> held = {sums, stored};
    if (stride == 1) held.push_back(row);
    for (Func func : held) {
      func.compute_at(out, gi).store_in(MemoryType::Register);
      func.bound(l, 0, kLanes).bound(v, 0, side()).vectorize(l).unroll(v);
    }
    sums.update().reorder({l, v, window_taps.x, window_taps.y, g, n}).vectorize(l).unroll(v);
    sums.update().unroll(window_taps.x).unroll(window_taps.y);
    moved.compute_at(sums, window_taps.y).store_in(MemoryType::Register);
    moved.bound(l, 0, kLanes).bound(v, 0, whole()).bound_extent(t, 1).vectorize(l).unroll(v);
  }

 private:
  void tile(Stage stage) {
    stage.allow_race_conditions()
        .split(g, g, gi, pairs, TailStrategy::GuardWithIf)
        .split(n, n, ni, given.planes, TailStrategy::GuardWithIf)
        .reorder({part.x, part.y, part.z, gi, ni, g, n})
        .vectorize(part.x)
        .unroll(part.y)
        .unroll(part.z)
        .gpu_blocks(g, n)
        .never_partition_all();
  }

  Var f{"f"}, t{"t"}, x{"x"}, y{"y"}, gi{"gi"}, ni{"ni"};
  Func windows{"windows"}, row{"row"}, moved{"moved"}, sums{"sums"}, stored{"stored"};
  RDom part, window_taps;
};

class ConvDepthWeightPairs : public PairsGenerator<ConvDepthWeightPairs> {
 public:
  Input<Buffer<float, 4>> dy{"dy"};   // as in
  Output<Buffer<float, 4>> dw{"dw"};  // (kx, ky, half, pair)

  void generate() {
    part = RDom(0, whole(), 0, in.dim(3).extent(), "part");
    const RVar v = part.x, image = part.y;
    // A row of x at a time, shifted once for each column, beside those of dy around it.
    const Expr x = stride == 1 ? row_of(in, v, image) : Expr();
    std::vector<Expr> added;
    lanes(l, g) = Tuple(std::vector<Expr>(taps(), 0.0f));
    for (int tap = 0; tap < taps(); ++tap) {
      const Expr from = v - (tap / across() - reach()), of = from / stride, old = lanes(l, g)[tap];
      const Expr given = row_of(dy, clamp(of, 0, side() - 1), image);
      added.push_back(select(from < 0 || of >= side() || from % stride != 0, old,
                             fma_f32(seen(v, tap % across(), x, image), given, old)));
    }
    added[0] = asking_row(added[0], in, pixels(), stride, v, image);
    added[0] = asking_row(added[0], dy, plane(), 1, v, image);
    lanes(l, g) = Tuple(added);
    std::vector<Expr> own;  // without the lanes before rows
    for (int tap = 0; tap < taps(); ++tap) {
      own.push_back(select(l < margin(), 0.0f, lanes(l + h * kHalf, g)[tap]));
    }
    halves(l, h, g) = Tuple(own);
    fold = {LaneFold(halves, kHalf, {h, g}, add_by_tap)};
    dw(kx, ky, h, g) = mux(ky * across() + kx, fold[0].total());
  }

  void schedule() {
    set_mins(in, dy, dw);
    set_pairs(in, 1, pixels());
    set_pairs(dy, 1, plane());
    set_windows(dw);
    Func(dw)
        .split(g, g, gi, pairs, TailStrategy::GuardWithIf)
        .reorder(kx, ky, h, gi, g)
        .gpu_blocks(g)
        .unroll(kx)
        .unroll(ky)
        .never_partition_all();
    fold[0].keep(dw, h);
    lanes.compute_at(dw, g).store_in(MemoryType::Stack).bound_storage(g, kDepthPairs);
    lanes.bound(l, 0, kLanes).vectorize(l);
    lanes.update().reorder({l, part.x, g, part.y}).vectorize(l).unroll(part.x);
  }

 private:
  Var gi{"gi"}, kx{"kx"}, ky{"ky"};
  Func lanes{"lanes"}, halves{"halves"};
  std::vector<LaneFold> fold;
  RDom part;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthPairs, conv_depth_pairs)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthWeightPairs, conv_depth_weight_pairs)
