// Convolution from padded planes (conv_planes_recipe.h) on CPUs with pixels in the lanes: tiles of
// `channels` x `vectors` of pixels, weights broadcast from where they lie. Each channel's rows are
// written in one run.
//
// An element is the fma chain over (channel, row, column) of its window, started at +0.
#include "kernels/conv/planes/conv_planes_recipe.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

class ConvPlanes : public PixelPlanesGenerator<ConvPlanes> {
  friend PixelPlanesGenerator<ConvPlanes>;

 public:
  void schedule() {
    set_layouts(channels);
    const RVar tile = results[5], part = results[6];
    Stage write = Func(out).update();
    write.allow_race_conditions();
    write.reorder({results[0], results[1], results[2], results[3], results[4], tile, part, g, n});
    write.gpu_blocks(part, g, n).never_partition_all();
    for (const Expr& terms : {epilogue.is_plain(), Expr(epilogue.has_residual == 0),
                              Expr(epilogue.has_residual != 0)}) {
      RVar vector("vector");
      write.specialize(has_vectors() && terms)
          .fuse(results[0], results[1], vector)
          .vectorize(vector);
      write.specialize(has_halves() && terms).vectorize(results[0]);
    }

    schedule_planes(LoopLevel(out, part), window);
    schedule_product(tile);
  }

 private:
  static constexpr int kHalf = kLanes / 2;

  int tile_pixels() const { return vectors * kLanes; }
  // Whether a row of results has a vector, or half of one.
  Expr has_vectors() const { return width() >= kLanes; }
  Expr has_halves() const { return !has_vectors() && width() >= kHalf; }

  void sum() {
    const Expr taps = window.taps() * in.dim(2).extent();
    steps = RDom(0, taps, steps_of_tile(vectors));
    const Expr pixel = window.place(steps) + u * tile_pixels() + v * kLanes + l;
    product(l, v, j, u, o, p, g, n) = 0.0f;
    product(l, v, j, u, o, p, g, n) =
        fma_f32(weights(j, steps, tile_of(p, o), g),
                padded(unsafe_promise_clamped(pixel, 0, elements - 1), 0, p, g, n),
                product(l, v, j, u, o, p, g, n));
    // Its rows are asked for while the next tiles are computed: else writing them waits for memory.
    const Expr result =
        product(q % kLanes, (q / kLanes) % vectors, j, q / tile_pixels(), o, p, g, n);
    staged(q, j, o, p, g, n) = with_prefetch(
        result,
        window.same(first_row(p) * width() + q, channel_of(tile_of(p, o), j, channels), g, n));
  }

  void store() {
    const Expr all_channels = out.dim(2).extent();
    const Expr blocks = (height() + rows - 1) / rows,
               all_tiles = (all_channels + channels - 1) / channels;
    results = RDom({{0, kHalf},
                    {0, 2},
                    {0, (width() + kLanes - 1) / kLanes},
                    {0, rows},
                    {0, channels},
                    {0, tiles_per_part},
                    {0, blocks * parts}},
                   "results");
    const Expr part = results[6], tile = tile_of(part, results[5]);
    results.where(tile < all_tiles);
    // The last vector, or half, of a row moves inwards. Narrow rows are written one by one, the
    // last element several times.
    const Expr half = results[1], lane = half * kHalf + results[0];
    const Expr column =
        select(has_vectors(), min(results[2] * kLanes, width() - kLanes) + lane, has_halves(),
               half * (width() - kHalf) + results[0], min(lane, width() - 1));
    const Expr row = results[3], y = first_row(part) + row,
               channel = channel_of(tile, results[4], channels);
    out(x, y_, c, g, n) = undef<float>();
    const Expr sum = staged(row * pitch + column, results[4], results[5], part, g, n);
    out(column, y, channel, g, n) = with_epilogue(sum, column, y, channel);
  }

  void schedule_product(const RVar& tile) {
    staged.compute_at(out, tile).store_in(MemoryType::Stack);
    staged.bound(q, 0, tiles * tile_pixels()).bound_storage(q, kPlanePixels).bound(j, 0, channels);
    staged.split(q, u, qi, tile_pixels())
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
    product.bound_extent(l, kLanes).bound_extent(v, vectors).bound_extent(j, channels);
    product.bound_extent(u, 1);
    product.vectorize(l).unroll(v).unroll(j);
    product.update().reorder({l, v, j, steps, u, o, p, g, n}).vectorize(l).unroll(v).unroll(j);
  }

  Var x{"x"}, y_{"y"}, c{"c"}, q{"q"}, qi{"qi"}, u{"u"};
  Func staged{"staged"};
  RDom steps, results;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPlanes, conv_planes)
