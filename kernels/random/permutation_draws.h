// What the generators of permutations draw. Needs Halide.
#pragma once

#include "kernels/random/random_limits.h"
#include "kernels/random/random_recipe.h"

#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {

inline Halide::Expr as_u32(const Halide::Expr& e) { return Halide::cast(Halide::UInt(32), e); }

// The words of strips of 64 elements, for one of the two steps.
class Draws {
 public:
  explicit Draws(const std::string& name) : sub_key_(name + "_key"), words_(name) {}

  // `first`: the first strip of a group, as a function of the group.
  template <class Key>
  void define(Key& key, const Halide::Expr& stream_low, const Halide::Expr& stream_high,
              uint32_t step, const std::function<Halide::Expr(const Halide::Expr&)>& first_strip) {
    Philox first(sub_key_.name(), {group_}, philox_counter(key(1), stream_low, stream_high, 0),
                 key(0));
    const auto wide = [](const Halide::Expr& word) { return Halide::cast(Halide::Int(64), word); };
    sub_key_(group_) = wide(first.words()[0]) | wide(first.words()[1]) << 32;
    key_products_ = first.products();
    const Halide::Expr zero = Halide::cast(Halide::UInt(32), 0),
                       block = as_u32((first_strip(group_) + strip_) * kLanes + lane_);
    Philox philox(words_.name(), {lane_, strip_, group_},
                  {block, zero, Halide::Internal::make_const(Halide::UInt(32), step), zero},
                  sub_key_(group_));
    const PhiloxWords& made = philox.words();
    words_(lane_, word_, strip_, group_) = Halide::mux(word_, {made[0], made[1], made[2], made[3]});
    products_ = philox.products();
  }
  // The word of element e of a group's strip.
  Halide::Expr at(const Halide::Expr& e, const Halide::Expr& strip,
                  const Halide::Expr& group) const {
    return words_(e % kLanes, e / kLanes, strip, group);
  }

  // The word of a lane, of a strip's four.
  Halide::Expr of_lane(const Halide::Expr& lane, const Halide::Expr& word,
                       const Halide::Expr& strip, const Halide::Expr& group) const {
    return words_(lane, word, strip, group);
  }

  void schedule(Halide::Func out, const Halide::RVar& group, const Halide::RVar& strip,
                bool is_gpu) {
    schedule_key(Halide::LoopLevel(out, group));
    schedule_words(Halide::LoopLevel(out, strip), is_gpu);
  }
  void schedule(Halide::Func out, const Halide::Var& group, Halide::Func user,
                const Halide::RVar& strip, bool is_gpu) {
    schedule_key(Halide::LoopLevel(out, group));
    schedule_words(Halide::LoopLevel(user, strip), is_gpu);
  }
  // By work-items of which each computes the four words of a lane.
  void schedule_lanes(const Halide::LoopLevel& item) {
    schedule_key(item);
    products_.push_back(words_);
    for (Halide::Func& stage : products_) {
      stage.compute_at(item).store_in(Halide::MemoryType::Stack).bound_extent(lane_, 1);
      stage.bound_extent(strip_, 1).bound_extent(group_, 1);
    }
    words_.bound_extent(word_, 4).unroll(word_);
  }

 private:
  Halide::Var lane_{"lane"}, word_{"word"}, strip_{"strip"}, group_{"group"};
  Halide::Func sub_key_, words_;
  std::vector<Halide::Func> key_products_, products_;

  void schedule_key(const Halide::LoopLevel& group) {
    for (Halide::Func& stage : key_products_)
      stage.compute_at(group).store_in(Halide::MemoryType::Stack);
    sub_key_.compute_at(group).store_in(Halide::MemoryType::Stack);
  }
  void schedule_words(const Halide::LoopLevel& strip, bool is_gpu) {
    products_.push_back(words_);
    for (Halide::Func& stage : products_) {
      stage.compute_at(strip).store_in(Halide::MemoryType::Stack);
      stage.bound_extent(lane_, kLanes).bound_extent(strip_, 1).bound_extent(group_, 1);
      if (!is_gpu) stage.vectorize(lane_, kLanes);
    }
    words_.bound_extent(word_, 4).reorder(word_, lane_).unroll(word_);
  }
};

}  // namespace ballast::kernels
