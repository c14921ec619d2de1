// Convolution from padded planes (conv_planes_recipe.h) on CPUs with channels in the lanes: tiles
// of 6 pixels x 16 `vectors` channels, pixels broadcast from where they lie, weights in whole cache
// lines (stored by conv_plane_channels_recipe.h). A tile's pixels are any: of several rows, too.
//
// The taps come in chunks whose weights stay in the nearest cache while all tiles of a block pass;
// an element is the sum over chunks of fma chains over (channel, row, column), started at +0.
#include "kernels/conv/planes/conv_plane_channels_recipe.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

class ConvPlaneChannels : public PlaneChannelsGenerator<ConvPlaneChannels> {
 public:
  Input<int> width{"width"};            // of the results, whose rows are one to `out`
  Input<int> chunk_taps{"chunk_taps"};  // whose sums join the sum of all
  PlaneWindow window;

  void generate() {
    make_planes(window, height());
    find_pixels();
    sum();
    const Expr pixels = rows * width;
    store(total, {(height() + rows - 1) / rows, pixels, 1, [=](const Expr&) { return pixels; },
                  [=](const Expr& x, const Expr& j, const Expr&) {
                    // Where a vector begins is one number, and j a constant from there.
                    return std::vector<Expr>{unsafe_promise_clamped(x, 0, pixels - kLanes) + j};
                  },
                  [this](const Expr& which, const Expr& x, const Expr& y) {
                    return std::vector<Expr>{first_pixel(which) + x, y};
                  }});
  }

  void schedule() {
    set_layouts(tile_channels());
    schedule_store();
    schedule_planes(LoopLevel(out, part()), window);
    pixel_place.compute_at(LoopLevel(out, part())).store_in(MemoryType::Stack);
    pixel_place.bound(q, 0, tiles * kTilePixels).bound_storage(q, kPlanePixels);
    pixel_place.never_partition_all().update().never_partition_all();
    schedule_product();
  }

 private:
  static constexpr int kTilePixels = 6;

  Expr height() const { return out.dim(0).extent() / width; }
  Expr first_pixel(const Expr& which) const { return first_row(which, height()) * width; }

  // Where the windows of a block's pixels begin. Those that fill up its last tile are not stored.
  void find_pixels() {
    const RDom pixel(0, width, 0, rows, "pixel");
    pixel_place(q) = 0;
    pixel_place(unsafe_promise_clamped(pixel.x + width * pixel.y, 0, kPlanePixels - 1)) =
        pixel.y * pitch + pixel.x;
    start(q) = pixel_place(q);
  }

  void sum() {
    const Expr taps = window.taps() * in.dim(2).extent();
    chunks = RDom(1, (taps + chunk_taps - 1) / chunk_taps - 1, "chunks");
    steps = RDom(0, chunk_taps, steps_of_tile(vectors));
    const Expr tap = k * chunk_taps + steps;
    steps.where(tap < taps);
    product(l, v, q, o, p, g, n, k) = 0.0f;
    const Expr from = unsafe_promise_clamped(start(q), 0, 1 << 20) + window.place(tap);
    product(l, v, q, o, p, g, n, k) =
        fma_f32(padded(unsafe_promise_clamped(from, 0, elements - 1), 0, p, g, n),
                weights(v * kLanes + l, tap, tile_of(p, o), g), product(l, v, q, o, p, g, n, k));
    // Their rows are asked for on the way, those of some channels per chunk: else writing them
    // waits for memory.
    const int asked_vectors = std::min<int>(vectors, 2);
    const auto asking = [&](const Expr& sum, const Expr& chunk) {
      const Expr which = (chunk * asked_vectors + v) * kTilePixels + q % kTilePixels;
      const Expr channel = channel_of(tile_of(p, o), which % tile_channels(), tile_channels());
      const Expr row = window.same(first_pixel(p) + q + l, channel, g, n);
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
    start.compute_at(total, u).store_in(MemoryType::Register);
    start.bound_extent(q, kTilePixels).unroll(q);
    product.compute_at(total, u).store_in(MemoryType::Register);
    product.bound_extent(q, kTilePixels).bound_extent(k, 1).vectorize(l).unroll(v).unroll(q);
    product.update().reorder({l, v, q, steps, o, p, g, n, k}).vectorize(l).unroll(v).unroll(q);
  }

  Var q{"q"}, u{"u"}, k{"k"};
  Func pixel_place{"pixel_place"}, start{"start"}, product{"product"}, total{"total"};
  RDom chunks, steps;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPlaneChannels, conv_plane_channels)
