// The weight gradient of 3x3 convolutions without strides on CPUs by Winograd's algorithm
// (conv_winograd_recipe.h): per element of the transform a product over all tiles of x (padded
// planes, read as broadcast scalars) and dy (in vectors of 16 output channels, packed by
// conv_pack). A chunk of the batch's blocks of tiles adds up to one share of dw, which
// conv_weight_sum adds to the others.
#include "kernels/conv/conv_winograd.h"
#include "kernels/conv/conv_winograd_recipe.h"
#include "kernels/shuffle.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;
using winograd::kElements, winograd::kSide;

class ConvWinogradWeight : public Generator<ConvWinogradWeight> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> broadcasts{"broadcasts", 6};  // input channels whose sums are in registers
  GeneratorParam<int> vectors{"vectors", 4};        // of output channels, likewise

  // Of a padded plane; of results; of a block, in tiles; of all channels and those of a panel.
  Input<int> pitch{"pitch"}, plane{"plane"}, width{"width"}, height{"height"}, rows{"rows"},
      channels{"channels"}, panels{"panels"};
  Input<int> row_blocks{"row_blocks"}, blocks{"blocks"};  // of a sample; of all
  Input<int> blocks_per_chunk{"blocks_per_chunk"};
  Input<Buffer<float, 3>> in{"in"};  // (place in the padded planes of a group, group, n)
  Input<Buffer<float, 4>> dy{"dy"};  // (lane, vector, pixel of the batch, panel of all groups)
  // (lane, vector, tap, channel of a block, block of channels, panel of all groups, chunk)
  Output<Buffer<float, 7>> sums{"sums"};

  void generate() {
    spread_input();
    spread_gradient();
    multiply();
    const auto element = [&](int y, int x) { return product(l, v, c, y * kSide + x, b, p, k); };
    sums(l, v, j, c, b, p, k) =
        mux(j, winograd::transformed(winograd::filter_grad, 3, kSide, element));
  }

  void schedule() {
    for (int d = 0; d < 3; ++d) in.dim(d).set_min(0);
    set_panel_layouts(dy, sums, vectors);
    sums.dim(2).set_bounds(0, 9);
    Func(sums)
        .reorder(l, j, v, c, b, p, k)
        .vectorize(l)
        .unroll(j)
        .gpu_blocks(b, p, k)
        .never_partition_all();

    product.compute_at(sums, b).store_in(MemoryType::Stack);
    product.bound_storage(c, kWinogradChannels).vectorize(l).never_partition_all();
    product.update()
        .split(c, co, ci, broadcasts)
        .reorder({l, v, ci, co, e, which, b, p, k})
        .vectorize(l)
        .unroll(v)
        .unroll(ci)
        .never_partition_all();
    sum.compute_at(product, co).store_in(MemoryType::Register);
    sum.bound_extent(c, broadcasts).vectorize(l).unroll(v).unroll(c);
    sum.update()
        .reorder({l, v, c, tiles.x, tiles.y, e, b, p, k, w})
        .vectorize(l)
        .unroll(v)
        .unroll(c);

    spread.compute_at(product, which).store_in(MemoryType::Stack);
    spread.bound_storage(f, kWinogradSpread).never_partition_all();
    spread.update().allow_race_conditions().never_partition_all();
    spread.update().vectorize(inputs[0]).unroll(inputs[1]);
    spread_dy.compute_at(product, which).store_in(MemoryType::Stack);
    spread_dy.bound_storage(f, kWinogradTiles * kElements).never_partition_all();
    spread_dy.update()
        .allow_race_conditions()
        .never_partition_all()
        .reorder({l, gradients[0], v, gradients[1], gradients[2], p, k, w})
        .vectorize(l)
        .unroll(gradients[0]);

    for (Func func : {product, sum, spread_dy})
      func.bound_extent(l, kLanes).bound_extent(v, vectors);
    for (Func func : {product, sum}) func.bound_extent(b, 1);
    for (Func func : {product, sum, spread, spread_dy}) func.bound_extent(p, 1).bound_extent(k, 1);
    for (Func func : {sum, spread, spread_dy}) func.bound_extent(w, 1);
    product.bound(e, 0, kElements);
    sum.bound_extent(e, 1);
    spread.bound_extent(b, 1);
  }

 private:
  // A block's rows of tiles: `columns` tiles each, in whole vectors.
  Expr columns() const { return (width + 1) / 2; }
  Expr vectors_of_row() const { return (columns() + kLanes - 1) / kLanes; }
  Expr block_channels() const { return sums.dim(3).extent(); }

  // Block `w` of chunk `k`: its number in the sample, and the sample.
  Expr block_of(const Expr& which) const { return k * blocks_per_chunk + which; }
  Expr first_row(const Expr& which) const { return (block_of(which) % row_blocks) * rows; }
  Expr sample(const Expr& which) const { return block_of(which) / row_blocks; }

  // Where the tiles of one element and channel lie.
  Expr spread_at(const Expr& element, const Expr& channel) const {
    const Expr of_channel = rows * vectors_of_row();
    return (element * (block_channels() * of_channel + 1) + channel * of_channel) * kLanes;
  }

  void spread_input() {
    inputs =
        RDom({{0, kLanes}, {0, kElements}, {0, vectors_of_row()}, {0, rows}, {0, block_channels()}},
             "inputs");
    const Expr first = inputs[2] * kLanes, row = inputs[3], channel = inputs[4];
    // Channels beyond the last repeat it.
    const Expr origin = min(b * block_channels() + channel, channels - 1) * plane +
                        (first_row(w) + row) * 2 * pitch + first * 2;
    std::vector<int> lanes[2];  // of two vectors, those of the tiles' even and odd columns
    for (int i = 0; i < 2 * kLanes; ++i) lanes[i % 2].push_back(i);
    const auto element_of_tile = [&](int y, int x) {
      const Expr at = origin + y * pitch + x / 2 * 2 + inputs[0];
      const auto half = [&](int i) { return in(at + i * kLanes, p / panels, sample(w)); };
      return take_lanes(half(0), half(1), lanes[x % 2]);
    };
    spread(f, b, p, k, w) = undef<float>();
    spread(spread_at(inputs[1], channel) + (row * vectors_of_row() * kLanes) + first + inputs[0], b,
           p, k, w) =
        mux(inputs[1], winograd::transformed(winograd::spread, kSide, kSide, element_of_tile));
  }

  // Results that are none, beyond an odd row or column or a whole block, have no gradient.
  void spread_gradient() {
    gradients = RDom({{0, kElements}, {0, columns()}, {0, rows}}, "gradients");
    const Expr column = gradients[1], row = gradients[2];
    const auto of_result = [&](int i, int j) {
      const Expr y = (first_row(w) + row) * 2 + i, x = column * 2 + j;
      const Expr pixel = (sample(w) * height + min(y, height - 1)) * width + min(x, width - 1);
      return select(y < height && x < width, dy(l, v, pixel, p), 0.0f);
    };
    spread_dy(l, v, f, p, k, w) = undef<float>();
    spread_dy(l, v, (gradients[0] * rows + row) * columns() + column, p, k, w) =
        mux(gradients[0], winograd::transformed(winograd::gather_grad, kSide, 2, of_result));
  }

  void multiply() {
    tiles = RDom(0, columns(), 0, rows, "tiles");
    const Expr at = spread_at(e, c) + tiles.y * vectors_of_row() * kLanes + tiles.x;
    sum(l, v, c, e, b, p, k, w) = 0.0f;
    sum(l, v, c, e, b, p, k, w) =
        fma_f32(spread(at, b, p, k, w),
                spread_dy(l, v, (e * rows + tiles.y) * columns() + tiles.x, p, k, w),
                sum(l, v, c, e, b, p, k, w));
    which = RDom(0, blocks_per_chunk, "which");
    which.where(block_of(which) < blocks);
    product(l, v, c, e, b, p, k) = 0.0f;
    product(l, v, c, e, b, p, k) =
        strict_float(product(l, v, c, e, b, p, k) + sum(l, v, c, e, b, p, k, which));
  }

  Var l{"l"}, v{"v"}, j{"j"}, c{"c"}, co{"co"}, ci{"ci"}, b{"b"}, p{"p"}, k{"k"}, e{"e"}, f{"f"},
      w{"w"};
  Func spread{"spread"}, spread_dy{"spread_dy"}, sum{"sum"}, product{"product"};
  RDom inputs, gradients, tiles, which;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWinogradWeight, conv_winograd_weight)
