// Convolution in register tiles on CPUs: one work-item computes tiles of `pixels` x 16 `vectors`
// channels of the result. x is only read as broadcast scalars, so its strides, and those of the
// result, are free; the weights come in vectors of 16 output channels, packed by conv_pack:
//
//   conv_pad    puts zeros around x (or between the elements of dy)
//   conv_pack   weights as [panel][tap][vector][lane]
//   conv_tiles  the product, through the epilogue
//
// An element is always the fma chain over (channel, row, column) of its window, started at +0.
#include "kernels/conv/conv_recipe.h"
#include "kernels/pointwise/pointwise_math.h"

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
  GeneratorParam<bool> dense_store{"dense_store", true};  // planes are whole vectors

  // in(place in the padded planes, channel, group, n); a window's row is step_h from the next.
  Input<int> stride_h{"stride_h"}, stride_w{"stride_w"}, step_h{"step_h"}, step_w{"step_w"},
      pitch{"pitch"}, width{"width"}, kernel_h{"kernel_h"}, kernel_w{"kernel_w"}, panels{"panels"},
      block_vectors{"block_vectors"}, chunk_channels{"chunk_channels"};
  Input<Buffer<float, 4>> in{"in"};
  Input<Buffer<float, 4>> weights{"weights"};    // (lane, vector, tap, panel of all groups)
  Input<Buffer<float, 2>> channels{"channels"};  // (channel of all panels, bias | scale | shift)
  Input<Buffer<float, 4>> residual{"residual"};
  Input<int> has_bias{"has_bias"}, has_scale{"has_scale"}, has_residual{"has_residual"},
      has_relu{"has_relu"};
  Output<Buffer<float, 4>> out{"out"};  // (pixel of the plane, channel, group, n)

  void generate() {
    // Pixels and channels beyond the edge of a tile are computed and not stored.
    const Expr pixel = min(q, out.dim(0).extent() - 1);
    base(q) = (pixel / width) * stride_h * pitch + (pixel % width) * stride_w;
    // Chunks of channels keep their share of the weights close while they go over a block of tiles.
    chunks = RDom(0, (in.dim(1).extent() + chunk_channels - 1) / chunk_channels, "chunks");
    taps = RDom(0, kernel_w, 0, kernel_h, 0, chunk_channels, "taps");
    const Expr panel = v / vectors, c = chunk * chunk_channels + taps.z;
    taps.where(c < in.dim(1).extent());
    const Expr place =
        unsafe_promise_clamped(base(q), 0, 1 << 30) + taps.x * step_w + taps.y * step_h;
    product(l, v, q, g, n, chunk) = 0.0f;
    product(l, v, q, g, n, chunk) = fused_multiply_add(
        in(place, c, g, n),
        weights(l, v % vectors, taps.x + kernel_w * (taps.y + kernel_h * c), g * panels + panel),
        product(l, v, q, g, n, chunk));
    total(l, v, q, g, n) = 0.0f;
    total(l, v, q, g, n) = strict_float(total(l, v, q, g, n) + product(l, v, q, g, n, chunks));
    // The part of the epilogue that is constant along a channel, on whole vectors.
    Expr value = total(l, v, q, g, n);
    const Expr channel = (g * panels * vectors + v) * kLanes + l;
    value = select(has_bias != 0, strict_float(value + channels(channel, 0)), value);
    const Expr scaled =
        strict_float(strict_float(value * channels(channel, 1)) + channels(channel, 2));
    const Expr with_scale = select(has_scale != 0, scaled, value);
    const Expr is_last = has_relu != 0 && has_residual == 0;
    staged(l, v, q, g, n) = select(is_last && le(with_scale, 0.0f), 0.0f, with_scale);
    Expr result = staged(o % kLanes, o / kLanes, q, g, n);
    if (dense_store) {
      turn_lanes();
      result = turned.back()(q % kLanes, o % kLanes, o / kLanes, q / kLanes, g, n);
    }
    const Expr sum = strict_float(result + residual(q, o, g, n));
    out(q, o, g, n) =
        select(has_residual == 0, result, select(has_relu != 0 && le(sum, 0.0f), 0.0f, sum));
  }

  void schedule() {
    for (int d = 0; d < 4; ++d) {
      in.dim(d).set_min(0);
      residual.dim(d).set_min(0);
      out.dim(d).set_min(0);
    }
    weights.dim(0).set_bounds(0, kLanes).set_stride(1);
    weights.dim(1).set_bounds(0, vectors).set_stride(kLanes);
    weights.dim(2).set_min(0).set_stride(kLanes * vectors);
    weights.dim(3).set_min(0);
    for (int d = 0; d < 2; ++d) channels.dim(d).set_min(0);

    Var ut("ut"), block("block"), pixel("pixel"), tile("tile"), panel("panel"), channel("channel"),
        pg("pg"), qi("qi"), pv("pv"), pl("pl"), cv("cv"), cr("cr");
    Func func = out;
    if (dense_store) {
      func.split(q, block, pl, kLanes, TailStrategy::RoundUp)
          .split(block, block, pv, block_vectors, TailStrategy::GuardWithIf);
    } else {
      func.split(q, block, pv, block_vectors * kLanes, TailStrategy::GuardWithIf);
    }
    func.split(o, panel, channel, vectors * kLanes, TailStrategy::GuardWithIf)
        .split(channel, cv, cr, kLanes)
        .fuse(panel, g, pg);
    if (dense_store) {
      func.reorder(pl, cr, pv, cv, block, n, pg).vectorize(pl).unroll(cr);
    } else {
      func.reorder(pv, cr, cv, block, n, pg);
    }
    func.gpu_blocks(block, n, pg).never_partition_all();
    func.specialize(has_residual == 0);  // else every pixel of it is read
    for (Func step : turned) {
      step.compute_at(out, pv).store_in(MemoryType::Register);
      step.bound_extent(l, kLanes).bound_extent(r, kLanes).bound_extent(v, 1).bound_extent(qv, 1);
      step.vectorize(l).unroll(r);
    }
    constexpr int kBlockPixels = 96;
    for (Func f : {staged, total}) {
      f.compute_at(out, block).store_in(MemoryType::Stack);
      f.bound_extent(v, vectors).bound_storage(q, kBlockPixels);
      f.split(q, tile, qi, pixels, TailStrategy::RoundUp).reorder(l, v, qi, tile);
      f.vectorize(l, kLanes).unroll(v).unroll(qi).never_partition_all();
    }
    total.update()
        .split(q, ut, qi, pixels, TailStrategy::RoundUp)
        .reorder(l, v, qi, ut, chunks)
        .vectorize(l, kLanes)
        .unroll(v)
        .unroll(qi)
        .never_partition_all();
    const LoopLevel at_tile(total, ut);
    product.compute_at(at_tile).store_in(MemoryType::Register);
    base.compute_at(at_tile).store_in(MemoryType::Register);
    base.bound_extent(q, pixels).unroll(q);
    product.bound_extent(v, vectors).bound_extent(q, pixels).vectorize(l).unroll(v).unroll(q);
    product.update().reorder(l, v, q, taps.x, taps.y, taps.z).vectorize(l).unroll(v).unroll(q);
  }

 private:
  // A 16 x 16 block is transposed by four perfect shuffles of its 256 elements, each a rotation of
  // the element's 8-bit place by one; a result vector takes from two vectors only.
  void turn_lanes() {
    Func block("turned0");
    block(l, r, v, qv, g, n) = staged(l, v, qv * kLanes + r, g, n);
    turned = {block};
    for (int i = 1; i <= 4; ++i) {
      Func step("turned" + std::to_string(i));
      step(l, r, v, qv, g, n) =
          turned.back()((r % 2) * 8 + l / 2, r / 2 + (l % 2) * 8, v, qv, g, n);
      turned.push_back(step);
    }
  }

  Var l{"l"}, v{"v"}, q{"q"}, g{"g"}, n{"n"}, o{"o"};
  Var chunk{"chunk"}, r{"r"}, qv{"qv"};
  std::vector<Func> turned;  // (lane, row, vector of channels, vector of pixels, g, n)
  Func base{"base"}, product{"product"}, total{"total"}, staged{"staged"};
  RDom taps, chunks;
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
    Func block("turned0");
    block(l, r, kb, v, p) =
        source((kb % per_image) * kLanes + l, min(lane, source.dim(1).extent() - 1), kb / per_image,
               p / panel_count);
    turned = {block};
    for (int i = 1; i <= 4; ++i) {
      Func step("turned" + std::to_string(i));
      step(l, r, kb, v, p) = turned.back()((r % 2) * 8 + l / 2, r / 2 + (l % 2) * 8, kb, v, p);
      turned.push_back(step);
    }
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
