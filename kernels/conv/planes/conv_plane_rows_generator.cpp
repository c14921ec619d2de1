// Convolution from padded planes (conv_planes_recipe.h) on CPUs with pixels in the lanes, as
// conv_planes, for rows of a vector of so many `lanes` and more: a tile's `vectors` are any of the
// block's, the last of a row moved inwards. So nothing is computed for the gaps between rows, and
// sums go from their registers to where they belong.
//
// An element is the fma chain over (channel, row, column) of its window, started at +0.
#include "kernels/conv/planes/conv_planes_recipe.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

class ConvPlaneRows : public PixelPlanesGenerator<ConvPlaneRows> {
  friend PixelPlanesGenerator<ConvPlaneRows>;

 public:
  GeneratorParam<int> lanes_of_vector{"lanes", kLanes};

  void schedule() {
    set_layouts(channels);
    const RVar u = results[3], tile = results[4], part = results[5];
    Stage write = Func(out).update();
    write.allow_race_conditions();
    write.reorder({results[0], results[1], results[2], u, tile, part, g, n});
    write.vectorize(results[0]).unroll(results[1]).unroll(results[2]);
    write.gpu_blocks(part, g, n).never_partition_all();
    write.specialize(epilogue.is_plain());
    write.specialize(epilogue.has_residual == 0);

    schedule_planes(LoopLevel(out, part), window);
    places.compute_at(out, part).store_in(MemoryType::Stack).never_partition_all();
    places.bound(w, 0, tiles * vectors).bound_extent(p, 1).bound_storage(w, kPlaneVectors);
    for (Func func : {start, product}) {
      func.compute_at(out, u).store_in(MemoryType::Register);
      func.bound_extent(v, vectors).bound_extent(i, 1).bound_extent(p, 1).unroll(v);
    }
    product.bound_extent(l, lanes()).bound_extent(j, channels);
    for (const Var& one : {o, g, n}) product.bound_extent(one, 1);
    product.vectorize(l).unroll(j);
    product.update().reorder({l, v, j, steps, i, o, p, g, n}).vectorize(l).unroll(v).unroll(j);
  }

 private:
  int lanes() const { return lanes_of_vector; }

  // Where vector w of a block lies: from where its windows begin in the planes, its column, and its
  // row of the block. Those beyond the last are the last. A table, as it takes a division, and all
  // tiles of channels ask for it.
  void find_vectors() {
    const Expr row_vectors = (width() + lanes() - 1) / lanes(),
               which = min(w, rows * row_vectors - 1), row = which / row_vectors,
               column = min(which % row_vectors * lanes(), width() - lanes());
    places(w, p) = Tuple(row * pitch + column, column, row);
  }
  struct Place {
    Expr start, column, row;
  };
  Place place_of(const Expr& tile, const Expr& vector, const Expr& part) const {
    const Expr which = tile * vectors + vector;
    const auto value = [&](int index, const Expr& end) {
      return unsafe_promise_clamped(Expr(places(which, part)[index]), 0, end);
    };
    return {value(0, 1 << 20), value(1, width() - 1), value(2, rows - 1)};
  }

  void sum() {
    find_vectors();
    const Expr taps = window.taps() * in.dim(2).extent();
    steps = RDom(0, taps, steps_of_tile(vectors));
    const Place at = place_of(i, v, p);
    start(v, i, p) = at.start;
    const Expr from = start(v, i, p) + window.place(steps) + l;
    // A tile's results are asked for while it is computed: else writing them waits for memory.
    const Expr pixel = (first_row(p) + at.row) * width() + at.column + l;
    product(l, v, j, i, o, p, g, n) =
        with_prefetch(0.0f, window.same(pixel, channel_of(tile_of(p, o), j, channels), g, n));
    product(l, v, j, i, o, p, g, n) =
        fma_f32(weights(j, steps, tile_of(p, o), g),
                padded(unsafe_promise_clamped(from, 0, elements - 1), 0, p, g, n),
                product(l, v, j, i, o, p, g, n));
  }

  void store() {
    const Expr all_channels = out.dim(2).extent();
    const Expr blocks = (height() + rows - 1) / rows,
               all_tiles = (all_channels + channels - 1) / channels;
    results = RDom({{0, lanes()},
                    {0, vectors},
                    {0, channels},
                    {0, tiles},
                    {0, tiles_per_part},
                    {0, blocks * parts}},
                   "results");
    const Expr vector = results[1], u = results[3], part = results[5],
               tile = tile_of(part, results[4]);
    results.where(tile < all_tiles);
    const Place at = place_of(u, vector, part);
    const Expr column = at.column + results[0], y = first_row(part) + at.row,
               channel = channel_of(tile, results[2], channels);
    out(x, y_, c, g, n) = undef<float>();
    const Expr sum = product(results[0], vector, results[2], u, results[4], part, g, n);
    out(column, y, channel, g, n) = with_epilogue(sum, column, y, channel);
  }

  Var x{"x"}, y_{"y"}, c{"c"}, i{"i"}, w{"w"};
  Func places{"places"}, start{"start"};
  RDom steps, results;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPlaneRows, conv_plane_rows)
