// Convolution from padded planes (conv_planes_recipe.h) on CPUs with channels in the lanes: tiles
// of 6 pixels x 16 `vectors` channels, pixels broadcast from where they lie, weights in whole cache
// lines.
// The sums are transposed in blocks of 16 x 16 and written in vectors along the rows.
//
// The taps come in chunks whose weights stay in the nearest cache while all tiles of a block pass;
// an element is the sum over chunks of fma chains over (channel, row, column), started at +0.
#include "kernels/conv/conv_planes_recipe.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

class ConvPlaneChannels : public PlanesGenerator<ConvPlaneChannels> {
 public:
  GeneratorParam<int> vectors{"vectors", 4};

  void generate() {
    make_planes();
    sum();
    store();
  }

  void schedule() {
    set_layouts(tile_channels());
    const RVar channel = results[1], column = results[2], tile = results[5], part = results[6];
    Stage write = Func(out).update();
    write.allow_race_conditions();
    write.reorder({results[0], channel, column, results[3], results[4], tile, part, g, n});
    write.vectorize(results[0]).unroll(channel);
    write.gpu_blocks(part, g, n).never_partition_all();
    for (Func func : turned) {
      func.compute_at(out, column).store_in(MemoryType::Register);
      func.bound_extent(l, kLanes).bound_extent(j, kLanes);
      for (const Var& one : {v, x, y_, o, p, g, n}) func.bound_extent(one, 1);
      func.vectorize(l).unroll(j);
    }
    turned.back().specialize(epilogue.is_plain());
    turned.back().specialize(epilogue.has_residual == 0);
    schedule_planes(LoopLevel(out, part));
    schedule_product(tile);
  }

 private:
  static constexpr int kTilePixels = 6;
  int tile_channels() const { return vectors * kLanes; }

  void sum() {
    const Expr taps = kernel_w * kernel_h * in.dim(2).extent();
    chunks = RDom(0, (taps + chunk_taps - 1) / chunk_taps, "chunks");
    steps = RDom(0, chunk_taps, "steps");
    const Expr tap = k * chunk_taps + steps;
    steps.where(tap < taps);
    product(l, v, q, o, p, g, n, k) = 0.0f;
    product(l, v, q, o, p, g, n, k) =
        fma_f32(padded(unsafe_promise_clamped(place(tap) + q, 0, elements - 1), p, g, n),
                weights(v * kLanes + l, tap, tile_of(p, o), g), product(l, v, q, o, p, g, n, k));
    total(l, v, q, o, p, g, n) = 0.0f;
    // Their rows are asked for on the way, those of some channels per chunk: else writing them
    // waits for memory.
    const int asked_vectors = std::min<int>(vectors, 2);
    const Expr which = (chunks * asked_vectors + v) * kTilePixels + q % kTilePixels;
    const Expr channel = channel_of(tile_of(p, o), which % tile_channels(), tile_channels());
    const Expr sum =
        strict_float(total(l, v, q, o, p, g, n) + product(l, v, q, o, p, g, n, chunks));
    const Expr row = same(first_row(p) * out.dim(0).extent() + q + l, channel, g, n);
    total(l, v, q, o, p, g, n) = select(v < asked_vectors, with_prefetch(sum, row), sum);
  }

  void store() {
    const Expr width = out.dim(0).extent(), height = out.dim(1).extent(),
               channels = out.dim(2).extent();
    const Expr blocks = (height + rows - 1) / rows,
               all_tiles = (channels + tile_channels() - 1) / tile_channels();
    results = RDom({{0, kLanes},
                    {0, kLanes},
                    {0, (width + kLanes - 1) / kLanes},
                    {0, rows},
                    {0, vectors},
                    {0, tiles_per_part},
                    {0, blocks * parts}},
                   "results");
    const Expr vector = results[4], tile = results[5], part = results[6];
    results.where(tile_of(part, tile) < all_tiles);

    Func block("block"), ended("ended");
    block(l, j, v, x, y_, o, p, g, n) = total(l, v, y_ * pitch + x + j, o, p, g, n);
    turned = transpose_block(block, kLanes, sizeof(float), l, j, {v, x, y_, o, p, g, n});
    ended(l, j, v, x, y_, o, p, g, n) =
        with_epilogue(turned.back()(l, j, v, x, y_, o, p, g, n), x + l, first_row(p) + y_,
                      channel_of(tile_of(p, o), v * kLanes + j, tile_channels()));
    turned.push_back(ended);

    const Expr column = min(results[2] * kLanes, width - kLanes);
    out(x, y_, c, g, n) = undef<float>();
    out(column + results[0], first_row(part) + results[3],
        channel_of(tile_of(part, tile), vector * kLanes + results[1], tile_channels()), g, n) =
        ended(results[0], results[1], vector, column, results[3], tile, part, g, n);
  }

  void schedule_product(const RVar& tile) {
    total.compute_at(out, tile).store_in(MemoryType::Stack);
    total.bound(q, 0, tiles * kTilePixels).bound_storage(q, kPlanePixels);
    for (Func func : {total, product}) {
      func.bound_extent(l, kLanes).bound_extent(v, vectors);
      for (const Var& one : {o, p, g, n}) func.bound_extent(one, 1);
    }
    total.vectorize(l).unroll(v).never_partition_all();
    total.update()
        .split(q, u, qi, kTilePixels)
        .reorder({l, v, qi, u, chunks, o, p, g, n})
        .vectorize(l)
        .unroll(v)
        .unroll(qi)
        .never_partition_all();
    product.compute_at(total, u).store_in(MemoryType::Register);
    product.bound_extent(q, kTilePixels).bound_extent(k, 1).vectorize(l).unroll(v).unroll(q);
    product.update().reorder({l, v, q, steps, o, p, g, n, k}).vectorize(l).unroll(v).unroll(q);
  }

  Var x{"x"}, y_{"y"}, c{"c"}, q{"q"}, qi{"qi"}, u{"u"}, k{"k"};
  Func product{"product"}, total{"total"};
  std::vector<Func> turned;  // (lane, channel, vector of channels, column, row, o, p, g, n) at last
  RDom chunks, steps, results;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPlaneChannels, conv_plane_channels)
