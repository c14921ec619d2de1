// 3x3 convolutions without strides on CPUs by Winograd's algorithm (conv_winograd_recipe.h).
#include "kernels/conv/conv_plane_channels_recipe.h"
#include "kernels/conv/conv_winograd.h"
#include "kernels/conv/conv_winograd_recipe.h"

namespace ballast::kernels {
namespace {

using namespace Halide;
using winograd::kElements, winograd::kSide;

// Padded planes of the four phases of a stride of 2 lie on the stack (conv_planes_recipe.h), so
// what the tiles of a row have in one place lies side by side. Transformed they are
// spread[element][channel][tile], and multiplied as matmul's tiles are: `broadcasts` tiles x 16
// `vectors` output channels.
class ConvWinograd : public PlaneChannelsGenerator<ConvWinograd> {
 public:
  GeneratorParam<int> broadcasts{"broadcasts", 6};  // tiles whose sums are in registers

  void generate() {
    results_per_window = 2;
    pad(2, 2);
    spread_input();
    multiply();
    gather_results();
    store_rows();
  }

  void schedule() {
    set_layouts(tile_channels());
    schedule_store();
    schedule_planes(LoopLevel(out, part()));

    spread.compute_at(out, part()).store_in(MemoryType::Stack);
    spread.bound_storage(f, kWinogradSpread).never_partition_all();
    spread.update()
        .allow_race_conditions()
        .never_partition_all()
        .reorder(
            {parts_of_tiles[0], parts_of_tiles[1], parts_of_tiles[2], parts_of_tiles[3], p, g, n})
        .vectorize(parts_of_tiles[0])
        .unroll(parts_of_tiles[1]);

    product.compute_at(out, tile()).store_in(MemoryType::Stack);
    product.bound(q, 0, tiles * broadcasts).bound_storage(q, kWinogradTiles).bound(e, 0, kElements);
    for (Stage stage : {Stage(product), product.update()}) {
      stage.split(q, u, qi, broadcasts);
      stage.vectorize(l).unroll(v).unroll(qi).never_partition_all();
    }
    product.reorder({l, v, qi, u, e, o, p, g, n});
    product.update().reorder({l, v, qi, u, chunks, e, o, p, g, n});
    sum.compute_at(product, u).store_in(MemoryType::Register);
    sum.bound_extent(q, broadcasts).vectorize(l).unroll(v).unroll(q);
    sum.update().reorder({l, v, q, steps, e, o, p, g, n, k}).vectorize(l).unroll(v).unroll(q);

    place.compute_at(out, part()).store_in(MemoryType::Stack);
    place.bound(t, 0, rows * 2 * out.dim(0).extent()).bound_storage(t, 4 * kWinogradTiles);
    place.never_partition_all();
    gathered.compute_at(out, tile()).store_in(MemoryType::Stack);
    gathered.bound_storage(f, 4 * kWinogradTiles).never_partition_all();
    gathered.update()
        .allow_race_conditions()
        .never_partition_all()
        .reorder({l, windows[0], windows[1], v, windows[2], windows[3], o, p, g, n})
        .vectorize(l)
        .unroll(windows[0])
        .unroll(windows[1]);
    for (Func func : {product, sum, gathered}) {
      func.bound_extent(l, kLanes).bound_extent(v, vectors);
      for (const Var& one : {o, p, g, n}) func.bound_extent(one, 1);
    }
    sum.bound_extent(e, 1).bound_extent(k, 1);
    for (const Var& one : {p, g, n}) spread.bound_extent(one, 1);
  }

 private:
  // Where the tiles of one element and channel lie: whole vectors.
  Expr spread_at(const Expr& element, const Expr& channel) const {
    const Expr vectors_of_tiles = (tiles * broadcasts + kLanes - 1) / kLanes;
    return (element * (in.dim(2).extent() * vectors_of_tiles + 1) + channel * vectors_of_tiles) *
           kLanes;
  }

  void spread_input() {
    const Expr channels = in.dim(2).extent();
    parts_of_tiles = RDom({{0, kLanes},
                           {0, kElements},
                           {0, channels},
                           {0, (tiles * broadcasts + kLanes - 1) / kLanes}},
                          "parts_of_tiles");
    const Expr element = parts_of_tiles[1], channel = parts_of_tiles[2],
               first = parts_of_tiles[3] * kLanes;
    const auto element_of_tile = [&](int row, int column) {
      const Expr phase = (channel * 2 + row % 2) * 2 + column % 2;
      const Expr at = phase * plane + (row / 2) * pitch + column / 2 + first;
      return padded(unsafe_promise_clamped(at + parts_of_tiles[0], 0, elements - 1), p, g, n);
    };
    spread(f, p, g, n) = undef<float>();
    spread(spread_at(element, channel) + first + parts_of_tiles[0], p, g, n) =
        mux(element, winograd::transformed(winograd::spread, kSide, kSide, element_of_tile));
  }

  // The channels come in chunks whose weights stay in the nearest cache while all tiles pass.
  void multiply() {
    const Expr channels = in.dim(2).extent();
    steps = RDom(0, chunk_taps, "steps");
    chunks = RDom(1, (channels + chunk_taps - 1) / chunk_taps - 1, "chunks");
    const Expr channel = k * chunk_taps + steps;
    steps.where(channel < channels);
    sum(l, v, q, e, o, p, g, n, k) = 0.0f;
    sum(l, v, q, e, o, p, g, n, k) =
        fma_f32(spread(spread_at(e, channel) + q, p, g, n),
                weights(v * kLanes + l, e * channels + channel, tile_of(p, o), g),
                sum(l, v, q, e, o, p, g, n, k));
    product(l, v, q, e, o, p, g, n) = sum(l, v, q, e, o, p, g, n, 0);
    product(l, v, q, e, o, p, g, n) =
        strict_float(product(l, v, q, e, o, p, g, n) + sum(l, v, q, e, o, p, g, n, chunks));
  }

  // Results as they lie in rows that are 2 `pitch` apart.
  void gather_results() {
    const Expr columns = (out.dim(0).extent() + 1) / 2;
    windows = RDom({{0, 2}, {0, 2}, {0, columns}, {0, rows}}, "windows");
    const Expr across = windows[0], down = windows[1], column = windows[2], row = windows[3];
    const auto element = [&](int y, int x) {
      return product(l, v, row * pitch + column, y * kSide + x, o, p, g, n);
    };
    gathered(l, v, f, o, p, g, n) = undef<float>();
    gathered(l, v, (row * 2 + down) * 2 * pitch + column * 2 + across, o, p, g, n) =
        mux(down * 2 + across, winograd::transformed(winograd::gather, 2, kSide, element));
  }

  // Rows of results without gaps: element x of a block's may be one of its second row, or later.
  void store_rows() {
    const Expr width = out.dim(0).extent(), height = out.dim(1).extent();
    place(t) = (t / width) * 2 * pitch + t % width;
    const auto first = [this, width](const Expr& which) { return first_row(which) * 2 * width; };
    store(gathered,
          {rows * 2 * width, 1,
           [=](const Expr& which) { return min(rows * 2 * width, height * width - first(which)); },
           [this](const Expr& x, const Expr&) {
             return unsafe_promise_clamped(place(x), 0, 4 * kWinogradTiles - 1);
           },
           [=](const Expr& which, const Expr& x, const Expr&) {
             return std::vector<Expr>{first(which) + x, 0};
           }});
  }

  Var f{"f"}, q{"q"}, qi{"qi"}, u{"u"}, e{"e"}, k{"k"};
  Func spread{"spread"}, sum{"sum"}, product{"product"}, gathered{"gathered"};
  RDom parts_of_tiles, steps, chunks, windows;
};

// G w G' as conv_winograd reads it: weights[group][tile][element][channel][row].
class ConvWinogradFilters : public Generator<ConvWinogradFilters> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> first_tap{"first_tap"}, tap_step{"tap_step"};  // of a window, which may be flipped
  Input<Buffer<float, 4>> source{"source"};   // (tap, input channel, output channel, group)
  Output<Buffer<float, 5>> packed{"packed"};  // (row, channel, element, tile, group)

  void generate() {
    const Expr rows = packed.dim(0).extent();
    window(t, c, j, o, g) =
        source(first_tap + t * tap_step, c, min(o * rows, source.dim(2).extent() - rows) + j, g);
    const auto tap = [&](int row, int column) { return window(row * 3 + column, c, j, o, g); };
    packed(j, c, e, o, g) = mux(e, winograd::transformed(winograd::filter, kSide, 3, tap));
  }

  // Windows of 16 x 16 channels at a time, of which those of one side lie side by side.
  void schedule() {
    for (int d = 0; d < 4; ++d) source.dim(d).set_min(0).set_stride(Expr());
    for (int d = 0; d < 5; ++d) packed.dim(d).set_min(0);
    packed.dim(2).set_extent(kElements);
    Func(packed)
        .split(j, jo, j, kLanes)  // what all tiles' channels are a multiple of
        .split(c, co, c, kLanes, TailStrategy::ShiftInwards)
        .reorder(j, e, c, jo, co, o, g)
        .vectorize(j)
        .unroll(e)
        .gpu_blocks(co, o, g)
        .never_partition_all();
    window.compute_at(packed, jo).store_in(MemoryType::Stack).never_partition_all();
    window.bound_extent(t, 9).bound_extent(c, kLanes).bound_extent(j, kLanes);
    window.bound_extent(o, 1).bound_extent(g, 1).unroll(t);
  }

 private:
  Var t{"t"}, j{"j"}, jo{"jo"}, e{"e"}, c{"c"}, co{"co"}, o{"o"}, g{"g"};
  Func window{"window"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWinograd, conv_winograd)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWinogradFilters, conv_winograd_filters)
