// Pixels of planes with channels in the lanes, as weight gradients multiply them, and results that
// lie so turned back. Needs Halide.
#pragma once

#include "kernels/recipe/hints.h"
#include "kernels/recipe/lanes.h"
#include "kernels/recipe/shuffle.h"

#include <Halide.h>

#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {

// turned(lane, vector, place, key...) on a work-group's stack: 16 channels, or as many as there are
// lanes, are a vector, and as many pixels of them at a time are transposed in registers. What a
// generator's loops go over (parts, blocks) is the key; there is memory for one key at a time.
class TurnedPixels {
 public:
  using Expr = Halide::Expr;
  using Var = Halide::Var;

  // Pixels `begin` to `end` of a plane of `image`, in vectors that begin a vector apart, but no
  // later than `last`: up to a vector of pixels less one before and behind are written too. `place`
  // says where. Memory further on in the plane is asked for, or the same pixels of `next_image`.
  struct Run {
    Expr image, begin, end, last;
    std::function<Expr(Expr pixel)> place;
    Expr next_image = {};
  };
  // planes(pixel, channel, group, n). `channel` of a lane may depend on `v` and the key.
  struct Source {
    Halide::Func planes;
    Expr pixels, group;
    std::function<Expr(Expr lane)> channel;
    int lanes = kLanes;
  };

  explicit TurnedPixels(const std::string& name) : turned("turned_" + name), name_(name) {}

  // Before define(): the first places, so many, are zero where no pixel is written.
  void clear(const Expr& places) { cleared_ = places; }

  // `runs` runs of at most `vectors` vectors; of one, what `run` says. `places`: at most; a number,
  // so that they lie on the stack.
  void define(const Source& source, const Expr& vectors, const Expr& runs, int places,
              const std::function<Run(Expr)>& run, const std::vector<Var>& key) {
    using Halide::unsafe_promise_clamped;
    key_ = key, places_ = places, lanes_ = source.lanes;
    part_ = Halide::RDom({{0, lanes_}, {0, lanes_}, {0, vectors}, {0, runs}}, "part_" + name_);
    const auto begin = [&](const Run& of, const Expr& vector) {
      return of.begin + vector * lanes_;
    };
    const auto start = [&](const Run& of, const Expr& vector) {
      return min(begin(of, vector), of.last);
    };
    const Run of = run(part_[3]), any = run(r_);
    part_.where(begin(of, part_[2]) < of.end);
    const auto pixel_at = [&](const Expr& pixel, const Expr& image) {
      return source.planes(unsafe_promise_clamped(pixel, 0, source.pixels - 1), source.channel(c_),
                           source.group, image);
    };
    Halide::Func block("block_" + name_);
    const Expr first = start(any, i_) + l;
    const Expr ahead = any.next_image.defined() ? pixel_at(first, any.next_image)
                                                : pixel_at(first + kAhead, any.image);
    block(keyed<Var>({l, c_, i_, r_, v})) = with_prefetch(pixel_at(first, any.image), ahead);
    steps_ = transpose_block(block, lanes_, sizeof(float), l, c_, keyed<Var>({i_, r_, v}));
    turned(keyed<Var>({l, v, f_})) = Halide::undef<float>();
    if (cleared_.defined()) {
      clear_ = Halide::RDom(0, cleared_, "clear_" + name_);
      turned(keyed<Expr>({l, v, unsafe_promise_clamped(clear_.x, 0, places - 1)})) = 0.0f;
    }
    // Said aloud, or Halide would look for the first place in vain.
    const Expr place =
        unsafe_promise_clamped(of.place(start(of, part_[2]) + part_[1]), 0, places - 1);
    turned(keyed<Expr>({part_[0], v, place})) =
        steps_.back()(keyed<Expr>({part_[0], part_[1], part_[2], part_[3], v}));
  }

  void schedule(const Halide::LoopLevel& level, int vectors) {
    turned.compute_at(level).store_in(Halide::MemoryType::Stack);
    turned.bound_extent(l, lanes_).bound_extent(v, vectors).bound_storage(f_, places_);
    for (const Var& one : key_) turned.bound_extent(one, 1);
    turned.never_partition_all();
    const bool is_cleared = cleared_.defined();
    if (is_cleared) turned.update(0).vectorize(l).never_partition_all();
    turned.update(is_cleared ? 1 : 0)
        .allow_race_conditions()
        .reorder({part_[0], part_[1], part_[2], part_[3], v})
        .vectorize(part_[0])
        .unroll(part_[1])
        .never_partition_all();
    hold_block(steps_, Halide::LoopLevel(turned, part_[2]), lanes_, l, c_, keyed<Var>({i_, r_, v}));
  }

  Var l{"l"}, v{"turned_v"};
  Halide::Func turned;

 private:
  static constexpr int kAhead = 64;  // pixels: a channel's are far from the one's before

  // `first`, then the key; of Vars or Exprs.
  template <class T>
  std::vector<T> keyed(std::vector<T> first) const {
    first.insert(first.end(), key_.begin(), key_.end());
    return first;
  }

  std::string name_;
  Var c_{"turned_c"}, i_{"turned_i"}, r_{"turned_r"}, f_{"turned_f"};  // unlike any of a key
  std::vector<Var> key_;
  Expr cleared_;
  int places_ = 0, lanes_ = kLanes;
  std::vector<Halide::Func> steps_;
  Halide::RDom clear_, part_;
};

// The way back, for a generator's result: `lanes` pixels of `lanes` planes at a time, transposed in
// registers. Of `pixels` a plane has a vector or more.
class TurnedBack {
 public:
  using Expr = Halide::Expr;
  using Var = Halide::Var;

  // `turned(lane, pixel, v)`: of vector v of planes; `is_stored`: an element of memory. What else
  // it depends on is the key.
  void define(int lanes, const Expr& pixels, const Expr& planes, const std::vector<Var>& key,
              const std::function<Expr(Expr lane, Expr pixel, Expr vector)>& turned,
              bool is_stored = false) {
    lanes_ = lanes;
    const auto vectors = [&](const Expr& all) { return (all + lanes_ - 1) / lanes_; };
    last_ = pixels - lanes_;
    key_ = key;
    std::vector<Var> others{k_, v_};
    others.insert(others.end(), key.begin(), key.end());
    std::vector<Var> place{l_, j_};
    place.insert(place.end(), others.begin(), others.end());
    Halide::Func block("block_back");
    const Expr row = turned(l_, first_of(k_) + j_, v_);
    const auto stored = [&](const Expr& lane, const Expr& pixel) {
      return turned(unsafe_promise_clamped(lane, 0, lanes_ - 1), first_of(k_) + pixel, v_);
    };
    block(place) = is_stored ? joined_parts(lanes_, l_, j_, stored) : row;
    steps_ = transpose_block(block, lanes_, sizeof(float), l_, j_, others, is_stored);
    part = Halide::RDom({{0, lanes_}, {0, lanes_}, {0, vectors(pixels)}, {0, vectors(planes)}},
                        "part_back");
    part.where(plane() < planes);
  }

  // Of each iteration of `part`: where it lies, and its value there.
  Expr pixel() const { return first_of(part[2]) + part[0]; }
  Expr plane() const { return part[3] * lanes_ + part[1]; }
  Expr value() const {
    std::vector<Expr> place{part[0], part[1], part[2], part[3]};
    place.insert(place.end(), key_.begin(), key_.end());
    return steps_.back()(place);
  }

  // `stage` is an update of `result`, over `part`; vectors of planes are its work-groups.
  void schedule(Halide::Func result, Halide::Stage stage) {
    stage.allow_race_conditions()
        .vectorize(part[0])
        .unroll(part[1])
        .gpu_blocks(vector_of_planes())
        .never_partition_all();
    std::vector<Var> others{k_, v_};
    others.insert(others.end(), key_.begin(), key_.end());
    hold_block(steps_, Halide::LoopLevel(result, part[2]), lanes_, l_, j_, others);
  }

  Halide::RVar vector_of_planes() const { return part[3]; }

  Halide::RDom part;

 private:
  Expr first_of(const Expr& number) const { return min(number * lanes_, last_); }

  int lanes_ = kLanes;
  Expr last_;
  Var l_{"back_l"}, j_{"back_j"}, k_{"back_k"}, v_{"back_v"};
  std::vector<Var> key_;
  std::vector<Halide::Func> steps_;
};

}  // namespace ballast::kernels
