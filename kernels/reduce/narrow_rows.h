// Rows of fewer elements than a vector has, for ops along them on CPUs: sixteen that lie one after
// the other are loaded a row to a vector and transposed in registers, so that rows are in the
// lanes. (Gathered instead, an element of sixteen rows took a Zen 4 45 cycles.) Needs Halide.
#pragma once

#include "kernels/recipe/lanes.h"
#include "kernels/recipe/shuffle.h"

#include <Halide.h>

#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {

// Of rows of at least two elements of 4 bytes each. `key`: which sixteen rows.
class NarrowRows {
 public:
  using Expr = Halide::Expr;
  using Var = Halide::Var;

  // element(row, column) of the sixteen; columns before and after a row are those of other rows.
  NarrowRows(const std::string& name, const Expr& length, const Var& key,
             const std::function<Expr(Expr row, Expr column)>& element)
      : length_(length), key_(key), turned_(name) {
    Halide::Func block("block_" + name);
    // The vectors of the first rows begin with them, those of the last rows end with them: none
    // reaches beyond the sixteen.
    block(l, r, key) = element(r, l + select(r < kHalf, 0, length - kLanes));
    steps_ = transpose_block(block, kLanes, sizeof(float), l, r, {key});
    turned_(l, r, key) = steps_.back()(l, r, key);
  }

  // Of the row in lane `lane`; lanes are a loop that is vectorized.
  Expr at(const Expr& lane, const Expr& column, const Expr& key) const {
    const auto turned = [&](const Expr& at) {
      return Expr(turned_(lane, Halide::unsafe_promise_clamped(at, 0, kLanes - 1), key));
    };
    return select(lane < kHalf, turned(column), turned(column + kLanes - length_));
  }

  void schedule(const Halide::LoopLevel& level) {
    for (Halide::Func step : steps_) {
      step.compute_at(level).store_in(Halide::MemoryType::Register);
    }
    turned_.compute_at(level).store_in(Halide::MemoryType::Stack);
    steps_.push_back(turned_);
    for (Halide::Func step : steps_) {
      step.bound(l, 0, kLanes).bound(r, 0, kLanes).vectorize(l).unroll(r);
      step.bound_extent(key_, 1);
    }
  }

 private:
  static constexpr int kHalf = kLanes / 2;

  Var l{"l"}, r{"r"};
  Expr length_;
  Var key_;
  std::vector<Halide::Func> steps_;
  Halide::Func turned_;
};

// The way back: sixteen rows, of the values(lane, column, key) with rows in the lanes, as they lie
// in memory one after the other.
class NarrowResult {
 public:
  using Expr = Halide::Expr;
  using Var = Halide::Var;

  NarrowResult(const Halide::Func& values, const Expr& length, const Var& key) : key_(key) {
    // Columns beyond the last are whatever lies there.
    Halide::Func block("block_of_results");
    block(l, r, key) = values(l, Halide::unsafe_promise_clamped(r, 0, length - 1), key);
    steps_ = transpose_block(block, kLanes, sizeof(float), l, r, {key});
    // A row overwrites what the one before wrote beyond its own end.
    row_ = Halide::RDom(0, kLanes, 0, kLanes, "row");
    dense_(f, key) = Halide::undef(values.type());
    dense_(Halide::unsafe_promise_clamped(row_.y * length + row_.x, 0, kElements - 1), key) =
        steps_.back()(row_.x, row_.y, key);
  }

  // Of the elements of all sixteen.
  Expr at(const Expr& element, const Expr& key) const {
    return dense_(Halide::unsafe_promise_clamped(element, 0, kElements - 1), key);
  }

  void schedule(const Halide::LoopLevel& level) {
    for (Halide::Func step : steps_) {
      step.compute_at(level).store_in(Halide::MemoryType::Register);
      step.bound(l, 0, kLanes).bound(r, 0, kLanes).bound_extent(key_, 1).vectorize(l).unroll(r);
    }
    dense_.compute_at(level).store_in(Halide::MemoryType::Stack);
    dense_.bound_storage(f, kElements).bound_extent(key_, 1);
    dense_.update().allow_race_conditions().vectorize(row_.x).unroll(row_.y);
  }

 private:
  static constexpr int kElements = kLanes * kLanes;

  Var l{"l"}, r{"r"}, f{"f"}, key_;
  std::vector<Halide::Func> steps_;
  Halide::Func dense_{"dense_rows"};
  Halide::RDom row_;
};

}  // namespace ballast::kernels
