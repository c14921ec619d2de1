// dx of a convolution two apart both ways, on CPUs: its even and odd rows and columns are four
// phases, each a convolution of dy with every other tap. A work-group computes all of them for some
// rows of padded planes (conv_planes_recipe.h), with channels in the lanes, in tiles of 6 pixels x
// 16 `vectors` channels as conv_plane_channels does. Blocks of 16 x 16 sums are transposed with the
// columns of two phases in turns, so that dx is written in order.
//
// An element is the sum over chunks of fma chains over (channel, row, column), started at +0.
#include "kernels/conv/planes/conv_plane_channels_recipe.h"
#include "kernels/conv/planes/conv_plane_phases.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

class ConvPlanePhases : public PlaneChannelsGenerator<ConvPlanePhases> {
 public:
  // Of the two phases of rows, and of columns: taps, and where their windows begin in a padded
  // plane.
  Input<int> taps_h0{"taps_h0"}, taps_h1{"taps_h1"}, taps_w0{"taps_w0"}, taps_w1{"taps_w1"},
      begin_h0{"begin_h0"}, begin_h1{"begin_h1"}, begin_w0{"begin_w0"}, begin_w1{"begin_w1"};
  Input<int> chunk_taps{"chunk_taps"};   // whose sums join the sum of all
  Input<Buffer<float, 4>> same{"same"};  // as out: (pixel, channel, group, n)

  void generate() {
    pad(1, 1, {n, 1, first_row_of_phase(p), plane / pitch, in.dim(2).extent()});
    find_places();
    sum();
    const Expr width = out.dim(0).extent() / 2 * 2, height = out.dim(1).extent() / 2;
    store(total, {(height + rows - 1) / rows, width, 2 * rows, [=](const Expr&) { return width; },
                  [this](const Expr& column, const Expr& j, const Expr& row) {
                    // Where a vector begins is one number, and j a constant from there.
                    const Expr pixel = unsafe_promise_clamped(row / 2 * pitch + column / 2, 0,
                                                              tiles * kTilePixels - kLanes / 2);
                    return std::vector<Expr>{pixel + j / 2, j % 2, row % 2};
                  },
                  [this](const Expr& which, const Expr& column, const Expr& row) {
                    return std::vector<Expr>{column, 2 * first_row_of_phase(which) + row};
                  }});
  }

  void schedule() {
    set_layouts(tile_channels());
    set_mins(same);
    schedule_store();
    schedule_planes(LoopLevel(out, part()), std::vector<Expr>{});
    place.compute_at(LoopLevel(out, part())).store_in(MemoryType::Stack);
    place.bound_storage(t, kPhaseTaps).bound(i, 0, 2).bound(r, 0, 2).never_partition_all();
    place.update().never_partition_all();
    schedule_product();
  }

 private:
  static constexpr int kTilePixels = 6;

  Expr first_row_of_phase(const Expr& which) const {
    return min((which / parts) * rows, out.dim(1).extent() / 2 - rows);
  }
  Expr taps_h(const Expr& row) const { return select(row == 0, taps_h0, taps_h1); }
  Expr taps_w(const Expr& column) const { return select(column == 0, taps_w0, taps_w1); }
  Expr taps(const Expr& column, const Expr& row) const {
    return taps_w(column) * taps_h(row) * in.dim(2).extent();
  }
  Expr chunks_of(const Expr& taps) const { return (taps + chunk_taps - 1) / chunk_taps; }

  // Of the taps of phase (i, r), from a pixel of it.
  void find_places() {
    RDom tap(0, max(taps_w0, taps_w1), 0, max(taps_h0, taps_h1), 0, in.dim(2).extent(), "tap");
    tap.where(tap.x < taps_w(i) && tap.y < taps_h(r));
    const Expr number = tap.x + taps_w(i) * (tap.y + taps_h(r) * tap.z),
               row = tap.y + select(r == 0, begin_h0, begin_h1),
               column = tap.x + select(i == 0, begin_w0, begin_w1);
    place(t, i, r) = undef<int>();
    place(unsafe_promise_clamped(number, 0, kPhaseTaps - 1), i, r) =
        row * pitch + column + tap.z * plane;
  }

  void sum() {
    const Expr most = max(taps_w0, taps_w1) * max(taps_h0, taps_h1) * in.dim(2).extent();
    chunks = RDom(1, chunks_of(most) - 1, "chunks");
    chunks.where(chunks < chunks_of(taps(i, r)));
    steps = RDom(0, chunk_taps, steps_of_tile(vectors));
    const Expr tap = k * chunk_taps + steps;
    steps.where(tap < taps(i, r));
    // Those of the phases lie one after the other.
    const Expr before =
        select(r == 0, 0, taps_h0 * (taps_w0 + taps_w1)) + select(i == 0, 0, taps_h(r) * taps_w0);
    first_weight(i, r, k) = before * in.dim(2).extent() + k * chunk_taps;
    const Expr weight = unsafe_promise_clamped(first_weight(i, r, k), 0, 1 << 20) + steps;
    const Expr from = place(unsafe_promise_clamped(tap, 0, kPhaseTaps - 1), i, r) + q;
    product(l, v, q, i, r, o, p, g, n, k) = 0.0f;
    product(l, v, q, i, r, o, p, g, n, k) = fma_f32(
        padded(unsafe_promise_clamped(from, 0, elements - 1), 0, p, g, n),
        weights(v * kLanes + l, weight, tile_of(p, o), g), product(l, v, q, i, r, o, p, g, n, k));
    // Their rows are asked for on the way, those of some channels per chunk of any phase; a pixel
    // is four of dx.
    constexpr int kAskedVectors = 2;
    const auto asking = [&](const Expr& value, const Expr& chunk) {
      const Expr which = unsafe_promise_clamped(first_weight(i, r, chunk), 0, 1 << 20) / chunk_taps;
      const Expr of_tile = (which * kTilePixels + q % kTilePixels) % tile_channels();
      const Expr channel = channel_of(tile_of(p, o), of_tile, tile_channels());
      const Expr pixel = 2 * first_row_of_phase(p) * out.dim(0).extent() + v * kLanes + l +
                         (q - q % kTilePixels) * 4;
      return select(v < kAskedVectors, with_prefetch(value, same(pixel, channel, g, n)), value);
    };
    total(l, v, q, i, r, o, p, g, n) = asking(product(l, v, q, i, r, o, p, g, n, 0), 0);
    total(l, v, q, i, r, o, p, g, n) = asking(
        strict_float(total(l, v, q, i, r, o, p, g, n) + product(l, v, q, i, r, o, p, g, n, chunks)),
        chunks);
  }

  void schedule_product() {
    total.compute_at(out, tile()).store_in(MemoryType::Stack);
    total.bound(q, 0, tiles * kTilePixels).bound_storage(q, kPhasePixels);
    total.bound(i, 0, 2).bound(r, 0, 2);
    for (Func func : {total, product}) {
      func.bound_extent(l, kLanes).bound_extent(v, vectors);
      for (const Var& one : {o, p, g, n}) func.bound_extent(one, 1);
    }
    go_by_tiles(total, q, u, kTilePixels, {i, r, o, p, g, n});
    go_by_tiles(total.update(), q, u, kTilePixels, {chunks, i, r, o, p, g, n});
    first_weight.compute_at(total, u).store_in(MemoryType::Register);
    for (const Var& one : {i, r, k}) first_weight.bound_extent(one, 1);
    product.compute_at(total, u).store_in(MemoryType::Register);
    product.bound_extent(q, kTilePixels).vectorize(l).unroll(v).unroll(q);
    for (const Var& one : {i, r, k}) product.bound_extent(one, 1);
    product.update()
        .reorder({l, v, q, steps, i, r, o, p, g, n, k})
        .vectorize(l)
        .unroll(v)
        .unroll(q);
  }

  Var q{"q"}, u{"u"}, k{"k"}, t{"t"};
  Var i{"i"}, r{"r"};  // of columns and of rows: even or odd
  Func place{"place"}, first_weight{"first_weight"}, product{"product"}, total{"total"};
  RDom chunks, steps;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPlanePhases, conv_plane_phases)
