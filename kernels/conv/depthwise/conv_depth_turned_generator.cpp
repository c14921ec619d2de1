// Depthwise convolutions of stride 1 between zeros half a window wide, or of stride 2 that halve
// planes, on CPUs: as many planes as a vector has lanes are turned (turned_pixels.h), so that what
// a tap sees lies a distance away, whatever the width, and takes neither a shuffle nor a mask. That
// pays where windows are large.
//
//   conv_depth_turned         y, or dx of stride 1 with flipped weights: the bits of conv_depth
//   conv_depth_weight_turned  dw: sums over each strip of rows, added strip by strip
//
// A row is blocks of a few pixels, whose sums are registers; the last one moves inwards. It and the
// first one lack the taps that see beyond the row's ends, so they have code of their own.
#include "kernels/conv/conv_recipe.h"
#include "kernels/conv/depthwise/conv_depth.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/turned_pixels.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

template <class Derived>
class TurnedGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> window{"window", 5};       // rows and columns of it
  GeneratorParam<int> columns{"columns", 7};     // of a block: half a window or more
  GeneratorParam<bool> is_row{"is_row", false};  // which then is a row
  GeneratorParam<int> stride{"stride", 1};       // 1 or 2
  GeneratorParam<int> lanes_of_vector{"lanes", 8};

 protected:
  int lane_count() const { return lanes_of_vector; }
  int side() const { return window; }
  int taps() const { return side() * side(); }
  int reach() const { return side() / 2; }
  int block() const { return columns; }
  int apart() const { return stride; }

  // Of planes of results; those of x are a stride times as wide and high. The last block of several
  // has `reach` pixels or more that are in no other. A strip's `rows` are a divisor of the height.
  GeneratorInput<int> width{"width"}, height{"height"}, rows{"rows"};
  GeneratorInput<Buffer<float, 4>> in{"in"};  // (a plane's pixels, plane, 1, n)
  Var l{"l"}, g{"g"}, v{"v"}, t{"t"}, n{"n"};

  Expr blocks() { return (width + block() - 1) / block(); }

  // Blocks of a row that lack the same taps.
  struct Blocks {
    std::string name;
    bool is_first, is_last;
    Expr count;
  };
  std::vector<Blocks> all_blocks() {
    if (is_row) return {{"row", true, true, 1}};
    return {{"first", true, false, 1},
            {"inner", false, false, max(blocks() - 2, 0)},
            {"last", false, true, 1}};
  }
  // The column at which block b of them begins.
  Expr start_of(const Blocks& of, const Expr& b) {
    if (of.is_first) return 0;
    return of.is_last ? width - block() : (b + 1) * block();
  }
  // The column of x that tap kx of result j of a block sees, from where the block's pixels begin.
  Expr column_seen(const Expr& j, const Expr& kx) const { return j * apart() + kx - reach(); }
  // Whether there is such a pixel.
  Expr sees(const Blocks& of, const Expr& j, const Expr& kx) const {
    const Expr seen = column_seen(j, kx);
    return (seen >= 0 || !of.is_first) && (seen < block() * apart() || !of.is_last);
  }
  // Whether there is a row that row y of strip t sees through the window's row ky.
  Expr has_row(const Expr& y, const Expr& ky) {
    const Expr row = (t * rows + y) * apart() + ky - reach();
    return row >= 0 && row < height * apart();
  }

  // planes of `turned`: lanes beyond the last one repeat it.
  template <class Planes>
  TurnedPixels::Source source_of(Planes& planes, const Expr& pixels) {
    const Expr last = planes.dim(1).extent() - 1;
    const auto plane = [=](const Expr& lane) { return min(v * lane_count() + lane, last); };
    return {planes, pixels, 0, plane, lane_count()};
  }
  Expr vectors(const Expr& pixels) const { return (pixels + lane_count() - 1) / lane_count(); }
  static Expr place(const Expr& pixel) {
    return unsafe_promise_clamped(pixel, 0, kDepthTurnedPlaces - 1);
  }

  // turned(lane, 0, place, v, t, n): of `count` rows of planes, `across` pixels wide, from row
  // `first` on those that exist; pixel x of row first + y at place y across + x.
  template <class Planes>
  void turn(TurnedPixels& turned, Planes& planes, const Expr& first, const Expr& count,
            const Expr& across, const Expr& next_image) {
    const Expr all = planes.dim(0).extent(), begin = max(first, 0) * across,
               end = min((first + count) * across, all);
    turned.define(source_of(planes, all), vectors(count * across), 1, kDepthTurnedPlaces,
                  [=](const Expr&) {
                    const auto place = [=](const Expr& pixel) { return pixel - first * across; };
                    return TurnedPixels::Run{n, begin, end, all - lane_count(), place, next_image};
                  },
                  {v, t, n});
  }
  // What strip t's windows see of x.
  void turn_x(const Expr& next_image) {
    turn(x, in, t * rows * apart() - reach(), (rows - 1) * apart() + side(), width * apart(),
         next_image);
  }
  // What tap (kx, ky) of result j sees, of a block that begins at column `start` of row y.
  Expr seen(const Expr& y, const Expr& ky, const Expr& start, const Expr& j, const Expr& kx,
            const Expr& n) {
    const Expr row = y * apart() + ky, column = start * apart() + column_seen(j, kx);
    return this->x.turned(l, 0, place(row * (width * apart()) + column), v, t, n);
  }

  TurnedPixels x{"x"};
};

class ConvDepthTurned : public TurnedGenerator<ConvDepthTurned> {
 public:
  Input<int> images{"images"};  // of a work-group, which turns the weights once
  Input<int> is_flipped{"is_flipped"};
  Input<Buffer<float, 4>> weights{"weights"};  // (tap, plane, 1, 1)
  EpilogueInputs<1, 4> epilogue;
  Output<Buffer<float, 4>> out{"out"};  // (a strip's pixels, strip, plane, n)

  void generate() {
    // Small planes are soon done, and the next image's are far from these.
    turn_x(is_row ? unsafe_promise_clamped(n + 1, 0, in.dim(3).extent() - 1) : Expr());
    tap_weights.define(source_of(weights, taps()), vectors(taps()), 1, taps(),
                       [this](const Expr&) {
                         const auto place = [this](const Expr& tap) {
                           return flipped_if(is_flipped, tap, taps());
                         };
                         return TurnedPixels::Run{0, 0, taps(), taps() - lane_count(), place};
                       },
                       {v, t});
    results(l, q, v, t, n) = undef<float>();
    window_taps = RDom(0, side(), 0, side(), "taps");
    window_taps.where(has_row(y, window_taps.y));
    for (const Blocks& of : all_blocks()) add_blocks(of);
    back.define(
        lane_count(), out.dim(0).extent(), out.dim(2).extent(), {t, n},
        [&](const Expr& l, const Expr& pixel, const Expr& v) {
          return results(l, place(pixel), v, t, n);
        },
        /*is_stored=*/true);
    out(f, t, g, n) = undef<float>();
    const std::vector<Expr> at{back.pixel(), t, back.plane(), n};
    // Of small planes stores wait for their memory: asks for the next image's.
    const Expr ahead = out(back.pixel() + out.dim(3).stride(), t, back.plane(), n);
    const Expr value = is_row ? with_prefetch(back.value(), ahead) : back.value();
    out(at) = epilogue.with_relu(epilogue.with_terms(value, {back.plane()}, at));
  }

  void schedule() {
    set_mins(in, out, weights);
    epilogue.set_layouts();
    epilogue.specialize(Func(out).update(), [this](Stage stage) {
      stage.split(n, n, image, images, TailStrategy::GuardWithIf);
      stage.reorder({back.part[0], back.part[1], back.part[2], image, back.part[3], t, n});
      back.schedule(out, stage);
      stage.gpu_blocks(t, n);
    });
    const LoopLevel each(out, image);
    x.schedule(each, 1);
    tap_weights.schedule(LoopLevel(out, back.vector_of_planes()), 1);
    results.compute_at(each).store_in(MemoryType::Stack).bound_storage(q, kDepthTurnedPlaces);
    results.bound_extent(l, lane_count());
    for (const Var& one : {v, t, n}) results.bound_extent(one, 1);
    for (size_t i = 0; i < sums.size(); ++i) {
      const RDom& part = parts[i];
      results.update(i)
          .reorder({l, part.x, part.y, part.z, v, t, n})
          .vectorize(l)
          .unroll(part.x)
          .never_partition_all();
      Func sum = sums[i];
      sum.compute_at(results, part.y).store_in(MemoryType::Register);
      sum.bound_extent(l, lane_count()).bound_extent(j, block()).vectorize(l).unroll(j);
      for (const Var& one : {s, y, v, t, n}) sum.bound_extent(one, 1);
      sum.update()
          .reorder({l, j, window_taps.x, window_taps.y, s, y, v, t, n})
          .vectorize(l)
          .unroll(j)
          .unroll(window_taps.x)
          .never_partition_all();
    }
  }

 private:
  // Their sums, of those that begin at column s of row y, and the results that they are.
  void add_blocks(const Blocks& of) {
    Func sum("sum_" + of.name);
    const Expr kx = window_taps.x, ky = window_taps.y;
    sum(l, j, s, y, v, t, n) = 0.0f;
    const Expr before = sum(l, j, s, y, v, t, n),
               weight = tap_weights.turned(l, 0, ky * side() + kx, v, t),
               pixel = seen(y, ky, s, j, kx, n);
    sum(l, j, s, y, v, t, n) = select(sees(of, j, kx), fma_f32(pixel, weight, before), before);
    const RDom part(0, block(), 0, rows, 0, of.count, "part_" + of.name);
    const Expr start = start_of(of, part.z);
    results(l, place(part.y * width + start + part.x), v, t, n) =
        sum(l, part.x, start, part.y, v, t, n);
    sums.push_back(sum);
    parts.push_back(part);
  }

  Var f{"f"}, j{"j"}, q{"q"}, s{"s"}, y{"y"}, image{"image"};
  TurnedPixels tap_weights{"weights"};
  TurnedBack back;
  Func results{"results"};
  RDom window_taps;
  std::vector<Func> sums;
  std::vector<RDom> parts;
};

class ConvDepthWeightTurned : public TurnedGenerator<ConvDepthWeightTurned> {
 public:
  Input<Buffer<float, 4>> dy{"dy"};   // (a plane's pixels, plane, 1, n)
  Output<Buffer<float, 3>> dw{"dw"};  // (kx, ky, plane)

  void generate() {
    strips = RDom(0, height / rows, 0, in.dim(3).extent(), "strips");
    const Expr next = unsafe_promise_clamped(n + 1, 0, in.dim(3).extent() - 1);
    turn_x(next);
    turn(given, dy, t * rows, rows, width, next);
    sums(l, p, kx, ky, v, t, n) = 0.0f;
    for (const Blocks& of : all_blocks()) add_blocks(of);
    total(l, kx, ky, v) = 0.0f;
    const auto sum_of = [&](int copy) {
      return Expr(sums(l, copy, kx, ky, v, strips.x, strips.y));
    };
    Expr sum = sum_of(0);
    for (int copy = 1; copy < copies(); ++copy) sum = strict_float(sum + sum_of(copy));
    total(l, kx, ky, v) = strict_float(total(l, kx, ky, v) + sum);
    dw(kx, ky, g) = total(g % lane_count(), kx, ky, g / lane_count());
  }

  void schedule() {
    set_mins(in, dy, dw);
    for (int d = 0; d < 2; ++d) dw.dim(d).set_bounds(0, side());
    Func(dw)
        .split(g, v, gi, lane_count(), TailStrategy::GuardWithIf)
        .reorder(kx, ky, gi, v)
        .gpu_blocks(v)
        .never_partition_all();
    total.compute_at(dw, v).store_in(MemoryType::Stack).vectorize(l);
    total.bound_extent(l, lane_count()).bound_extent(v, 1);
    total.bound_extent(kx, side()).bound_extent(ky, side());
    total.update()
        .reorder({l, kx, ky, strips.x, strips.y, v})
        .vectorize(l)
        .unroll(kx)
        .never_partition_all();
    const LoopLevel strip(total, strips.x);
    x.schedule(strip, 1);
    given.schedule(strip, 1);
    sums.compute_at(total, ky).store_in(MemoryType::Register).vectorize(l).unroll(p).unroll(kx);
    sums.bound_extent(l, lane_count()).bound_extent(p, copies()).bound_extent(kx, side());
    for (const Var& one : {ky, v, t, n}) sums.bound_extent(one, 1);
    for (size_t i = 0; i < parts.size(); ++i) {
      const RDom& part = parts[i];
      const auto tile = [&](Stage stage) {
        stage.reorder({l, kx, part.x, part.y, part.z, ky, v, t, n})
            .vectorize(l)
            .unroll(kx)
            .unroll(part.x)
            .never_partition_all();
      };
      if (!is_row) tile(sums.update(i).specialize(has_whole_blocks()));
      tile(sums.update(i));
    }
  }

 private:
  // Of a row of taps, for pixels in turns: a multiply-add waits four cycles for the one before.
  int copies() const { return std::max(1, 12 / side()); }
  Expr has_whole_blocks() { return width % block() == 0; }

  void add_blocks(const Blocks& of) {
    RDom part(0, block(), 0, of.count, 0, rows, "part_" + of.name);
    const Expr j = part.x, y = part.z, start = start_of(of, part.y);
    part.where(has_row(y, ky));
    Expr one = given.turned(l, 0, place(y * width + start + j), v, t, n);
    if (of.is_last && !of.is_first) {  // zero where the block before has been
      one = select(has_whole_blocks() || start + j >= (blocks() - 1) * block(), one, 0.0f);
    }
    const Expr pixel = seen(y, ky, start, j, kx, n),
               before = sums(l, j % copies(), kx, ky, v, t, n);
    sums(l, j % copies(), kx, ky, v, t, n) =
        select(sees(of, j, kx), fma_f32(pixel, one, before), before);
    parts.push_back(part);
  }

  Var gi{"gi"}, p{"p"}, kx{"kx"}, ky{"ky"};
  TurnedPixels given{"dy"};
  Func sums{"sums"}, total{"total"};
  RDom strips;
  std::vector<RDom> parts;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthTurned, conv_depth_turned)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthWeightTurned, conv_depth_weight_turned)
