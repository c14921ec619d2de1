// The weight gradient of 3x3 convolutions without strides on CPUs by Winograd's algorithm
// (conv_winograd_recipe.h): per element of the transform a product over all tiles of x (read as
// broadcast scalars) and dy (in vectors of 16 output channels). A chunk of the batch's blocks of
// tiles adds up to one share of dw, which conv_weight_sum adds to the others.
//
// Tiles of both are transformed with channels in the lanes, so that planes may be of any size; a
// table says where their pixels are, and that those outside are zero.
#include "kernels/conv/conv_turned_recipe.h"
#include "kernels/conv/conv_winograd.h"
#include "kernels/conv/conv_winograd_recipe.h"
#include "kernels/conv/conv_winograd_weight.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;
using winograd::kElements, winograd::kSide;

// How results are cut into blocks of tiles: of `rows` rows of `samples` samples, which are more
// than one where all rows are in a block. The last block may have fewer.
struct Blocks {
  Expr width, height, batch, rows, samples;  // of results

  Expr columns() const { return (width + 1) / 2; }
  Expr all_rows() const { return (height + 1) / 2; }
  Expr tiles() const { return samples * rows * columns(); }
  // Tiles of an element lie a little further from the next one's, or the 16 stores of a tile could
  // be a multiple of 4 KiB apart and share a set of the nearest cache.
  Expr place(const Expr& element, const Expr& tile) const { return element * (tiles() + 1) + tile; }
  static constexpr int kPlaces = kElements * (kWinogradTiles + 1);

  Expr per_sample() const { return (all_rows() + rows - 1) / rows; }
  Expr first_row(const Expr& block) const { return block % per_sample() * rows; }
  Expr first_sample(const Expr& block) const { return block / per_sample() * samples; }
  // Those that are some.
  Expr tiles_of(const Expr& block) const {
    return min(samples, batch - first_sample(block)) * min(rows, all_rows() - first_row(block)) *
           columns();
  }
};

// transformed(channel, Blocks::place, key...) of a block of tiles, whose number is the
// key's last.
class TransformedTiles {
 public:
  using Transform = Expr (*)(int, const std::vector<Expr>&);
  // Patches of `side` pixels, the first of them `top` and `left` of the first result; planes are
  // `width` wide.
  struct Patches {
    int side;
    Expr top, left, width;
    Transform transform;
  };

  explicit TransformedTiles(const std::string& name)
      : transformed("transformed_" + name), place_("place_" + name), pixels_(name), name_(name) {}

  // Channel vectors are counted by pixels().v.
  const TurnedPixels& pixels() const { return pixels_; }

  void define(const Blocks& blocks, const Patches& patches, const TurnedPixels::Source& source,
              const Expr& vectors, const std::vector<Var>& key) {
    const Var z = key.back();
    const Expr height = source.pixels / patches.width, rows = 2 * blocks.rows + patches.side - 2;
    // Of block z: the first row of the first patches, and the pixels that its runs hold.
    const Expr first = blocks.first_row(z) * 2 - patches.top;
    const Expr begin = max(first, 0) * patches.width,
               end = min(first + rows, height) * patches.width;
    const Expr longest = rows * patches.width, length = longest + kLanes;
    const auto is_sample = [&](const Expr& number) {
      return blocks.first_sample(z) + number < blocks.batch;
    };
    const auto shift_of = [&](const Expr& run) { return kFirst + run * length - begin; };

    pixels_.define(
        source, (longest + kLanes - 1) / kLanes, blocks.samples, kWinogradPlaces,
        [&](const Expr& run) {
          return TurnedPixels::Run{blocks.first_sample(z) + run, begin,
                                   select(is_sample(run), end, begin), source.pixels - kLanes,
                                   shift_of(run)};
        },
        key);
    pixels_.add_zeros();

    const Expr columns = 2 * blocks.columns() + patches.side - 2;
    places_ = RDom(0, columns, 0, rows, 0, blocks.samples, "places_" + name_);
    const Expr across = places_.x - patches.left, down = places_.y + first;
    const Expr is_inside =
        across >= 0 && across < patches.width && down >= 0 && down < height && is_sample(places_.z);
    const auto number_of = [&](const Expr& x, const Expr& y, const Expr& sample) {
      return unsafe_promise_clamped((sample * rows + y) * columns + x, 0, kWinogradPlaces - 1);
    };
    place_(f_, z) = undef<int>();
    place_(number_of(places_.x, places_.y, places_.z), z) =
        select(is_inside, shift_of(places_.z) + down * patches.width + across, 0);

    part_ = RDom({{0, kLanes},
                  {0, kElements},
                  {0, blocks.columns()},
                  {0, blocks.rows},
                  {0, blocks.samples},
                  {0, vectors}},
                 "tiles_" + name_);
    const Expr column = part_[2], row = part_[3], sample = part_[4];
    part_.where(blocks.first_row(z) + row < blocks.all_rows());
    part_.where(is_sample(sample));
    const auto pixel = [&](int y, int x) -> Expr {
      const Expr at = place_(number_of(column * 2 + x, row * 2 + y, sample), z);
      std::vector<Expr> index{part_[0], part_[5],
                              unsafe_promise_clamped(at, 0, kWinogradPlaces - 1)};
      index.insert(index.end(), key.begin(), key.end());
      return pixels_.turned(index);
    };
    const Expr tile = (sample * blocks.rows + row) * blocks.columns() + column;
    std::vector<Expr> any{c_, f_},
        here{part_[5] * kLanes + part_[0],
             unsafe_promise_clamped(blocks.place(part_[1], tile), 0, Blocks::kPlaces - 1)};
    any.insert(any.end(), key.begin(), key.end());
    here.insert(here.end(), key.begin(), key.end());
    transformed(any) = undef<float>();
    transformed(here) =
        mux(part_[1], winograd::transformed(patches.transform, kSide, patches.side, pixel));
    key_ = key;
  }

  // `channels` at most, `vectors` of them of a block.
  void schedule(const LoopLevel& level, int channels, const Expr& vectors) {
    transformed.compute_at(level).store_in(MemoryType::Stack).never_partition_all();
    transformed.bound(c_, 0, vectors * kLanes).bound_storage(c_, channels);
    transformed.bound_storage(f_, Blocks::kPlaces);
    for (const Var& one : key_) transformed.bound_extent(one, 1);
    transformed.update()
        .allow_race_conditions()
        .vectorize(part_[0])
        .unroll(part_[1])
        .never_partition_all();
    place_.compute_at(level).store_in(MemoryType::Stack).never_partition_all();
    place_.bound_storage(f_, kWinogradPlaces).bound_extent(key_.back(), 1);
    place_.update().never_partition_all();
    pixels_.schedule(LoopLevel(transformed, part_[5]), 1);
  }

  Func transformed;

 private:
  static constexpr int kFirst = 1 + kLanes;  // place 0 is zero

  Func place_;
  TurnedPixels pixels_;
  std::string name_;
  Var c_{"c"}, f_{"f"};
  std::vector<Var> key_;
  RDom places_, part_;
};

class ConvWinogradWeight : public Generator<ConvWinogradWeight> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
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
    const Blocks cut{width, height, in.dim(3).extent(), rows, samples};
    const auto planes = [](auto& tensor, const Expr& channel, const Expr& group) {
      return TurnedPixels::Source{tensor, tensor.dim(0).extent(), tensor.dim(1).extent(), channel,
                                  group};
    };
    x_tiles.define(cut, {kSide, top, left, in_width, winograd::spread},
                   planes(in, b * block_channels() + x_tiles.pixels().v * kLanes, p / panels),
                   channel_vectors(), {b, p, z});
    dy_tiles.define(cut, {2, 0, 0, width, winograd::gather_grad},
                    planes(dy, (p % panels * vectors + dy_tiles.pixels().v) * kLanes, p / panels),
                    vectors, {p, z});
    multiply(cut);
    const auto element = [&](int y, int x) { return product(l, v, c, y * kSide + x, b, p, k); };
    sums(l, v, j, c, b, p, k) =
        mux(j, winograd::transformed(winograd::filter_grad, 3, kSide, element));
  }

  void schedule() {
    set_mins(in, dy);
    set_panel_layout(sums, vectors);
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
    sum.update().reorder({l, v, c, tiles, e, b, p, z}).vectorize(l).unroll(v).unroll(c);
    for (Func func : {product, sum}) {
      func.bound_extent(l, kLanes).bound_extent(v, vectors).bound_extent(b, 1).bound_extent(p, 1);
    }
    product.bound(e, 0, kElements).bound_extent(k, 1);
    sum.bound_extent(e, 1).bound_extent(z, 1);

    const LoopLevel block(product, which);
    count.compute_at(block).store_in(MemoryType::Stack).bound_extent(z, 1);
    constexpr int kMostChannels = (kWinogradChannels + kLanes - 1) / kLanes * kLanes;
    x_tiles.schedule(block, kMostChannels, channel_vectors());
    dy_tiles.schedule(block, vectors * kLanes, vectors);
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
