// 3x3, 4x4 and 5x5 convolutions on CPUs by Winograd's algorithm (conv_winograd_recipe.h).
#include "kernels/conv/winograd/conv_winograd.h"
#include "kernels/conv/winograd/conv_winograd_filters_recipe.h"
#include "kernels/conv/winograd/conv_winograd_recipe.h"
#include "kernels/conv/winograd/conv_winograd_results_recipe.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/shuffle.h"

#include <string>

namespace ballast::kernels {
namespace {

using namespace Halide;

// A channel's padded planes, of the four phases of a stride of 2, lie on the stack
// (conv_planes_recipe.h), so what the tiles of a row have in one place lies side by side, or of the
// form `apart` every other element. Transformed they are spread[element][channel][tile], and
// multiplied as matmul's tiles are: `broadcasts` tiles x 16 `vectors` output channels.
class ConvWinograd : public WinogradGenerator<ConvWinograd> {
 public:
  GeneratorParam<int> broadcasts{"broadcasts", 6};  // tiles whose sums are in registers

  void generate() {
    const Expr first_row = first_row_of_tiles(p) * steps_of_phase();
    pad(2, 2, {first_sample(p), samples, first_row, plane_rows(), 1});
    spread_input();
    multiply();
    gather_results();
    store_rows(form().most_tiles);
  }

  void schedule() {
    set_layouts(tile_channels());
    schedule_results(form().most_tiles);
    schedule_planes(LoopLevel(spread, inputs[5]), {});

    spread.compute_at(out, part()).store_in(MemoryType::Stack);
    spread.bound_storage(f, kWinogradSpread).never_partition_all();
    spread.update().allow_race_conditions().never_partition_all();
    spread.update().vectorize(inputs[0]).unroll(inputs[1]);

    product.bound(q, 0, tiles * broadcasts);
    for (Stage stage : {Stage(product), product.update()}) {
      stage.split(q, u, qi, broadcasts);
      stage.vectorize(l).unroll(v).unroll(qi).never_partition_all();
    }
    product.reorder({l, v, qi, u, e, o, p, g, n});
    product.update().reorder({l, v, qi, u, chunks, e, o, p, g, n});
    sum.compute_at(product, u).store_in(MemoryType::Register);
    sum.bound_extent(q, broadcasts).vectorize(l).unroll(v).unroll(q);
    sum.update().reorder({l, v, q, steps, e, o, p, g, n, k}).vectorize(l).unroll(v).unroll(q);

    sum.bound_extent(l, kLanes).bound_extent(v, vectors);
    for (const Var& one : {o, p, g, n}) sum.bound_extent(one, 1);
    sum.bound_extent(e, 1).bound_extent(k, 1);
    for (const Var& one : {p, g, n}) spread.bound_extent(one, 1);
  }

 private:
  // From a tile's input to the next one's, in a phase, and rows of a sample in the padded planes.
  int steps_of_phase() const { return form().step / 2; }
  Expr plane_rows() const { return rows * steps_of_phase() + form().reach(); }

  // Where the tiles of one element and channel lie.
  Expr spread_at(const Expr& element, const Expr& channel) const {
    const Expr of_channel = tiles * broadcasts;
    return element * (in.dim(2).extent() * of_channel + kLanes) + channel * of_channel;
  }

  // Vectors that pass the end of a row are followed by those of the next, which belong there.
  void spread_input() {
    inputs = RDom({{0, kLanes},
                   {0, form().elements()},
                   {0, (columns() + kLanes - 1) / kLanes},
                   {0, rows},
                   {0, samples},
                   {0, in.dim(2).extent()}},
                  "inputs");
    const Expr lane = inputs[0], element = inputs[1], first = inputs[2] * kLanes, row = inputs[3],
               sample = inputs[4], channel = inputs[5];
    const auto element_of_tile = [&](int y, int x) {
      const Expr phase = y % 2 * 2 + x % 2;
      const Expr at =
          phase * plane + (sample * plane_rows() + row * steps_of_phase() + y / 2) * pitch;
      const auto from = [&](const Expr& column) {
        return padded(unsafe_promise_clamped(at + column + lane, 0, elements - 1), channel, p, g,
                      n);
      };
      return steps_of_phase() == 1 ? Expr(from(first + x / 2))
                                   : every_other(from, first * 2, x / 2);
    };
    const Expr tile = (sample * rows + row) * columns() + first + lane;
    spread(f, p, g, n) = undef<float>();
    spread(spread_at(element, channel) + tile, p, g, n) =
        mux(element, winograd::transformed(winograd::spread(form()), form().side(), form().patch,
                                           element_of_tile));
  }

  // From `first` + `shift` on, with an even shift those of two vectors that lie a multiple of two
  // from `first`, which elements of an odd shift share.
  template <class From>
  static Expr every_other(const From& from, const Expr& first, int shift) {
    const Expr begin = first + shift / 2 * 2;
    return take_lanes(from(begin), from(begin + kLanes), kLanes,
                      [=](int lane) { return 2 * lane + shift % 2; });
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
                weights(v * kLanes + l, winograd::window_of(form(), e) * channels + channel,
                        tile_of(p, o), g),
                sum(l, v, q, e, o, p, g, n, k));
    product(l, v, q, e, o, p, g, n) = sum(l, v, q, e, o, p, g, n, 0);
    product(l, v, q, e, o, p, g, n) =
        strict_float(product(l, v, q, e, o, p, g, n) + sum(l, v, q, e, o, p, g, n, chunks));
  }

  Var qi{"qi"}, u{"u"}, k{"k"};
  Func spread{"spread"}, sum{"sum"};
  RDom inputs, steps, chunks;
};

// G w G' as conv_winograd reads it: weights[group][tile][element][channel][row].
class ConvWinogradFilters : public Generator<ConvWinogradFilters> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<std::string> form_name{"form", "dense"};
  GeneratorParam<bool> turned{"turned", false};
  Input<Buffer<float, 3>> source{"source"};   // (tap of the windows of a row, row, group)
  Output<Buffer<float, 5>> packed{"packed"};  // (row, channel, element, tile, group)

  // In blocks of 16 x 16 windows, of which the last move inwards.
  void generate() {
    const WinogradForm& form = winograd_form(form_name.value());
    const int taps = form.window * form.window;
    const Expr rows = packed.dim(0).extent(), channels = packed.dim(1).extent();
    const Expr outputs = turned ? source.dim(0).extent() / taps : source.dim(1).extent();
    blocks = RDom({{0, kLanes},
                   {0, form.window_elements()},
                   {0, kLanes},
                   {0, rows / kLanes},
                   {0, (channels + kLanes - 1) / kLanes}},
                  "blocks");
    const Expr lane = blocks[0], element = blocks[1], of_block = blocks[2], jb = blocks[3],
               cb = blocks[4];
    const auto first_channel = [&](const Expr& block) {
      return min(block * kLanes, channels - kLanes);
    };
    filters.define(turned, form,
                   [this](const Expr& tap, const Expr& row) { return source(tap, row, g); },
                   min(o * rows, outputs - rows) + jo * kLanes, first_channel(co), {jo, co, o, g});
    packed(j, c, e, o, g) = undef<float>();
    packed(jb * kLanes + lane, first_channel(cb) + of_block, element, o, g) =
        filters.element(element, lane, of_block, {jb, cb, o, g});
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
    filters.schedule(LoopLevel(packed, row_block));
  }

 private:
  Var j{"j"}, jo{"jo"}, e{"e"}, c{"c"}, co{"co"}, o{"o"}, g{"g"};
  winograd::TransformedFilters filters;
  RDom blocks;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWinograd, conv_winograd)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWinogradFilters, conv_winograd_filters)
