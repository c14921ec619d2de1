// Convolution from padded planes (conv_planes_recipe.h) on CPUs with channels in the lanes: tiles
// of 6 pixels x 16 `vectors` channels, pixels broadcast from where they lie, weights in whole cache
// lines (stored by conv_plane_channels_recipe.h).
//
// The taps come in chunks whose weights stay in the nearest cache while all tiles of a block pass;
// an element is the sum over chunks of fma chains over (channel, row, column), started at +0.
#include "kernels/conv/conv_plane_channels_recipe.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

class ConvPlaneChannels : public PlaneChannelsGenerator<ConvPlaneChannels> {
 public:
  Input<int> chunk_taps{"chunk_taps"};  // whose sums join the sum of all
  PlaneWindow window;

  void generate() {
    make_planes(window);
    sum();
    const Expr width = out.dim(0).extent(), height = out.dim(1).extent();
    store(total, {(height + rows - 1) / rows, width, rows, [=](const Expr&) { return width; },
                  [this](const Expr& x, const Expr& j, const Expr& y) {
                    // Where a vector begins is one number, and j a constant from there.
                    const Expr last = tiles * kTilePixels - kLanes;
                    return std::vector<Expr>{unsafe_promise_clamped(y * pitch + x, 0, last) + j};
                  },
                  [this](const Expr& which, const Expr& x, const Expr& y) {
                    return std::vector<Expr>{x, first_row(which) + y};
                  }});
  }

  void schedule() {
    set_layouts(tile_channels());
    schedule_store();
    schedule_planes(LoopLevel(out, part()), window);
    schedule_product();
  }

 private:
  static constexpr int kTilePixels = 6;

  void sum() {
    const Expr taps = window.taps() * in.dim(2).extent();
    chunks = RDom(1, (taps + chunk_taps - 1) / chunk_taps - 1, "chunks");
    steps = RDom(0, chunk_taps, steps_of_tile(vectors));
    const Expr tap = k * chunk_taps + steps;
    steps.where(tap < taps);
    product(l, v, q, o, p, g, n, k) = 0.0f;
    product(l, v, q, o, p, g, n, k) =
        fma_f32(padded(unsafe_promise_clamped(window.place(tap) + q, 0, elements - 1), 0, p, g, n),
                weights(v * kLanes + l, tap, tile_of(p, o), g), product(l, v, q, o, p, g, n, k));
    // Their rows are asked for on the way, those of some channels per chunk: else writing them
    // waits for memory.
    const int asked_vectors = std::min<int>(vectors, 2);
    const auto asking = [&](const Expr& sum, const Expr& chunk) {
      const Expr which = (chunk * asked_vectors + v) * kTilePixels + q % kTilePixels;
      const Expr channel = channel_of(tile_of(p, o), which % tile_channels(), tile_channels());
      const Expr row = window.same(first_row(p) * out.dim(0).extent() + q + l, channel, g, n);
      return select(v < asked_vectors, with_prefetch(sum, row), sum);
    };
    total(l, v, q, o, p, g, n) = asking(product(l, v, q, o, p, g, n, 0), 0);
    total(l, v, q, o, p, g, n) = asking(
        strict_float(total(l, v, q, o, p, g, n) + product(l, v, q, o, p, g, n, chunks)), chunks);
  }

  void schedule_product() {
    total.compute_at(out, tile()).store_in(MemoryType::Stack);
    total.bound(q, 0, tiles * kTilePixels).bound_storage(q, kPlanePixels);
    for (Func func : {total, product}) {
      func.bound_extent(l, kLanes).bound_extent(v, vectors);
      for (const Var& one : {o, p, g, n}) func.bound_extent(one, 1);
    }
    go_by_tiles(total, q, u, kTilePixels, {o, p, g, n});
    go_by_tiles(total.update(), q, u, kTilePixels, {chunks, o, p, g, n});
    product.compute_at(total, u).store_in(MemoryType::Register);
    product.bound_extent(q, kTilePixels).bound_extent(k, 1).vectorize(l).unroll(v).unroll(q);
    product.update().reorder({l, v, q, steps, o, p, g, n, k}).vectorize(l).unroll(v).unroll(q);
  }

  Var q{"q"}, u{"u"}, k{"k"};
  Func product{"product"}, total{"total"};
  RDom chunks, steps;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPlaneChannels, conv_plane_channels)
