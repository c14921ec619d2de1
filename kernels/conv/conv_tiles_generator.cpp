// Convolution in register tiles on CPUs: one work-item computes tiles of `pixels` x 16 `vectors`
// channels of the result. x is only read as broadcast scalars, so its strides, and those of the
// result, are free; the weights come in vectors of 16 output channels, packed by conv_pack:
//
//   conv_pad    puts zeros around x (or between the elements of dy)
//   conv_pack   weights as [panel][tap][vector][lane]
//   conv_tiles  the product, through the epilogue
//
// An element is the sum over chunks of fma chains over (channel, row, column) of its window,
// started at +0; a window of one tap is one chunk.
#include "kernels/conv/conv_recipe.h"
#include "kernels/conv/conv_tiles.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/shuffle.h"

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
  GeneratorParam<bool> dense_store{"dense_store", true};  // planes have a whole vector

  // A window's row is step_h from the next, a channel `plane`.
  Input<int> stride_h{"stride_h"}, stride_w{"stride_w"}, step_h{"step_h"}, step_w{"step_w"},
      pitch{"pitch"}, plane{"plane"}, width{"width"}, kernel_h{"kernel_h"}, kernel_w{"kernel_w"},
      group_channels{"group_channels"}, panels{"panels"};
  // The last of the blocks of pixels moves inwards.
  Input<int> blocks{"blocks"}, block_pixels{"block_pixels"};
  // Taps come in chunks, of several rows where these are whole, of several channels where their
  // windows are.
  Input<int> chunk_w{"chunk_w"}, chunk_h{"chunk_h"}, chunk_channels{"chunk_channels"};
  Input<Buffer<float, 4>> in{"in"};  // (first place of a window, place from there, group, n)
  Input<Buffer<float, 4>> weights{"weights"};    // (lane, vector, tap, panel of all groups)
  Input<Buffer<float, 2>> channels{"channels"};  // (channel of all panels, bias | scale | shift)
  Input<Buffer<float, 4>> residual{"residual"};
  Input<int> has_bias{"has_bias"}, has_scale{"has_scale"}, has_residual{"has_residual"},
      has_relu{"has_relu"};
  Output<Buffer<float, 4>> out{"out"};  // (pixel of the plane, channel, group, n)

  void generate() {
    find_places();
    sum();
    store();
  }

  void schedule() {
    for (int d = 0; d < 4; ++d) {
      residual.dim(d).set_min(0);
      out.dim(d).set_min(0);
    }
    for (int d = 0; d < 4; ++d) in.dim(d).set_min(0);
    in.dim(1).set_stride(1);
    weights.dim(0).set_bounds(0, kLanes).set_stride(1);
    weights.dim(1).set_bounds(0, vectors).set_stride(kLanes);
    weights.dim(2).set_min(0).set_stride(kLanes * vectors);
    weights.dim(3).set_min(0);
    for (int d = 0; d < 2; ++d) channels.dim(d).set_min(0);

    const RVar part = results[4];
    Stage write = Func(out).update();
    write.allow_race_conditions();
    write.reorder({results[0], results[1], results[2], results[3], part, g, n});
    if (dense_store) write.vectorize(results[0]).unroll(results[1]);
    write.gpu_blocks(part, g, n).never_partition_all();
    write.specialize(has_residual == 0);  // else every pixel of it is read
    for (Func step : turned) {
      step.compute_at(out, results[2]).store_in(MemoryType::Register);
      step.bound_extent(l, kLanes).bound_extent(r, kLanes).vectorize(l).unroll(r);
      for (const Var& one : {v, q, p, g, n}) step.bound_extent(one, 1);
    }
    schedule_product(part);
  }

 private:
  Expr is_point() const { return kernel_w == 1 && kernel_h == 1; }
  Expr panel_of(const Expr& which) const { return which / blocks; }
  Expr first_pixel(const Expr& which) const {
    return min((which % blocks) * block_pixels, out.dim(0).extent() - block_pixels);
  }

  // Where a tile's windows begin, and a chunk's taps lie from there.
  void find_places() {
    // Pixels and channels beyond the edge of a tile are computed and not stored.
    const Expr pixel = min(first_pixel(p) + q, out.dim(0).extent() - 1);
    base(q, p) = (pixel / width) * stride_h * pitch + (pixel % width) * stride_w;
    const RDom fill(0, chunk_w, 0, chunk_h, 0, select(is_point(), 0, chunk_channels), "fill");
    place(t, cx, cy, cc) = undef<int>();
    place(fill.x + chunk_w * (fill.y + chunk_h * fill.z), cx, cy, cc) =
        (cx * chunk_w + fill.x) * step_w + (cy * chunk_h + fill.y) * step_h +
        (cc * chunk_channels + fill.z) * plane;
  }

  void sum() {
    const auto parts = [](const Expr& all, const Expr& chunk) { return (all + chunk - 1) / chunk; };
    const auto left = [](const Expr& all, const Expr& chunk, const Expr& which) {
      return min(chunk, all - which * chunk);
    };
    chunks = RDom(0, parts(kernel_w, chunk_w), 0, parts(kernel_h, chunk_h), 0,
                  parts(group_channels, chunk_channels), "chunks");
    steps = RDom(0, chunk_w * chunk_h * chunk_channels, "steps");
    steps.where(steps < left(kernel_w, chunk_w, cx) * left(kernel_h, chunk_h, cy) *
                            left(group_channels, chunk_channels, cc));
    const Expr first = cx * chunk_w + kernel_w * (cy * chunk_h + kernel_h * (cc * chunk_channels));
    // A single tap's places are multiples, however many channels its one chain has.
    const Expr from_first =
        select(is_point(), steps * plane,
               place(unsafe_promise_clamped(steps, 0, kTilesTaps - 1), cx, cy, cc));
    const Expr start = unsafe_promise_clamped(base(q, p), 0, 1 << 30),
               along = unsafe_promise_clamped(from_first, 0, 1 << 30);
    product(l, v, q, p, g, n, cx, cy, cc) = 0.0f;
    product(l, v, q, p, g, n, cx, cy, cc) = fused_multiply_add(
        in(start, along, g, n), weights(l, v, first + steps, g * panels + panel_of(p)),
        product(l, v, q, p, g, n, cx, cy, cc));
    total(l, v, q, p, g, n) = 0.0f;
    total(l, v, q, p, g, n) = strict_float(total(l, v, q, p, g, n) +
                                           product(l, v, q, p, g, n, chunks.x, chunks.y, chunks.z));
    // The part of the epilogue that is constant along a channel, on whole vectors.
    Expr value = total(l, v, q, p, g, n);
    const Expr channel = ((g * panels + panel_of(p)) * vectors + v) * kLanes + l;
    value = select(has_bias != 0, strict_float(value + channels(channel, 0)), value);
    const Expr scaled =
        strict_float(strict_float(value * channels(channel, 1)) + channels(channel, 2));
    const Expr with_scale = select(has_scale != 0, scaled, value);
    const Expr is_last = has_relu != 0 && has_residual == 0;
    staged(l, v, q, p, g, n) = select(is_last && le(with_scale, 0.0f), 0.0f, with_scale);
  }

  // The last vector of a block moves inwards, as the last block does.
  void store() {
    const int step = dense_store ? kLanes : 1;
    results = RDom({{0, step},
                    {0, kLanes},
                    {0, (block_pixels + step - 1) / step},
                    {0, vectors},
                    {0, blocks * panels}},
                   "results");
    const Expr part = results[4], vector = results[3];
    const Expr channel = (panel_of(part) * vectors + vector) * kLanes + results[1];
    results.where(channel < out.dim(1).extent());
    const Expr first = min(results[2] * step, block_pixels - step);
    Expr result = staged(results[1], vector, first + results[0], part, g, n);
    if (dense_store) {
      Func block("block");
      block(l, r, v, q, p, g, n) = staged(l, v, q + r, p, g, n);
      turned = transpose_block(block, kLanes, sizeof(float), l, r, {v, q, p, g, n});
      result = turned.back()(results[0], results[1], vector, first, part, g, n);
    }
    const Expr pixel = first_pixel(part) + first + results[0];
    const Expr sum = strict_float(result + residual(pixel, channel, g, n));
    out(q, o, g, n) = undef<float>();
    out(pixel, channel, g, n) =
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
    total.bound_extent(v, vectors).split(q, tile, qi, pixels, TailStrategy::RoundUp);
    total.reorder(l, v, qi, tile).unroll(v).unroll(qi);
    total.update()
        .split(q, ut, qi, pixels, TailStrategy::RoundUp)
        .reorder({l, v, qi, ut, chunks.x, chunks.y, chunks.z})
        .vectorize(l)
        .unroll(v)
        .unroll(qi)
        .never_partition_all();
    product.compute_at(total, ut).store_in(MemoryType::Register);
    product.bound_extent(l, kLanes).bound_extent(v, vectors).bound_extent(q, pixels);
    for (const Var& one : {p, g, n, cx, cy, cc}) product.bound_extent(one, 1);
    product.vectorize(l).unroll(v).unroll(q);
    product.update().reorder({l, v, q, steps}).vectorize(l).unroll(v).unroll(q);
    product.update().specialize(is_point());
    base.compute_at(total, ut).store_in(MemoryType::Register).bound_extent(q, pixels).unroll(q);
    place.compute_at(total, chunks.x).store_in(MemoryType::Stack).bound(t, 0, kTilesTaps);
    place.never_partition_all();
    place.update().never_partition_all();
  }

  Var l{"l"}, v{"v"}, q{"q"}, p{"p"}, g{"g"}, n{"n"}, o{"o"}, r{"r"}, t{"t"};
  Var cx{"cx"}, cy{"cy"}, cc{"cc"};
  std::vector<Func> turned;  // (lane, row, vector of channels, pixel, p, g, n)
  Func base{"base"}, place{"place"}, product{"product"}, total{"total"}, staged{"staged"};
  RDom chunks, steps, results;
};

// panels[panel][tap][vector][lane] of the weights source(lane, kx, ky, channel, group), whose taps
// are taken from `first` in steps of `step` (backwards for gradients). Lanes beyond the last
// channel repeat it.
class ConvPack : public Generator<ConvPack> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> first_x{"first_x"}, step_x{"step_x"}, first_y{"first_y"}, step_y{"step_y"},
      kernel_h{"kernel_h"}, kernel_w{"kernel_w"}, vectors{"vectors"}, panel_count{"panel_count"};
  Input<Buffer<float, 5>> source{"source"};
  Output<Buffer<float, 4>> panels{"panels"};  // (lane, vector, tap, panel of all groups)

  void generate() {
    const Expr lane = ((p % panel_count) * vectors + v) * kLanes + l;
    const Expr kx = k % kernel_w, ky = (k / kernel_w) % kernel_h, c = k / (kernel_w * kernel_h);
    panels(l, v, k, p) = source(min(lane, source.dim(0).extent() - 1), first_x + kx * step_x,
                                first_y + ky * step_y, c, p / panel_count);
  }

  void schedule() {
    for (int d = 0; d < 5; ++d) source.dim(d).set_min(0).set_stride(Expr());
    panels.dim(0).set_bounds(0, kLanes);
    for (int d = 1; d < 4; ++d) panels.dim(d).set_min(0);
    Var ko("ko"), ki("ki");
    Func(panels)
        .split(k, ko, ki, 32, TailStrategy::GuardWithIf)
        .reorder(l, v, ki, ko, p)
        .unroll(l)
        .gpu_blocks(ko, p)
        .never_partition_all();
  }

 private:
  Var l{"l"}, v{"v"}, k{"k"}, p{"p"};
};

// The same where the taps of a lane are contiguous, in whole vectors: by transposing blocks of 16
// lanes and 16 taps. source(tap, lane, image, group); taps go on over images.
class ConvPackColumns : public Generator<ConvPackColumns> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> vectors{"vectors"}, panel_count{"panel_count"};
  Input<Buffer<float, 4>> source{"source"};
  // (lane, tap of a vector, vector of taps, vector of lanes, panel of all groups)
  Output<Buffer<float, 5>> panels{"panels"};

  void generate() {
    const Expr lane = ((p % panel_count) * vectors + v) * kLanes + r;
    const Expr per_image = source.dim(0).extent() / kLanes;
    Func block("block");
    block(l, r, kb, v, p) =
        source((kb % per_image) * kLanes + l, min(lane, source.dim(1).extent() - 1), kb / per_image,
               p / panel_count);
    turned = transpose_block(block, kLanes, sizeof(float), l, r, {kb, v, p});
    panels(l, r, kb, v, p) = turned.back()(l, r, kb, v, p);
  }

  void schedule() {
    for (int d = 0; d < 4; ++d) source.dim(d).set_min(0);
    for (int d = 0; d < 2; ++d) panels.dim(d).set_bounds(0, kLanes);
    for (int d = 2; d < 5; ++d) panels.dim(d).set_min(0);
    Var ko("ko"), ki("ki");
    Func(panels)
        .split(kb, ko, ki, 4, TailStrategy::GuardWithIf)
        .reorder(l, r, ki, v, ko, p)
        .vectorize(l)
        .unroll(r)
        .gpu_blocks(ko, p)
        .never_partition_all();
    for (Func step : turned) {
      step.compute_at(panels, ki).store_in(MemoryType::Register);
      step.bound_extent(l, kLanes).bound_extent(r, kLanes).vectorize(l).unroll(r);
    }
  }

 private:
  Var l{"l"}, r{"r"}, kb{"kb"}, v{"v"}, p{"p"};
  std::vector<Func> turned;
};

// bias, scale and shift for whole panels; what is absent is never used.
class ConvChannels : public Generator<ConvChannels> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> group_channels{"group_channels"}, panel_channels{"panel_channels"};
  Input<Buffer<float, 1>> bias{"bias"}, scale{"scale"}, shift{"shift"};
  Output<Buffer<float, 2>> channels{"channels"};

  void generate() {
    const Expr g = i / panel_channels;
    const Expr at = g * group_channels + min(i % panel_channels, group_channels - 1);
    channels(i, which) = select(which == 0, bias(at), which == 1, scale(at), shift(at));
  }

  void schedule() {
    for (auto* vector : {&bias, &scale, &shift}) vector->dim(0).set_min(0).set_stride(Expr());
    for (int d = 0; d < 2; ++d) channels.dim(d).set_min(0);
    Func(channels).gpu_blocks(which);
  }

 private:
  Var i{"i"}, which{"which"};
};

// padded(x, y, plane): the source with zeros around it, and stride - 1 zeros between its elements.
class ConvPad : public Generator<ConvPad> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> top{"top"}, left{"left"}, stride_h{"stride_h"}, stride_w{"stride_w"},
      planes_per_group{"planes_per_group"};
  Input<Buffer<float, 3>> source{"source"};
  Output<Buffer<float, 3>> padded{"padded"};

  void generate() {
    const Expr width = source.dim(0).extent(), height = source.dim(1).extent();
    const Expr sx = x - left, sy = y - top;
    const Expr is_row = sy >= 0 && sy < height * stride_h && sy % stride_h == 0;
    const Expr is_inside = likely(sx >= 0) && likely(sx < width * stride_w);
    const Expr is_hit = is_row && is_inside && sx % stride_w == 0;
    padded(x, y, p) = select(
        is_hit,
        source(clamp(likely(sx / stride_w), 0, width - 1), clamp(sy / stride_h, 0, height - 1), p),
        0.0f);
  }

  void schedule() {
    for (int d = 0; d < 3; ++d) {
      source.dim(d).set_min(0);
      padded.dim(d).set_min(0);
    }
    Var po("po"), pi("pi");
    Func func = padded;
    func.split(p, po, pi, planes_per_group, TailStrategy::GuardWithIf)
        .reorder(x, y, pi, po)
        .gpu_blocks(po);
    func.specialize(stride_h == 1 && stride_w == 1);
  }

 private:
  Var x{"x"}, y{"y"}, p{"p"};
};

// dx from the products of dy with every tap of the weights: each element adds the products of the
// windows that hold it. x = xq stride + xr, and y likewise.
class ConvGather : public Generator<ConvGather> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> top{"top"}, left{"left"}, stride_h{"stride_h"}, stride_w{"stride_w"}, hits_h{"hits_h"},
      hits_w{"hits_w"};
  Input<Buffer<float, 5>> products{"products"};  // (ox, oy, kx, ky, plane)
  Output<Buffer<float, 5>> dx{"dx"};             // (xq, xr, yq, yr, plane)

  void generate() {
    hits = RDom(0, hits_w, 0, hits_h, "hits");
    const Expr ox = xq + (xr + left) / stride_w - hits.x,
               kx = (xr + left) % stride_w + hits.x * stride_w;
    const Expr oy = yq + (yr + top) / stride_h - hits.y,
               ky = (yr + top) % stride_h + hits.y * stride_h;
    const Expr windows_w = products.dim(0).extent(), windows_h = products.dim(1).extent(),
               taps_w = products.dim(2).extent(), taps_h = products.dim(3).extent();
    for (const Expr& condition :
         {kx < taps_w, ky < taps_h, oy >= 0, oy < windows_h, ox >= 0, ox < windows_w}) {
      hits.where(condition);
    }
    total(xq, xr, yq, yr, p) = 0.0f;
    total(xq, xr, yq, yr, p) = strict_float(total(xq, xr, yq, yr, p) + products(ox, oy, kx, ky, p));
    dx(xq, xr, yq, yr, p) = total(xq, xr, yq, yr, p);
  }

  void schedule() {
    for (int d = 0; d < 5; ++d) {
      products.dim(d).set_min(0);
      dx.dim(d).set_min(0);
    }
    Func(dx).output_buffer().dim(0).set_stride(Expr());
    // A hit at a time over up to 64 neighbours: a plain sum of two rows.
    constexpr int kRow = 64;
    Var xo("xo"), xi("xi");
    Func(dx)
        .split(xq, xo, xi, kRow, TailStrategy::GuardWithIf)
        .reorder(xi, xr, xo, yr, yq, p)
        .gpu_blocks(yq, p)
        .never_partition_all();
    total.compute_at(dx, xr).store_in(MemoryType::Stack).bound_storage(xq, kRow);
    total.update().reorder(xq, hits.x, hits.y, xr, yq, yr, p);
  }

 private:
  Var xq{"xq"}, xr{"xr"}, yq{"yq"}, yr{"yr"}, p{"p"};
  Func total{"total"};
  RDom hits;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvTiles, conv_tiles)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPack, conv_pack)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPackColumns, conv_pack_columns)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvChannels, conv_channels)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPad, conv_pad)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvGather, conv_gather)
