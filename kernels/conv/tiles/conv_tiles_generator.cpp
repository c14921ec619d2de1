// Convolution in register tiles on CPUs: one work-item computes tiles of `pixels` x 16 `vectors`
// channels of the result. x is only read as broadcast scalars, so its strides, and those of the
// result, are free; the weights come in vectors of 16 output channels, packed by conv_pack. With
// `row` pixels of a row side by side, as many as a row is cut into, a pointer serves them all: one
// for each pixel would be more than there are registers, where channels fill just a vector.
// `points` is for windows of a pixel alone, whose tiles ask for x where their rows end, and for
// their results before they begin.
//
//   conv_pad    puts zeros around x (or between the elements of dy)
//   conv_pack   weights as [panel][tap][vector][lane]
//   conv_tiles  the product, through the epilogue
//
// An element is the sum over chunks of fma chains over (channel, row, column) of its window,
// started at +0; a window of one tap is one chunk.
#include "kernels/conv/conv_recipe.h"
#include "kernels/conv/tiles/conv_tiles.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/shuffle.h"

#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

class ConvTiles : public Generator<ConvTiles> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> pixels{"pixels", 6};
  GeneratorParam<int> vectors{"vectors", 4};
  GeneratorParam<int> row{"row", 1};  // pixels of a row, of which blocks are multiples
  GeneratorParam<bool> dense_store{"dense_store", true};  // planes have a whole vector
  GeneratorParam<bool> points{"points", false};

  // A window's row is step_h from the next, a channel `plane`.
  Input<int> stride_h{"stride_h"}, stride_w{"stride_w"}, step_h{"step_h"}, step_w{"step_w"},
      pitch{"pitch"}, plane{"plane"}, width{"width"}, kernel_h{"kernel_h"}, kernel_w{"kernel_w"},
      group_channels{"group_channels"}, panels{"panels"};
  // The last of the blocks of pixels moves inwards. A block has pixels of one image, or all pixels
  // of several, which lie `image` apart in x.
  Input<int> blocks{"blocks"}, block_pixels{"block_pixels"}, images{"images"}, image{"image"};
  // Taps come in chunks, of several rows where these are whole, of several channels where their
  // windows are.
  Input<int> chunk_w{"chunk_w"}, chunk_h{"chunk_h"}, chunk_channels{"chunk_channels"};
  // (first place of a window, pixel of a row and place from there, group, n). n: where there are
  // several images to a block, that of blocks.
  Input<Buffer<float, 5>> in{"in"};
  Input<Buffer<float, 4>> weights{"weights"};    // (lane, vector, tap, panel of all groups)
  Input<Buffer<float, 2>> channels{"channels"};  // (channel of all panels, bias | scale | shift)
  Input<Buffer<float, 5>> residual{"residual"};
  Input<int> has_bias{"has_bias"}, has_scale{"has_scale"}, has_residual{"has_residual"},
      has_relu{"has_relu"};
  Output<Buffer<float, 5>> out{"out"};  // (pixel of the plane, channel, group, image of a block, n)

  void generate() {
    find_pixels();
    points ? sum_points() : sum();
    add_channel_terms();
    store();
  }

  void schedule() {
    set_mins(residual, out);
    for (int d = 1; d < 5; ++d) in.dim(d).set_min(0);  // the first places may be passed over
    for (int d : {1, 2}) in.dim(d).set_stride(1);
    weights.dim(0).set_bounds(0, kLanes).set_stride(1);
    weights.dim(1).set_bounds(0, vectors).set_stride(kLanes);
    weights.dim(2).set_min(0).set_stride(kLanes * vectors);
    weights.dim(3).set_min(0);
    set_mins(channels);

    const RVar part = results[5];
    Stage write = Func(out).update();
    write.allow_race_conditions();
    write.reorder({results[0], results[1], results[2], results[3], results[4], part, g, n});
    if (dense_store) write.vectorize(results[0]).unroll(results[1]);
    write.gpu_blocks(part, g, n).never_partition_all();
    write.specialize(has_residual == 0);  // else every pixel of it is read
    hold_block(turned, LoopLevel(out, results[2]), kLanes, l, r, {v, q, p, g, n});
    schedule_product(part);
  }

 private:
  static constexpr int kAhead = 32;                    // steps, for whose x a tile asks
  int rows() const { return int(pixels) / int(row); }  // of a tile
  Expr is_point() const { return kernel_w == 1 && kernel_h == 1; }
  Expr panel_of(const Expr& which) const { return which / blocks; }
  Expr first_pixel(const Expr& which) const {
    return min((which % blocks) * block_pixels, images * out.dim(0).extent() - block_pixels);
  }

  // Where one of a block's pixels is in its plane, and how far its image is where they lie
  // `distance` apart.
  Expr in_plane(const Expr& pixel) const {
    return select(images == 1, pixel, pixel % out.dim(0).extent());
  }
  Expr to_image_of(const Expr& pixel, const Expr& distance) const {
    return select(images == 1, 0, pixel / out.dim(0).extent() * distance);
  }

  // Where a tile's windows begin.
  void find_pixels() {
    // Pixels and channels beyond the edge of a tile are computed and not stored.
    const Expr of_all = min(first_pixel(p) + q * row, images * out.dim(0).extent() - row);
    const Expr pixel = in_plane(of_all);
    base(q, p) = (pixel / width) * stride_h * pitch + (pixel % width) * stride_w +
                 to_image_of(of_all, image);
  }
  // x of a tap that lies so far from the first of its window.
  Expr x_at(const Expr& from_first) {
    const Expr start = unsafe_promise_clamped(base(q / row, p), 0, 1 << 30);
    return in(start, q % row, unsafe_promise_clamped(from_first, 0, 1 << 30), g, n);
  }
  // The same, where `is_asking` with a request for what is read kAhead steps later.
  Expr asking_x_at(const std::function<Expr(const Expr& step)>& from_first, const Expr& is_asking) {
    const Expr x = x_at(from_first(steps)), later = x_at(from_first(steps + kAhead));
    return select(is_asking, with_late_prefetch(x, later), x);
  }
  Expr weight_at(const Expr& tap) { return weights(l, v, tap, g * panels + panel_of(p)); }

  // Where a chunk's taps lie from the first of their window.
  void find_taps() {
    const RDom fill(0, chunk_w, 0, chunk_h, 0, select(is_point(), 0, chunk_channels), "fill");
    place(t, cx, cy, cc) = 0;
    place(fill.x + chunk_w * (fill.y + chunk_h * fill.z), cx, cy, cc) =
        (cx * chunk_w + fill.x) * step_w + (cy * chunk_h + fill.y) * step_h +
        (cc * chunk_channels + fill.z) * plane;
  }

  // Zero, the first value of a tile's vectors, each of which asks for the memory of the results of
  // a channel of the tile, or two.
  Expr asking_zero() {
    const Expr last = min(first_pixel(p) + (q + 1) * pixels, images * out.dim(0).extent()) - 1;
    result_place(q, p) = in_plane(last) + to_image_of(last, out.dim(3).stride()) +
                         panel_of(p) * vectors * kLanes * out.dim(1).stride();
    const auto asking = [&](const Expr& value, const Expr& channel) {
      const Expr place = result_place(q / pixels, p) + channel * out.dim(1).stride() +
                         g * out.dim(2).stride() + n * out.dim(4).stride();
      return with_result_prefetch(value, Func(out).name(), place);
    };
    const int sums = int(pixels) * int(vectors);
    const Expr channel = q % pixels * vectors + v, one = asking(0.0f, channel);
    return select(channel + sums < vectors * kLanes, asking(one, channel + sums), one);
  }

  void sum_points() {
    steps = RDom(0, group_channels, "steps");
    product(l, v, q, p, g, n) = asking_zero();
    const Expr pixel = asking_x_at([this](const Expr& step) { return step * plane; },
                                   v == 0 && q % row == row - 1);
    product(l, v, q, p, g, n) = fma_f32(pixel, weight_at(steps), product(l, v, q, p, g, n));
    total(l, v, q, p, g, n) = product(l, v, q, p, g, n);
  }

  void sum() {
    find_taps();
    const auto parts = [](const Expr& all, const Expr& chunk) { return (all + chunk - 1) / chunk; };
    const auto left = [](const Expr& all, const Expr& chunk, const Expr& which) {
      return min(chunk, all - which * chunk);
    };
    chunks = RDom(0, parts(kernel_w, chunk_w), 0, parts(kernel_h, chunk_h), 0,
                  parts(group_channels, chunk_channels), "chunks");
    steps = RDom(0, chunk_w * chunk_h * chunk_channels, steps_of_tile(vectors));
    const Expr taps = left(kernel_w, chunk_w, cx) * left(kernel_h, chunk_h, cy) *
                      left(group_channels, chunk_channels, cc);
    steps.where(steps < taps);
    const Expr first = cx * chunk_w + kernel_w * (cy * chunk_h + kernel_h * (cc * chunk_channels));
    // A single tap's places are multiples, however many channels its one chain has.
    const auto from_first = [&](const Expr& step) {
      const Expr of_chunk = unsafe_promise_clamped(step, 0, kTilesTaps + kAhead - 1);
      return select(is_point(), step * plane, place(of_chunk, cx, cy, cc));
    };
    // Tiles of many lanes wait for x, of windows that lie apart. The last steps ask for the first
    // tap's again.
    const bool asks = vectors == 4 && row == 1;
    const Expr pixel = asks ? asking_x_at(from_first, v == 0) : x_at(from_first(steps));
    product(l, v, q, p, g, n, cx, cy, cc) = 0.0f;
    product(l, v, q, p, g, n, cx, cy, cc) =
        fma_f32(pixel, weight_at(first + steps), product(l, v, q, p, g, n, cx, cy, cc));
    total(l, v, q, p, g, n) = 0.0f;
    total(l, v, q, p, g, n) = strict_float(total(l, v, q, p, g, n) +
                                           product(l, v, q, p, g, n, chunks.x, chunks.y, chunks.z));
  }

  // The part of the epilogue that is constant along a channel, on whole vectors.
  void add_channel_terms() {
    Expr value = total(l, v, q, p, g, n);
    const Expr channel = ((g * panels + panel_of(p)) * vectors + v) * kLanes + l;
    value = select(has_bias != 0, strict_float(value + channels(channel, 0)), value);
    const Expr scaled =
        strict_float(strict_float(value * channels(channel, 1)) + channels(channel, 2));
    const Expr with_scale = select(has_scale != 0, scaled, value);
    const Expr is_last = has_relu != 0 && has_residual == 0;
    staged(l, v, q, p, g, n) = select(is_last && le(with_scale, 0.0f), 0.0f, with_scale);
  }

  // The last vector of an image in a block moves inwards, as the last block does.
  void store() {
    const int step = dense_store ? kLanes : 1;
    const Expr image_pixels = block_pixels / images;
    results = RDom({{0, step},
                    {0, kLanes},
                    {0, (image_pixels + step - 1) / step},
                    {0, vectors},
                    {0, images},
                    {0, blocks * panels}},
                   "results");
    const Expr part = results[5], which_image = results[4], vector = results[3];
    const Expr channel = (panel_of(part) * vectors + vector) * kLanes + results[1];
    results.where(channel < out.dim(1).extent());
    const Expr first = min(results[2] * step, image_pixels - step),
               of_block = which_image * image_pixels + first;
    Expr result = staged(results[1], vector, of_block + results[0], part, g, n);
    if (dense_store) {
      Func block("block");
      block(l, r, v, q, p, g, n) = staged(l, v, q + r, p, g, n);
      turned = transpose_block(block, kLanes, sizeof(float), l, r, {v, q, p, g, n});
      result = turned.back()(results[0], results[1], vector, of_block, part, g, n);
    }
    const Expr pixel = first_pixel(part) + first + results[0];
    const Expr sum = strict_float(result + residual(pixel, channel, g, which_image, n));
    out(q, o, g, i, n) = undef<float>();
    out(pixel, channel, g, which_image, n) =
        select(has_residual == 0, result, select(has_relu != 0 && le(sum, 0.0f), 0.0f, sum));
  }

  void schedule_product(const RVar& part) {
    Var tile("tile"), qi("qi"), ut("ut");
    if (!dense_store) {
      staged.compute_at(out, part).store_in(MemoryType::Stack).bound_storage(q, kTilesPixels);
      staged.bound_extent(l, kLanes).vectorize(l).never_partition_all();
    }
    total.compute_at(out, part).store_in(MemoryType::Stack).bound_storage(q, kTilesPixels);
    total.bound_extent(l, kLanes).vectorize(l).never_partition_all();
    if (row > 1) total.align_bounds(q, pixels);  // so that a pixel's place in its row is a number
    total.bound_extent(v, vectors).split(q, tile, qi, pixels, TailStrategy::RoundUp);
    total.reorder(l, v, qi, tile).unroll(v).unroll(qi);
    if (points) {
      schedule_tile(tile);
      result_place.compute_at(total, tile).store_in(MemoryType::Register).bound_extent(q, 1);
      return;
    }
    total.update()
        .split(q, ut, qi, pixels, TailStrategy::RoundUp)
        .reorder({l, v, qi, ut, chunks.x, chunks.y, chunks.z})
        .vectorize(l)
        .unroll(v)
        .unroll(qi)
        .never_partition_all();
    schedule_tile(ut);
    for (const Var& one : {cx, cy, cc}) product.bound_extent(one, 1);
    product.update().specialize(is_point());
    place.compute_at(total, chunks.x).store_in(MemoryType::Stack).bound(t, 0, kTilesTaps + kAhead);
    place.vectorize(t, kLanes).never_partition_all();
    place.update().never_partition_all();
  }

  // Of the loop over them.
  void schedule_tile(const Var& tile) {
    product.compute_at(total, tile).store_in(MemoryType::Register);
    product.bound_extent(l, kLanes).bound_extent(v, vectors).bound_extent(q, pixels);
    for (const Var& one : {p, g, n}) product.bound_extent(one, 1);
    product.vectorize(l).unroll(v).unroll(q);
    product.update().reorder({l, v, q, steps}).vectorize(l).unroll(v).unroll(q);
    base.compute_at(total, tile).store_in(MemoryType::Register).bound_extent(q, rows()).unroll(q);
  }

  Var l{"l"}, v{"v"}, q{"q"}, p{"p"}, g{"g"}, n{"n"}, o{"o"}, i{"i"}, r{"r"}, t{"t"};
  Var cx{"cx"}, cy{"cy"}, cc{"cc"};
  std::vector<Func> turned;  // (lane, row, vector of channels, pixel, p, g, n)
  Func base{"base"}, result_place{"result_place"}, place{"place"}, product{"product"},
      total{"total"}, staged{"staged"};
  RDom chunks, steps, results;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvTiles, conv_tiles)
