// 3x3 convolutions without strides on CPUs by Winograd's algorithm (conv_winograd_recipe.h).
#include "kernels/conv/conv_plane_channels_recipe.h"
#include "kernels/conv/conv_winograd.h"
#include "kernels/conv/conv_winograd_recipe.h"
#include "kernels/hints.h"
#include "kernels/shuffle.h"

namespace ballast::kernels {
namespace {

using namespace Halide;
using winograd::kElements, winograd::kSide;

// A channel's padded planes, of the four phases of a stride of 2, lie on the stack
// (conv_planes_recipe.h), so what the tiles of a row have in one place lies side by side.
// Transformed they are spread[element][channel][tile], and multiplied as matmul's tiles are:
// `broadcasts` tiles x 16 `vectors` output channels. Out is (place in a plane, sample, channel,
// group, 1).
class ConvWinograd : public PlaneChannelsGenerator<ConvWinograd> {
 public:
  GeneratorParam<int> broadcasts{"broadcasts", 6};  // tiles whose sums are in registers

  // Of results; a block's samples; channels whose sums join the sum of all.
  Input<int> width{"width"}, height{"height"}, samples{"samples"}, chunk{"chunk"};

  void generate() {
    pad(2, 2, {first_sample(p), samples, first_row_of_tiles(p), plane_rows(), 1});
    spread_input();
    multiply();
    gather_results();
    store_rows();
  }

  void schedule() {
    set_layouts(tile_channels());
    schedule_store();
    schedule_planes(LoopLevel(spread, inputs[5]), {});

    spread.compute_at(out, part()).store_in(MemoryType::Stack);
    spread.bound_storage(f, kWinogradSpread).never_partition_all();
    spread.update().allow_race_conditions().never_partition_all();
    spread.update().vectorize(inputs[0]).unroll(inputs[1]);

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
    place.bound(t, 0, rows * 2 * width).bound_storage(t, 4 * kWinogradTiles);
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
  // A row's tiles, and a sample's rows of them; rows of a block's sample in the padded planes.
  Expr columns() const { return (width + 1) / 2; }
  Expr all_rows() const { return (height + 1) / 2; }
  Expr plane_rows() const { return rows + 1; }

  // Part `which` is one of a block, and blocks of a sample's rows lie one after the other.
  Expr row_blocks() const { return (all_rows() + rows - 1) / rows; }
  Expr first_row_of_tiles(const Expr& which) const {
    return min((which / parts) % row_blocks() * rows, all_rows() - rows);
  }
  Expr first_sample(const Expr& which) const {
    return min((which / parts) / row_blocks() * samples, out.dim(1).extent() - samples);
  }

  // Where the tiles of one element and channel lie.
  Expr spread_at(const Expr& element, const Expr& channel) const {
    const Expr of_channel = tiles * broadcasts;
    return element * (in.dim(2).extent() * of_channel + kLanes) + channel * of_channel;
  }

  // Vectors that pass the end of a row are followed by those of the next, which belong there.
  void spread_input() {
    inputs = RDom({{0, kLanes},
                   {0, kElements},
                   {0, (columns() + kLanes - 1) / kLanes},
                   {0, rows},
                   {0, samples},
                   {0, in.dim(2).extent()}},
                  "inputs");
    const Expr element = inputs[1], column = inputs[2] * kLanes + inputs[0], row = inputs[3],
               sample = inputs[4], channel = inputs[5];
    const auto element_of_tile = [&](int y, int x) {
      const Expr phase = y % 2 * 2 + x % 2;
      const Expr at = phase * plane + (sample * plane_rows() + row + y / 2) * pitch + x / 2;
      return padded(unsafe_promise_clamped(at + column, 0, elements - 1), channel, p, g, n);
    };
    spread(f, p, g, n) = undef<float>();
    spread(spread_at(element, channel) + (sample * rows + row) * columns() + column, p, g, n) =
        mux(element, winograd::transformed(winograd::spread, kSide, kSide, element_of_tile));
  }

  // The channels come in chunks whose weights stay in the nearest cache while all tiles pass.
  void multiply() {
    const Expr channels = in.dim(2).extent();
    steps = RDom(0, chunk, steps_of_tile(vectors));
    chunks = RDom(1, (channels + chunk - 1) / chunk - 1, "chunks");
    const Expr channel = k * chunk + steps;
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

  // Results as they lie in rows of whole tiles.
  void gather_results() {
    windows = RDom({{0, 2}, {0, 2}, {0, columns()}, {0, rows * samples}}, "windows");
    const Expr across = windows[0], down = windows[1], column = windows[2], row = windows[3];
    const auto element = [&](int y, int x) {
      return product(l, v, row * columns() + column, y * kSide + x, o, p, g, n);
    };
    gathered(l, v, f, o, p, g, n) = undef<float>();
    gathered(l, v, ((row * 2 + down) * columns() + column) * 2 + across, o, p, g, n) =
        mux(down * 2 + across, winograd::transformed(winograd::gather, 2, kSide, element));
  }

  // A sample's rows of results lie one after the other: element x may be of any of them.
  void store_rows() {
    const Expr tile_row = 2 * columns(), longest = rows * 2 * width;
    place(t) = t / width * tile_row + t % width;
    const auto first = [this](const Expr& which) { return first_row_of_tiles(which) * 2 * width; };
    const Expr sample_blocks = (out.dim(1).extent() + samples - 1) / samples;
    store(gathered,
          {row_blocks() * sample_blocks, longest, samples,
           [=](const Expr& which) { return min(longest, out.dim(0).extent() - first(which)); },
           [=](const Expr& x, const Expr& sample) {
             return unsafe_promise_clamped(sample * rows * 2 * tile_row + place(x), 0,
                                           4 * kWinogradTiles - 1);
           },
           [=](const Expr& which, const Expr& x, const Expr& sample) {
             return std::vector<Expr>{first(which) + x, first_sample(which) + sample};
           }});
  }

  Var q{"q"}, qi{"qi"}, u{"u"}, e{"e"}, k{"k"}, t{"t"};
  Func spread{"spread"}, sum{"sum"}, product{"product"}, place{"place"}, gathered{"gathered"};
  RDom inputs, steps, chunks, windows;
};

// G w G' as conv_winograd reads it: weights[group][tile][element][channel][row]. Windows lie one
// after the other along input channels, or (`turned`: of the gradient towards the input, whose
// windows are flipped too) along output channels.
class ConvWinogradFilters : public Generator<ConvWinogradFilters> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<bool> turned{"turned", false};
  Input<Buffer<float, 3>> source{"source"};   // (tap of the windows of a row, row, group)
  Output<Buffer<float, 5>> packed{"packed"};  // (row, channel, element, tile, group)

  // In blocks of 16 x 16 windows, of which the last move inwards.
  void generate() {
    const Expr rows = packed.dim(0).extent(), channels = packed.dim(1).extent();
    const Expr outputs = turned ? source.dim(0).extent() / kTaps : source.dim(1).extent();
    blocks = RDom({{0, kLanes},
                   {0, kElements},
                   {0, kLanes},
                   {0, rows / kLanes},
                   {0, (channels + kLanes - 1) / kLanes}},
                  "blocks");
    const Expr output = min(o * rows, outputs - rows) + jo * kLanes,
               channel = min(co * kLanes, channels - kLanes);

    // The taps of 16 windows of 16 rows, of all rows side by side.
    Func block("block");
    block(l, r, b, jo, co, o, g) = source((turned ? output : channel) * kTaps + b * kLanes + l,
                                          (turned ? channel : output) + r, g);
    turns = transpose_block(block, kLanes, sizeof(float), l, r, {b, jo, co, o, g});
    taps(l, t, jo, co, o, g) = turns.back()(l, t % kLanes, t / kLanes, jo, co, o, g);
    if (turned) {  // back, by tap: the output channels of a row side by side
      Func of_tap("of_tap");
      of_tap(l, r, b, jo, co, o, g) = taps(l, r * kTaps + b, jo, co, o, g);
      turns_back = transpose_block(of_tap, kLanes, sizeof(float), l, r, {b, jo, co, o, g});
      windows(l, r, b, jo, co, o, g) = turns_back.back()(l, r, b, jo, co, o, g);
    }

    const Expr lane = blocks[0], element = blocks[1], of_block = blocks[2], jb = blocks[3],
               cb = blocks[4];
    const auto tap = [&](int row, int column) -> Expr {
      const int at = row * 3 + column;
      if (!turned) return taps(lane, of_block * kTaps + at, jb, cb, o, g);
      return windows(lane, of_block, kTaps - 1 - at, jb, cb, o, g);
    };
    packed(j, c, e, o, g) = undef<float>();
    packed(jb * kLanes + lane, min(cb * kLanes, channels - kLanes) + of_block, element, o, g) =
        mux(element, winograd::transformed(winograd::filter, kSide, 3, tap));
  }

  void schedule() {
    set_mins(source, packed);
    const RVar row_block = blocks[3], channel_block = blocks[4];
    Func(packed)
        .update()
        .allow_race_conditions()
        .reorder({blocks[0], blocks[1], blocks[2], row_block, channel_block, o, g})
        .vectorize(blocks[0])
        .unroll(blocks[1])
        .gpu_blocks(channel_block, o, g)
        .never_partition_all();
    taps.compute_at(packed, row_block).store_in(MemoryType::Stack);
    taps.bound(t, 0, kTaps * kLanes).split(t, b, r, kLanes).vectorize(l).unroll(r);
    schedule_turns(turns, taps);
    if (!turned) return;
    windows.compute_at(packed, row_block).store_in(MemoryType::Stack).bound_extent(b, kTaps);
    windows.bound_extent(l, kLanes).bound_extent(r, kLanes).vectorize(l).unroll(r);
    schedule_turns(turns_back, windows);
  }

 private:
  static constexpr int kTaps = 9;

  void schedule_turns(const std::vector<Func>& steps, const Func& turned_blocks) {
    for (Func step : steps) {
      step.compute_at(turned_blocks, b).store_in(MemoryType::Register);
      step.bound_extent(l, kLanes).bound_extent(r, kLanes).vectorize(l).unroll(r);
    }
  }

  Var l{"l"}, r{"r"}, b{"b"}, t{"t"}, j{"j"}, jo{"jo"}, e{"e"}, c{"c"}, co{"co"}, o{"o"}, g{"g"};
  Func taps{"taps"}, windows{"windows"};
  std::vector<Func> turns, turns_back;
  RDom blocks;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWinograd, conv_winograd)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWinogradFilters, conv_winograd_filters)
