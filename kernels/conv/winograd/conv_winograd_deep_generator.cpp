// 3x3 convolutions without strides of many channels on CPUs by Winograd's algorithm
// (conv_winograd_recipe.h), where the weights are more than the results: a launch transforms the
// tiles of all samples, and work-groups of the next one their own output channels' windows, each of
// which they use for all tiles of a block.
#include "kernels/conv/winograd/conv_winograd_deep.h"
#include "kernels/conv/winograd/conv_winograd_filters_recipe.h"
#include "kernels/conv/winograd/conv_winograd_results_recipe.h"
#include "kernels/conv/winograd/conv_winograd_tiles_recipe.h"
#include "kernels/recipe/hints.h"

#include <string>

namespace ballast::kernels {
namespace {

using namespace Halide;
constexpr const WinogradForm& kForm = kWinogradDense;
constexpr int kElements = kForm.elements();

// B' d B of all tiles, with channels in the lanes, as conv_winograd_deep reads them.
class ConvWinogradInputs : public Generator<ConvWinogradInputs> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<int> top{"top"}, left{"left"}, in_width{"in_width"}, width{"width"}, height{"height"};
  Input<int> rows{"rows"}, samples{"samples"};  // of a block
  Input<Buffer<float, 4>> in{"in"};             // (pixel, channel, group, n)
  Output<Buffer<float, 5>> spread{"spread"};  // (lane, tile, element, vector of all groups, block)

  void generate() {
    const winograd::Blocks cut{kForm, width, height, in.dim(3).extent(), rows, samples, true};
    const Expr vectors = spread.dim(3).extent() / in.dim(2).extent(), first = p % vectors * kLanes,
               last = in.dim(1).extent() - 1;
    tiles.define(cut, {kForm.patch, kForm.step, top, left, in_width, winograd::spread(kForm)},
                 {in, in.dim(0).extent(), p / vectors,
                  [=](const Expr& lane) { return min(first + lane, last); }},
                 1, {p, b});
    // The last tile again where there are no more.
    spread(l, q, e, p, b) = tiles.transformed(l, cut.place(e, min(q, cut.tiles() - 1)), p, b);
  }

  void schedule() {
    set_mins(in, spread);
    spread.dim(0).set_bounds(0, kLanes).set_stride(1);
    spread.dim(2).set_bounds(0, kElements);
    Func(spread).reorder(l, q, e, p, b).vectorize(l).gpu_blocks(p, b).never_partition_all();
    tiles.schedule(LoopLevel(spread, p), kLanes);
  }

 private:
  Var l{"l"}, q{"q"}, e{"e"}, p{"p"}, b{"b"};
  winograd::TransformedTiles tiles{"x"};
};

// `in` is (lane, tile of an element, vector of channels, group, block), `weights` (tap of the
// windows of a row, row, group, 1). A work-group keeps the sums of all elements on its stack while
// chunks of channels, in whole vectors, pass, of which it transforms the windows. `at_once` of the
// `vectors` of output channels are in registers.
class ConvWinogradDeep : public WinogradGenerator<ConvWinogradDeep> {
 public:
  GeneratorParam<int> broadcasts{"broadcasts", 6};  // tiles whose sums are in registers
  GeneratorParam<int> at_once{"at_once", 4};
  GeneratorParam<bool> turned{"turned", false};

  void generate() {
    transform_windows();
    multiply();
    gather_results();
    store_rows(kWinogradDeepTiles);
  }

  void schedule() {
    set_mins(in, out, weights);
    in.dim(1).set_stride(kLanes);  // or each tile of a register tile has an address of its own
    epilogue.set_layouts();
    schedule_results(kWinogradDeepTiles);

    product.bound(q, 0, tiles * broadcasts).vectorize(l).never_partition_all();
    product.update()
        .split(q, u, qi, broadcasts)
        .split(v, vo, vi, at_once)
        .reorder({l, vi, qi, u, vo, e, chunks, o, p, g, n})
        .vectorize(l)
        .unroll(vi)
        .unroll(qi)
        .never_partition_all();
    sum.compute_at(product, u).store_in(MemoryType::Register);
    sum.bound_extent(l, kLanes).bound_extent(v, at_once).bound_extent(q, broadcasts);
    sum.vectorize(l).unroll(v).unroll(q);
    sum.update()
        .reorder({l, v, q, steps.x, steps.y, e, k, o, p, g, n})
        .vectorize(l)
        .unroll(v)
        .unroll(q);

    windows.compute_at(product, chunks).store_in(MemoryType::Stack);
    windows.bound_extent(l, kLanes)
        .bound_extent(v, vectors)
        .bound_storage(f, kPlaces)
        .bound(e, 0, kElements);
    // The vectors of a register tile side by side.
    if (int{at_once} < int{vectors}) windows.reorder_storage(l, f, v, e, k, o, p, g);
    windows.update()
        .allow_race_conditions()
        .reorder({blocks[0], blocks[1], blocks[2], blocks[3], blocks[4], k, o, p, g})
        .vectorize(blocks[0])
        .unroll(blocks[1])
        .never_partition_all();
    filters.schedule(LoopLevel(windows, blocks[3]));
    for (const Var& one : {k, o, p, g}) windows.bound_extent(one, 1);
    for (const Var& one : {e, k, o, p, g, n}) sum.bound_extent(one, 1);
  }

 private:
  // The 16 stores of a window would share a set of the nearest cache were they a multiple of 4 KiB
  // apart.
  static constexpr int kPlaces = kWinogradChunk + kLanes + 1;

  // Where a chunk's channel lies. Blocks that would pass the last channel move inwards, which may
  // be before the chunk's first.
  static Expr place_of(const Expr& channel) {
    return unsafe_promise_clamped(kLanes + channel, 0, kPlaces - 1);
  }
  Expr channels() const { return turned ? weights.dim(1).extent() : weights.dim(0).extent() / 9; }

  void transform_windows() {
    blocks = RDom({{0, kLanes}, {0, kElements}, {0, kLanes}, {0, chunk / kLanes}, {0, vectors}},
                  "blocks");
    const Expr lane = blocks[0], element = blocks[1], of_block = blocks[2], cb = blocks[3],
               vector = blocks[4];
    blocks.where(k * chunk + cb * kLanes < channels());
    const auto first_channel = [&](const Expr& block) {
      return min(k * chunk + block * kLanes, channels() - kLanes);
    };
    filters.define(turned, form(),
                   [this](const Expr& tap, const Expr& row) { return weights(tap, row, g, 0); },
                   channel_of(tile_of(p, o), v * kLanes, vectors * kLanes), first_channel(c),
                   {v, c, k, o, p, g});
    windows(l, v, f, e, k, o, p, g) = undef<float>();
    windows(lane, vector, place_of(first_channel(cb) + of_block - k * chunk), element, k, o, p, g) =
        filters.element(element, lane, of_block, {vector, cb, k, o, p, g});
  }

  void multiply() {
    steps = RDom(0, kLanes, 0, chunk / kLanes, steps_of_tile(at_once));
    const Expr channel = steps.y * kLanes + steps.x;
    steps.where(k * chunk + channel < channels());
    sum(l, v, q, e, k, o, p, g, n) = 0.0f;
    sum(l, v, q, e, k, o, p, g, n) = fma_f32(
        in(steps.x, e * tiles * broadcasts + q, k * (chunk / kLanes) + steps.y, g, p / parts),
        windows(l, v, place_of(channel), e, k, o, p, g), sum(l, v, q, e, k, o, p, g, n));
    chunks = RDom(0, (channels() + chunk - 1) / chunk, "chunks");
    product(l, v, q, e, o, p, g, n) = 0.0f;
    product(l, v, q, e, o, p, g, n) =
        strict_float(product(l, v, q, e, o, p, g, n) + sum(l, v, q, e, chunks, o, p, g, n));
  }

  Var qi{"qi"}, u{"u"}, vo{"vo"}, vi{"vi"}, k{"k"};
  Func windows{"windows"}, sum{"sum"};
  winograd::TransformedFilters filters;
  RDom blocks, steps, chunks;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWinogradInputs, conv_winograd_inputs)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWinogradDeep, conv_winograd_deep)
