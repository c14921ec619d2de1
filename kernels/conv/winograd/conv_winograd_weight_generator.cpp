// The weight gradient of 3x3, 4x4 and 5x5 convolutions on CPUs by Winograd's algorithm
// (conv_winograd_recipe.h): per element of the transform a product over all tiles of x (read as
// broadcast scalars) and dy (in vectors of 16 output channels). A chunk of the batch's blocks of
// tiles adds up to one share of dw, which conv_weight_sum adds to the others.
//
// Tiles of both are transformed with channels in the lanes, so that planes may be of any size; a
// table says where their pixels are, and that those outside are zero.
#include "kernels/conv/conv_recipe.h"
#include "kernels/conv/winograd/conv_winograd_tiles_recipe.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;
using winograd::Blocks, winograd::TransformedTiles;

class ConvWinogradWeight : public Generator<ConvWinogradWeight> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<std::string> form_name{"form", "dense"};
  GeneratorParam<int> broadcasts{"broadcasts", 6};  // input channels whose sums are in registers
  GeneratorParam<int> vectors{"vectors", 4};        // of output channels, likewise

  Input<int> top{"top"}, left{"left"}, in_width{"in_width"}, width{"width"}, height{"height"};
  Input<int> rows{"rows"}, samples{"samples"};  // of a block
  Input<int> panels{"panels"}, blocks{"blocks"}, blocks_per_chunk{"blocks_per_chunk"};
  // (pixel, channel, group, n)
  Input<Buffer<float, 4>> in{"in"}, dy{"dy"};
  // (lane, vector, tap, channel of a block, block of channels, panel of all groups, chunk)
  Output<Buffer<float, 7>> sums{"sums"};

  void generate() {
    const WinogradForm& form = winograd_form(form_name.value());
    const Blocks cut{form, width, height, in.dim(3).extent(), rows, samples};
    // Channels from `first` on; lanes beyond the last repeat it.
    const auto planes = [this](auto& tensor, const Expr& first) {
      const Expr last = tensor.dim(1).extent() - 1;
      return TurnedPixels::Source{tensor, tensor.dim(0).extent(), p / panels,
                                  [=](const Expr& lane) { return min(first + lane, last); }};
    };
    x_tiles.define(cut, {form.patch, form.step, top, left, in_width, winograd::spread(form)},
                   planes(in, b * block_channels() + x_tiles.vector() * kLanes), channel_vectors(),
                   {b, p, z});
    dy_tiles.define(cut, {2, 2, 0, 0, width, winograd::gather_grad(form)},
                    planes(dy, (p % panels * vectors + dy_tiles.vector()) * kLanes), vectors,
                    {p, z});
    multiply(cut);
    const auto element = [&](int y, int x) {
      return product(l, v, c, y * form.side() + x, b, p, k);
    };
    sums(l, v, j, c, b, p, k) = mux(
        j, winograd::transformed(winograd::filter_grad(form), form.window, form.side(), element));
  }

  void schedule() {
    const WinogradForm& form = winograd_form(form_name.value());
    set_mins(in, dy);
    set_panel_layout(sums, vectors);
    sums.dim(2).set_bounds(0, form.window * form.window);
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
    sum.update().reorder({l, v, c, tiles, e, b, p, z}).vectorize(l).unroll(v).unroll(c);
    for (Func func : {product, sum}) {
      func.bound_extent(l, kLanes).bound_extent(v, vectors).bound_extent(b, 1).bound_extent(p, 1);
    }
    product.bound(e, 0, form.elements()).bound_extent(k, 1);
    sum.bound_extent(e, 1).bound_extent(z, 1);

    const LoopLevel block(product, which);
    count.compute_at(block).store_in(MemoryType::Stack).bound_extent(z, 1);
    constexpr int kMostChannels = (kWinogradChannels + kLanes - 1) / kLanes * kLanes;
    x_tiles.schedule(block, kMostChannels);
    dy_tiles.schedule(block, vectors * kLanes);
  }

 private:
  Expr block_channels() const { return sums.dim(3).extent(); }
  Expr channel_vectors() const { return (block_channels() + kLanes - 1) / kLanes; }

  void multiply(const Blocks& cut) {
    // A number, so that it ends the loop: Halide would look at the formula once per tile.
    count(z) = cut.tiles_of(z);
    tiles = RDom(0, cut.tiles(), "tiles");
    tiles.where(tiles < count(z));
    const Expr at = cut.place(e, tiles);
    sum(l, v, c, e, b, p, z) = 0.0f;
    sum(l, v, c, e, b, p, z) =
        fma_f32(x_tiles.transformed(c, at, b, p, z), dy_tiles.transformed(v * kLanes + l, at, p, z),
                sum(l, v, c, e, b, p, z));
    which = RDom(0, blocks_per_chunk, "which");
    const Expr block = k * blocks_per_chunk + which;
    which.where(block < blocks);
    product(l, v, c, e, b, p, k) = 0.0f;
    product(l, v, c, e, b, p, k) =
        strict_float(product(l, v, c, e, b, p, k) + sum(l, v, c, e, b, p, block));
  }

  Var l{"l"}, v{"v"}, j{"j"}, c{"c"}, co{"co"}, ci{"ci"}, b{"b"}, p{"p"}, k{"k"}, e{"e"}, z{"z"};
  TransformedTiles x_tiles{"x"}, dy_tiles{"dy"};
  Func count{"count"}, sum{"sum"}, product{"product"};
  RDom tiles, which;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWinogradWeight, conv_winograd_weight)
