// Convolution with pixels in the lanes on CPUs. A work-group copies the rows it reads, of all
// channels, between zeros on its stack, in the second cache; from there it computes tiles of 8
// channels x 3 vectors of pixels, weights broadcast from where they lie, and writes each channel's
// rows in one run. Nothing is packed, and nothing passes through memory but x and y.
//
// The pixels of a tile are neighbours in the padded planes, across the ends of rows: what falls
// into the gap between rows is computed and not stored. A window is a table of places, so strides
// (whose phases are planes of their own), dilations and flipped windows cost nothing.
//
// An element is the fma chain over (channel, row, column) of its window, started at +0.
#include "kernels/conv/conv_planes.h"
#include "kernels/conv/conv_recipe.h"
#include "kernels/hints.h"
#include "kernels/pointwise/pointwise_math.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

class ConvPlanes : public Generator<ConvPlanes> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<int> stride_h{"stride_h"}, stride_w{"stride_w"}, dilation_h{"dilation_h"},
      dilation_w{"dilation_w"}, top{"top"}, left{"left"}, kernel_h{"kernel_h"},
      kernel_w{"kernel_w"};
  // A padded plane of one phase: rows `pitch` apart, `plane` elements; a block of results has
  // `rows` rows and takes `elements` padded ones (whole vectors) and `tiles` tiles of pixels.
  Input<int> pitch{"pitch"}, plane{"plane"}, rows{"rows"}, elements{"elements"}, tiles{"tiles"};
  Input<int> last_lane{"last_lane"};  // of the vectors of a row of results
  // Channels are shared out among `parts` work-groups per block.
  Input<int> parts{"parts"}, tiles_per_part{"tiles_per_part"};
  Input<Buffer<float, 5>> in{"in"};            // (x, y, channel, group, n)
  Input<Buffer<float, 4>> weights{"weights"};  // (row, tap, tile, group)
  Input<Buffer<float, 2>> bias{"bias"}, scale{"scale"}, shift{"shift"};  // (channel, group)
  Input<Buffer<float, 5>> residual{"residual"};
  Input<int> has_bias{"has_bias"}, has_scale{"has_scale"}, has_residual{"has_residual"},
      has_relu{"has_relu"};
  Input<Buffer<float, 4>> same{"same"};  // as out: (pixel, channel, group, n)
  Output<Buffer<float, 5>> out{"out"};   // (x, y, channel, group, n)

  void generate() {
    pad();
    find_places();
    sum();
    store();
  }

  void schedule() {
    set_layouts();
    const RVar tile = results[4], part = results[5];
    Stage write = Func(out).update();
    write.allow_race_conditions();
    write.reorder({results[0], results[1], results[2], results[3], tile, part, g, n});
    write.gpu_blocks(part, g, n).never_partition_all();
    const Expr is_plain = has_residual == 0 && has_bias == 0 && has_scale == 0 && has_relu == 0;
    const Expr is_wide = last_lane == kLanes - 1;
    write.specialize(is_wide && is_plain).vectorize(results[0]);
    write.specialize(is_wide && has_residual == 0).vectorize(results[0]);
    write.specialize(is_wide).vectorize(results[0]);

    padded.compute_at(out, part).store_in(MemoryType::Stack);
    padded.bound(f, 0, elements).bound_storage(f, kPlaneElements).never_partition_all();
    for (const Var& one : {p, g, n}) padded.bound_extent(one, 1);
    padded.vectorize(f, kLanes, TailStrategy::RoundUp);
    padded.update(0).allow_race_conditions().never_partition_all();
    padded.update(0).specialize(stride_w == 1).vectorize(wide[0]);
    padded.update(0).specialize(stride_w == 2).vectorize(wide[0]);
    padded.update(1).never_partition_all();
    for (Func table : {window, place}) {
      table.compute_at(out, part).store_in(MemoryType::Stack).bound_storage(t, kPlaneTaps);
      table.never_partition_all();
    }
    place.update().never_partition_all();
    schedule_product(tile);
  }

 private:
  static constexpr int kTile = kPlaneVectors * kLanes;

  Expr first_row(const Expr& which) const {
    return min((which / parts) * rows, out.dim(1).extent() - rows);
  }
  // Of all channels; o counts the tiles of a work-group.
  Expr tile_of(const Expr& which, const Expr& tile) const {
    return (which % parts) * tiles_per_part + tile;
  }
  // A tile of channels that would pass the last one moves inwards.
  Expr channel_of(const Expr& tile, const Expr& row) const {
    return min(tile * kPlaneRows, out.dim(2).extent() - kPlaneRows) + row;
  }

  // Element (x, y) of a padded channel lies at row y / stride_h, column x / stride_w of the plane
  // of its phase.
  void pad() {
    const Expr width = in.dim(0).extent(), channels = in.dim(2).extent();
    const Expr columns = (width + stride_w - 1) / stride_w;  // of a phase, at most
    const Expr is_wide = width / stride_w >= kLanes, plane_rows = plane / pitch;
    padded(f, p, g, n) = 0.0f;
    wide = RDom({{0, kLanes},
                 {0, select(is_wide, (columns + kLanes - 1) / kLanes, 0)},
                 {0, plane_rows},
                 {0, stride_w},
                 {0, stride_h},
                 {0, channels}},
                "wide");
    copy(wide, wide[2], wide[3], wide[4], wide[5], [&](const Expr& first, const Expr& last) {
      return first + min(wide[1] * kLanes, last + 1 - kLanes - first) + wide[0];
    });
    narrow = RDom({{0, select(is_wide, 0, columns)},
                   {0, plane_rows},
                   {0, stride_w},
                   {0, stride_h},
                   {0, channels}},
                  "narrow");
    copy(narrow, narrow[1], narrow[2], narrow[3], narrow[4],
         [&](const Expr& first, const Expr& last) {
           narrow.where(first + narrow[0] <= last);
           return first + narrow[0];
         });
  }

  template <class Column>
  void copy(RDom& domain, const Expr& row, const Expr& phase_w, const Expr& phase_h,
            const Expr& channel, const Column& column_in) {
    const Expr width = in.dim(0).extent(), height = in.dim(1).extent();
    const Expr y = (first_row(p) + row) * stride_h + phase_h - top;
    domain.where(y >= 0 && y < height);
    const Expr first = max(left - phase_w + stride_w - 1, 0) / stride_w,
               last = (width - 1 + left - phase_w) / stride_w;
    const Expr column = column_in(first, last);
    const Expr at = ((channel * stride_h + phase_h) * stride_w + phase_w) * plane + row * pitch;
    // A channel lies in pages of its own, so the CPU does not see what comes next.
    const Expr x = column * stride_w + phase_w - left, value = in(x, y, channel, g, n),
               ahead = in(x, y, min(channel + 2, in.dim(2).extent() - 1), g, n);
    padded(unsafe_promise_clamped(at + column, 0, elements - 1), p, g, n) =
        select(stride_w == 1, with_prefetch(value, ahead), value);
  }

  // Where the taps of a window lie in the padded planes, from the place of its first one.
  void find_places() {
    const Expr taps = kernel_w * kernel_h, channel_elements = stride_h * stride_w * plane;
    const Expr down = (t / kernel_w) * dilation_h, along = (t % kernel_w) * dilation_w;
    window(t) = ((down % stride_h) * stride_w + along % stride_w) * plane +
                (down / stride_h) * pitch + along / stride_w;
    const RDom r(0, taps, 0, in.dim(2).extent(), "r");
    place(t) = 0;
    place(r.x + taps * r.y) = window(r.x) + channel_elements * r.y;
  }

  void sum() {
    const Expr taps = kernel_w * kernel_h * in.dim(2).extent();
    steps = RDom(0, taps, "steps");
    const Expr pixel = place(steps) + u * kTile + v * kLanes + l;
    product(l, v, j, u, o, p, g, n) = 0.0f;
    product(l, v, j, u, o, p, g, n) =
        fused_multiply_add(weights(j, steps, tile_of(p, o), g),
                           padded(unsafe_promise_clamped(pixel, 0, elements - 1), p, g, n),
                           product(l, v, j, u, o, p, g, n));
    // Its rows are asked for while the next tiles are computed: else writing them waits for memory.
    const Expr result = product(q % kLanes, (q / kLanes) % kPlaneVectors, j, q / kTile, o, p, g, n);
    staged(q, j, o, p, g, n) = with_prefetch(
        result, same(first_row(p) * out.dim(0).extent() + q, channel_of(tile_of(p, o), j), g, n));
  }

  void store() {
    const Expr width = out.dim(0).extent(), height = out.dim(1).extent(),
               channels = out.dim(2).extent();
    const Expr blocks = (height + rows - 1) / rows,
               all_tiles = (channels + kPlaneRows - 1) / kPlaneRows;
    results = RDom({{0, kLanes},
                    {0, (width + kLanes - 1) / kLanes},
                    {0, rows},
                    {0, kPlaneRows},
                    {0, tiles_per_part},
                    {0, blocks * parts}},
                   "results");
    const Expr part = results[5], tile = tile_of(part, results[4]);
    results.where(tile < all_tiles);
    // Narrow rows are written one by one, the last element several times.
    const Expr column =
        max(min(results[1] * kLanes, width - kLanes), 0) + min(results[0], last_lane);
    const Expr row = results[2], y = first_row(part) + row, channel = channel_of(tile, results[3]);
    const Expr value =
        with_terms(staged(row * pitch + column, results[3], results[4], part, g, n), has_bias,
                   bias(channel, g), has_scale, scale(channel, g), shift(channel, g), has_residual,
                   residual(column, y, channel, g, n));
    out(x, y_, c, g, n) = undef<float>();
    out(column, y, channel, g, n) = select(has_relu != 0 && le(value, 0.0f), 0.0f, value);
  }

  void set_layouts() {
    for (int d = 0; d < 5; ++d) {
      in.dim(d).set_min(0);
      residual.dim(d).set_min(0);
      out.dim(d).set_min(0);
    }
    for (int d = 0; d < 4; ++d) same.dim(d).set_min(0);
    weights.dim(0).set_bounds(0, kPlaneRows).set_stride(1);
    weights.dim(1).set_min(0).set_stride(kPlaneRows);
    for (int d = 2; d < 4; ++d) weights.dim(d).set_min(0);
    for (auto* vector : {&bias, &scale, &shift}) {
      for (int d = 0; d < 2; ++d) vector->dim(d).set_min(0).set_stride(Expr());
    }
  }

  void schedule_product(const RVar& tile) {
    staged.compute_at(out, tile).store_in(MemoryType::Stack);
    staged.bound(q, 0, tiles * kTile).bound_storage(q, kPlanePixels).bound(j, 0, kPlaneRows);
    staged.split(q, u, qi, kTile)
        .split(qi, v, l, kLanes)
        .reorder(l, v, j, u)
        .vectorize(l)
        .unroll(v)
        .unroll(j)
        .never_partition_all();
    for (Func func : {staged, product}) {
      for (const Var& one : {o, p, g, n}) func.bound_extent(one, 1);
    }
    product.compute_at(staged, u).store_in(MemoryType::Register);
    product.bound_extent(l, kLanes).bound_extent(v, kPlaneVectors).bound_extent(j, kPlaneRows);
    product.bound_extent(u, 1);
    product.vectorize(l).unroll(v).unroll(j);
    product.update().reorder({l, v, j, steps, u, o, p, g, n}).vectorize(l).unroll(v).unroll(j);
  }

  Var x{"x"}, y_{"y"}, c{"c"}, f{"f"}, t{"t"}, q{"q"}, qi{"qi"}, l{"l"}, v{"v"}, j{"j"}, u{"u"},
      o{"o"}, p{"p"}, g{"g"}, n{"n"};
  Func padded{"padded"}, window{"window"}, place{"place"}, product{"product"}, staged{"staged"};
  RDom wide, narrow, steps, results;
};

// weights[group][tile][tap][row] as conv_planes reads them: a tap's numbers for all channels of a
// tile side by side. source(tap of the window, input channel, output channel, group).
class ConvPlaneWeights : public Generator<ConvPlaneWeights> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> first_tap{"first_tap"}, tap_step{"tap_step"};  // of a window, which may be flipped
  Input<Buffer<float, 4>> source{"source"};
  Output<Buffer<float, 5>> packed{"packed"};  // (row, tap of the window, channel, tile, group)

  void generate() {
    const Expr lane = min(o * kPlaneRows, source.dim(2).extent() - kPlaneRows) + j;
    packed(j, t, c, o, g) = source(first_tap + t * tap_step, c, lane, g);
  }

  void schedule() {
    for (int d = 0; d < 4; ++d) source.dim(d).set_min(0).set_stride(Expr());
    packed.dim(0).set_bounds(0, kPlaneRows);
    for (int d = 1; d < 5; ++d) packed.dim(d).set_min(0);
    Func(packed).reorder(j, t, c, o, g).unroll(j).gpu_blocks(o, g).never_partition_all();
  }

 private:
  Var j{"j"}, t{"t"}, c{"c"}, o{"o"}, g{"g"};
};

// The same for dx of a convolution with strides, whose phases are channels of a convolution of dy:
// element (c, y, x) of dx is element (y / stride_h, x / stride_w) of the channel (c, y % stride_h,
// x % stride_w). Tap (tx, ty) of that window is a tap of the weights, or none, which is zero.
class ConvPhaseWeights : public Generator<ConvPhaseWeights> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> stride_h{"stride_h"}, stride_w{"stride_w"}, last_y{"last_y"}, last_x{"last_x"};
  Input<Buffer<float, 5>> source{"source"};   // (kx, ky, channel of dx, channel of dy, group)
  Output<Buffer<float, 6>> packed{"packed"};  // (row, tx, ty, channel of dy, tile, group)

  void generate() {
    const Expr phases = stride_h * stride_w, lanes = source.dim(2).extent() * phases;
    const Expr lane = min(o * kPlaneRows, lanes - kPlaneRows) + j;
    const Expr ky = last_y + (lane / stride_w) % stride_h - ty * stride_h,
               kx = last_x + lane % stride_w - tx * stride_w;
    const Expr width = source.dim(0).extent(), height = source.dim(1).extent();
    const Expr is_tap = kx >= 0 && kx < width && ky >= 0 && ky < height;
    packed(j, tx, ty, c, o, g) = select(
        is_tap, source(clamp(kx, 0, width - 1), clamp(ky, 0, height - 1), lane / phases, c, g),
        0.0f);
  }

  void schedule() {
    for (int d = 0; d < 5; ++d) source.dim(d).set_min(0);
    packed.dim(0).set_bounds(0, kPlaneRows);
    for (int d = 1; d < 6; ++d) packed.dim(d).set_min(0);
    Func(packed).reorder(j, tx, ty, c, o, g).gpu_blocks(c, o, g).never_partition_all();
  }

 private:
  Var j{"j"}, tx{"tx"}, ty{"ty"}, c{"c"}, o{"o"}, g{"g"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPlaneWeights, conv_plane_weights)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPhaseWeights, conv_phase_weights)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPlanes, conv_planes)
