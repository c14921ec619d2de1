// The weight gradient in register tiles on CPUs: dw[o][j], j = (channel, row, column) of the
// window, is a product over all pixels of the batch of dy (in vectors of 16 output channels, packed
// by conv_pack) and x (read as broadcast scalars).
//
//   conv_weight_tiles  one sum per chunk of rows of pixels: fma chains over (n, y, x)
//   conv_weight_sum    adds the chunks in order, and turns the lanes back into dw
//   conv_weight_whole  both, where there is one chunk
//
// How rows are cut into chunks depends on shapes and on the tile.
#include "kernels/conv/conv_recipe.h"
#include "kernels/conv/tiles/conv_weight.h"
#include "kernels/recipe/shuffle.h"
#include "kernels/recipe/turned_pixels.h"

#include <numeric>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

// What both kernels of tiles have.
template <class Derived>
class WeightTiles : public Generator<Derived> {
 protected:
  template <class T>
  using Input = GeneratorInput<T>;
  template <class T>
  using Output = GeneratorOutput<T>;

 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> taps{"taps", 6};
  GeneratorParam<int> vectors{"vectors", 4};
  GeneratorParam<bool> packs{"packs", false};

  Input<int> stride_h{"stride_h"}, stride_w{"stride_w"}, step_h{"step_h"}, step_w{"step_w"},
      pitch{"pitch"}, plane{"plane"}, kernel_h{"kernel_h"}, kernel_w{"kernel_w"}, width{"width"},
      height{"height"}, tap_count{"tap_count"}, row_count{"row_count"}, panels{"panels"},
      rows_per_chunk{"rows_per_chunk"};
  Input<Buffer<float, 3>> in{"in"};  // (place in the padded planes of a group, group, n)
  // (lane, vector, pixel of the batch, panel of all groups); where the kernel packs, (pixel,
  // channel, group, n)
  Input<Buffer<float, 4>> dy{"dy"};

 protected:
  // The sums, of a chunk of rows.
  void define_product() {
    if (packs) turn_rows();
    const Expr tap = min(j, tap_count - 1);
    base(j) = (tap / (kernel_w * kernel_h)) * plane + ((tap / kernel_w) % kernel_h) * step_h +
              (tap % kernel_w) * step_w;
    pixels = RDom(0, width, 0, rows_per_chunk, "pixels");
    const Expr row = chunk * rows_per_chunk + pixels.y;
    pixels.where(row < row_count);
    // A table: rows may be short, and to divide would take as long as some of their pixels.
    const Expr number = chunk * rows_per_chunk + r;
    row_place(r, chunk) =
        (number / height) * in.dim(2).stride() + (number % height) * stride_h * pitch;
    const Expr from = row_place(unsafe_promise_clamped(pixels.y, 0, rows_per_chunk - 1), chunk);
    const Expr place = unsafe_promise_clamped(base(j) + from, 0, 1 << 30) + pixels.x * stride_w;
    product(l, v, j, p, chunk) = 0.0f;
    const Expr given = packs ? rows.turned(l, v, pixels.x + width * pixels.y, p, chunk)
                             : dy(l, v, pixels.x + width * row, p);
    product(l, v, j, p, chunk) =
        fma_f32(in(place, p / panels, 0), given, product(l, v, j, p, chunk));
  }

  // `tile`: the loop over tiles of taps, in which a work-group's `group` is.
  void schedule_product(const LoopLevel& tile, const LoopLevel& group) {
    for (int d = 0; d < 3; ++d) in.dim(d).set_min(0);
    if (packs) {
      set_mins(dy);
      rows.schedule(group, vectors);
    } else {
      set_panel_layout(dy, vectors);
    }
    product.compute_at(tile).store_in(MemoryType::Register);
    row_place.compute_at(group).store_in(MemoryType::Stack);
    row_place.bound(r, 0, rows_per_chunk).bound_storage(r, kWeightRows).bound_extent(chunk, 1);
    row_place.never_partition_all();
    base.compute_at(tile).store_in(MemoryType::Register);
    base.bound_extent(j, taps).unroll(j);
    product.bound_extent(v, vectors).bound_extent(j, taps).vectorize(l).unroll(v).unroll(j);
    for (const Var& one : {p, chunk}) product.bound_extent(one, 1);
    product.update().reorder(l, v, j, pixels.x, pixels.y).vectorize(l).unroll(v).unroll(j);
  }

  Var l{"l"}, v{"v"}, j{"j"}, p{"p"}, chunk{"chunk"}, r{"r"};
  Func product{"product"};

 private:
  // The chunk's rows of dy; the last vector of a row moves inwards.
  void turn_rows() {
    const auto channel = [this](const Expr& lane) {
      return min((p % panels * vectors + rows.v) * kLanes + lane, dy.dim(1).extent() - 1);
    };
    rows.define({dy, dy.dim(0).extent(), p / panels, channel}, (width + kLanes - 1) / kLanes,
                rows_per_chunk, kWeightChunkBytes / (kLanes * vectors * int(sizeof(float))),
                [this](const Expr& number) {
                  const Expr row = chunk * rows_per_chunk + number;
                  const Expr begin = (row % height) * width, kept = number * width - begin;
                  const Expr end = select(row < row_count, begin + width, begin);
                  return TurnedPixels::Run{row / height, begin, end, begin + width - kLanes,
                                           [=](const Expr& pixel) { return pixel + kept; }};
                },
                {p, chunk});
  }

  Func base{"base"}, row_place{"row_place"};
  TurnedPixels rows{"rows"};
  RDom pixels;
};

class ConvWeightTiles : public WeightTiles<ConvWeightTiles> {
 public:
  Input<int> tiles_per_group{"tiles_per_group"};
  Output<Buffer<float, 5>> sums{"sums"};  // (lane, vector, j, panel of all groups, chunk)

  void generate() {
    define_product();
    sums(l, v, j, p, chunk) = product(l, v, j, p, chunk);
  }

  void schedule() {
    set_panel_layout(sums, vectors);
    Var block("block"), tile("tile"), ji("ji");
    Func(sums)
        .split(j, tile, ji, taps, TailStrategy::RoundUp)
        .split(tile, block, tile, tiles_per_group, TailStrategy::GuardWithIf)
        .reorder(l, v, ji, tile, block, p, chunk)
        .vectorize(l)
        .unroll(v)
        .unroll(ji)
        .gpu_blocks(block, p, chunk)
        .never_partition_all();
    schedule_product(LoopLevel(sums, tile), LoopLevel(sums, block));
  }
};

// The same for one chunk of all rows: a work-group has all taps of a panel, of which it turns
// blocks back in place. The last block moves inwards.
class ConvWeightWhole : public WeightTiles<ConvWeightWhole> {
 public:
  Output<Buffer<float, 3>> dw{"dw"};  // (j, channel, group)

  void generate() {
    define_product();
    sums(l, v, j, p) = product(l, v, j, p, 0);
    parts = RDom({{0, kLanes},
                  {0, kLanes},
                  {0, block_taps() / kLanes},
                  {0, vectors},
                  {0, (tap_count + block_taps() - 1) / block_taps()},
                  {0, panels * dw.dim(2).extent()}},
                 "parts");
    const Expr block = parts[4], panel = parts[5],
               channel = (panel % panels * vectors + parts[3]) * kLanes + parts[1];
    parts.where(channel < dw.dim(1).extent());
    const auto first = [&](const Expr& number) {
      return min(number * block_taps(), tap_count - block_taps());
    };
    Func turned("turned");
    turned(l, r, jb, v, b, p) = sums(l, v, first(b) + jb * kLanes + r, p);
    steps = transpose_block(turned, kLanes, sizeof(float), l, r, {jb, v, b, p});
    dw(j, o, g) = undef<float>();
    dw(first(block) + parts[2] * kLanes + parts[0], channel, panel / panels) =
        steps.back()(parts[0], parts[1], parts[2], parts[3], block, panel);
  }

  void schedule() {
    set_mins(dw);
    dw.dim(0).set_stride(1);
    const RVar block = parts[4], panel = parts[5];
    Func(dw)
        .update()
        .allow_race_conditions()
        .vectorize(parts[0])
        .unroll(parts[1])
        .gpu_blocks(panel)
        .never_partition_all();
    hold_block(steps, LoopLevel(dw, parts[2]), kLanes, l, r, {jb, v, b, p});
    Var tile("tile"), ji("ji");
    sums.compute_at(dw, block).store_in(MemoryType::Stack);
    sums.bound_extent(l, kLanes).bound_extent(v, vectors).bound_extent(j, block_taps());
    sums.bound_extent(p, 1);
    sums.split(j, tile, ji, taps)
        .reorder(l, v, ji, tile, p)
        .vectorize(l)
        .unroll(v)
        .unroll(ji)
        .never_partition_all();
    schedule_product(LoopLevel(sums, tile), LoopLevel(dw, panel));
  }

 private:
  int block_taps() const { return std::lcm(int(taps), kLanes); }

  Var o{"o"}, g{"g"}, jb{"jb"}, b{"b"};
  Func sums{"sums"};
  std::vector<Func> steps;
  RDom parts;
};

class ConvWeightSum : public Generator<ConvWeightSum> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<int> panels{"panels"}, vectors{"vectors"};
  Input<Buffer<float, 5>> sums{"sums"};
  Output<Buffer<float, 3>> dw{"dw"};  // (j, channel, group)

  // Blocks of 16 taps of 16 channels, of which the last of a channel's moves inwards; fewer taps
  // one by one.
  void generate() {
    const Expr taps = dw.dim(0).extent(), channels = dw.dim(1).extent();
    const Expr is_wide = taps >= kLanes, all_vectors = (channels + kLanes - 1) / kLanes;
    const auto first = [&](const Expr& number) { return min(number * kLanes, taps - kLanes); };
    define(total);
    Func block("block");
    block(l, r, jb, v, g) = total(l, v, first(jb) + r, g);
    steps = transpose_block(block, kLanes, sizeof(float), l, r, {jb, v, g});
    wide = RDom({{0, kLanes},
                 {0, kLanes},
                 {0, select(is_wide, (taps + kLanes - 1) / kLanes, 0)},
                 {0, all_vectors}},
                "wide");
    const Expr channel = wide[3] * kLanes + wide[1];
    wide.where(channel < channels);
    dw(j, o, g) = undef<float>();
    dw(first(wide[2]) + wide[0], channel, g) = steps.back()(wide[0], wide[1], wide[2], wide[3], g);

    define(single);
    narrow = RDom(0, select(is_wide, 0, taps), 0, channels, "narrow");
    dw(narrow.x, narrow.y, g) = single(narrow.y % kLanes, narrow.y / kLanes, narrow.x, g);
  }

  void schedule() {
    sums.dim(0).set_bounds(0, kLanes).set_stride(1);
    for (int d = 1; d < 5; ++d) sums.dim(d).set_min(0);
    set_mins(dw);
    constexpr int kBlocks = 3;
    RVar jo("jo"), ji("ji");
    Func(dw)
        .update(0)
        .allow_race_conditions()
        .split(wide[2], jo, ji, kBlocks, TailStrategy::GuardWithIf)
        .reorder({wide[0], wide[1], ji, jo, wide[3], g})
        .vectorize(wide[0])
        .unroll(wide[1])
        .gpu_blocks(jo, wide[3], g)
        .never_partition_all();
    hold_block(steps, LoopLevel(dw, ji), kLanes, l, r, {jb, v});
    total.compute_at(dw, ji).store_in(MemoryType::Register);
    total.bound_extent(l, kLanes).bound_extent(v, 1).bound_extent(j, kLanes);
    total.vectorize(l).unroll(j);
    total.update().reorder(l, j, v, chunks).vectorize(l).unroll(j);

    Func(dw).update(1).gpu_blocks(narrow.y, g).never_partition_all();
    single.compute_at(dw, narrow.x);
  }

 private:
  // The sum of all chunks.
  void define(Func sum) {
    chunks = RDom(0, sums.dim(4).extent(), "chunks");
    sum(l, v, j, g) = 0.0f;
    sum(l, v, j, g) =
        strict_float(sum(l, v, j, g) + sums(l, v % vectors, j, g * panels + v / vectors, chunks));
  }

  Var l{"l"}, v{"v"}, j{"j"}, o{"o"}, g{"g"}, r{"r"}, jb{"jb"};
  Func total{"total"}, single{"single"};
  std::vector<Func> steps;
  RDom chunks, wide, narrow;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWeightTiles, conv_weight_tiles)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWeightWhole, conv_weight_whole)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWeightSum, conv_weight_sum)
