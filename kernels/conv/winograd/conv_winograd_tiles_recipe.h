// Tiles of planes, transformed for Winograd's algorithm with channels in the lanes
// (conv_winograd_weight_generator.cpp, conv_winograd_deep_generator.cpp). Needs Halide.
#pragma once

#include "kernels/conv/winograd/conv_winograd.h"
#include "kernels/conv/winograd/conv_winograd_recipe.h"
#include "kernels/conv/winograd/conv_winograd_weight.h"
#include "kernels/recipe/turned_pixels.h"

#include <Halide.h>

#include <string>
#include <vector>

namespace ballast::kernels::winograd {

using Halide::Func, Halide::RDom, Halide::Var;

// How results are cut into blocks of tiles: of `rows` rows of `samples` samples, which are more
// than one where all rows are in a block. The last block may have fewer, or moves back.
struct Blocks {
  WinogradForm form;                         // of 2x2 results
  Expr width, height, batch, rows, samples;  // of results
  bool moves_back = false;

  Expr columns() const { return (width + 1) / 2; }
  Expr all_rows() const { return (height + 1) / 2; }
  Expr tiles() const { return samples * rows * columns(); }
  // Where they are kept. Tiles of an element lie a little further from the next one's, or the 16
  // stores of a tile could be a multiple of 4 KiB apart and share a set of the nearest cache.
  Expr place(const Expr& element, const Expr& tile) const {
    return Halide::unsafe_promise_clamped(element * (tiles() + 1) + tile, 0, places() - 1);
  }
  int places() const { return form.elements() * (form.most_tiles + 1); }

  Expr per_sample() const { return (all_rows() + rows - 1) / rows; }
  Expr first_row(const Expr& block) const {
    const Expr first = block % per_sample() * rows;
    return moves_back ? min(first, all_rows() - rows) : first;
  }
  Expr first_sample(const Expr& block) const {
    const Expr first = block / per_sample() * samples;
    return moves_back ? min(first, batch - samples) : first;
  }
  // Those that are some.
  Expr tiles_of(const Expr& block) const {
    return min(samples, batch - first_sample(block)) * min(rows, all_rows() - first_row(block)) *
           columns();
  }
};

// transformed(channel, Blocks::place, key...) of a block, whose number is the key's last.
class TransformedTiles {
 public:
  // Patches of `side` pixels, `step` from one to the next, the first of them `top` and `left` of
  // the first result; planes are `width` wide.
  struct Patches {
    int side, step;
    Expr top, left, width;
    Transform transform;
  };

  explicit TransformedTiles(const std::string& name)
      : transformed("transformed_" + name), place_("place_" + name), pixels_(name), name_(name) {}

  // Counts the vectors of channels.
  const Var& vector() const { return pixels_.v; }

  // Of at most `vectors` vectors of channels.
  void define(const Blocks& blocks, const Patches& patches, const TurnedPixels::Source& source,
              const Expr& vectors, const std::vector<Var>& key) {
    blocks_ = blocks, patches_ = patches, vectors_ = vectors, key_ = key;
    height_ = source.pixels / patches.width;
    turn_pixels(source);
    find_places();
    transform();
  }

  // `channels`, at most: a number, so that they lie on the stack.
  void schedule(const Halide::LoopLevel& level, int channels) {
    using Halide::MemoryType;
    transformed.compute_at(level).store_in(MemoryType::Stack).never_partition_all();
    transformed.bound(c_, 0, vectors_ * kLanes).bound_storage(c_, channels);
    transformed.bound_storage(f_, blocks_.places());
    for (const Var& one : key_) transformed.bound_extent(one, 1);
    transformed.update()
        .allow_race_conditions()
        .vectorize(tiles_[0])
        .unroll(tiles_[1])
        .never_partition_all();
    place_.compute_at(level).store_in(MemoryType::Stack).never_partition_all();
    place_.bound_storage(f_, kWinogradPlaces).bound_extent(block(), 1);
    place_.update().never_partition_all();
    pixels_.schedule(Halide::LoopLevel(transformed, tiles_[5]), 1);
  }

  Func transformed;

 private:
  Var block() const { return key_.back(); }
  Expr is_sample(const Expr& number) const {
    return blocks_.first_sample(block()) + number < blocks_.batch;
  }

  // Rows and columns of pixels that the patches of a block's sample cover, outside ones counted,
  // and the first row's number.
  Expr covered(const Expr& tiles) const {
    return patches_.step * tiles + patches_.side - patches_.step;
  }
  Expr rows() const { return covered(blocks_.rows); }
  Expr columns() const { return covered(blocks_.columns()); }
  Expr first_row() const { return blocks_.first_row(block()) * patches_.step - patches_.top; }

  // A block's samples are runs of whole rows. What is added to a pixel's number in its plane is its
  // place: 0 is zero.
  Expr first_pixel() const { return max(first_row(), 0) * patches_.width; }
  Expr longest() const { return rows() * patches_.width; }
  Expr shift_of(const Expr& sample) const {
    return 1 + kLanes + sample * (longest() + kLanes) - first_pixel();
  }

  void turn_pixels(const TurnedPixels::Source& source) {
    const Expr end = min(first_row() + rows(), height_) * patches_.width;
    pixels_.clear(1);
    pixels_.define(
        source, (longest() + kLanes - 1) / kLanes, blocks_.samples, kWinogradPlaces,
        [&](const Expr& sample) {
          const Expr kept = shift_of(sample);
          return TurnedPixels::Run{blocks_.first_sample(block()) + sample, first_pixel(),
                                   select(is_sample(sample), end, first_pixel()),
                                   source.pixels - kLanes,
                                   [=](const Expr& pixel) { return pixel + kept; }};
        },
        key_);
  }

  // Of every pixel of the patches.
  void find_places() {
    covered_ = RDom(0, columns(), 0, rows(), 0, blocks_.samples, "covered_" + name_);
    const Expr x = covered_.x - patches_.left, y = covered_.y + first_row(), sample = covered_.z;
    const Expr is_inside =
        x >= 0 && x < patches_.width && y >= 0 && y < height_ && is_sample(sample);
    place_(f_, block()) = Halide::undef<int>();
    place_(number_of(covered_.x, covered_.y, sample), block()) =
        select(is_inside, shift_of(sample) + y * patches_.width + x, 0);
  }
  Expr number_of(const Expr& x, const Expr& y, const Expr& sample) const {
    return Halide::unsafe_promise_clamped((sample * rows() + y) * columns() + x, 0,
                                          kWinogradPlaces - 1);
  }

  void transform() {
    tiles_ = RDom({{0, kLanes},
                   {0, blocks_.form.elements()},
                   {0, blocks_.columns()},
                   {0, blocks_.rows},
                   {0, blocks_.samples},
                   {0, vectors_}},
                  "tiles_" + name_);
    const Expr lane = tiles_[0], element = tiles_[1], column = tiles_[2], row = tiles_[3],
               sample = tiles_[4], vector = tiles_[5];
    tiles_.where(blocks_.first_row(block()) + row < blocks_.all_rows());
    tiles_.where(is_sample(sample));
    const auto pixel = [&](int y, int x) -> Expr {
      const Expr at =
          place_(number_of(column * patches_.step + x, row * patches_.step + y, sample), block());
      return pixels_.turned(
          keyed<Expr>({lane, vector, Halide::unsafe_promise_clamped(at, 0, kWinogradPlaces - 1)}));
    };
    const Expr tile = (sample * blocks_.rows + row) * blocks_.columns() + column;
    transformed(keyed<Var>({c_, f_})) = Halide::undef<float>();
    transformed(keyed<Expr>({vector * kLanes + lane, blocks_.place(element, tile)})) =
        mux(element,
            winograd::transformed(patches_.transform, blocks_.form.side(), patches_.side, pixel));
  }

  template <class T>
  std::vector<T> keyed(std::vector<T> first) const {
    first.insert(first.end(), key_.begin(), key_.end());
    return first;
  }

  Func place_;
  TurnedPixels pixels_;
  std::string name_;
  Blocks blocks_;
  Patches patches_;
  Expr height_, vectors_;
  Var c_{"c"}, f_{"f"};
  std::vector<Var> key_;
  RDom covered_, tiles_;
};

}  // namespace ballast::kernels::winograd
