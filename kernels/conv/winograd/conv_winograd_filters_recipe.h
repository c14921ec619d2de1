// Windows of weights, transformed for Winograd's algorithm (conv_winograd_recipe.h) with output
// channels in the lanes. Needs Halide.
#pragma once

#include "kernels/conv/winograd/conv_winograd_recipe.h"
#include "kernels/recipe/lanes.h"
#include "kernels/recipe/shuffle.h"

#include <Halide.h>

#include <functional>
#include <vector>

namespace ballast::kernels::winograd {

// G w G' of blocks of 16 x 16 windows, which are turned in registers. Windows lie one after the
// other along input channels, or (`turned`: of the gradient towards the input, whose windows are
// flipped too) along output channels. What a generator's loops go over is the key.
class TransformedFilters {
 public:
  using Func = Halide::Func;
  using Var = Halide::Var;

  // `source(tap, row)`: tap of all windows of a row of the weights. `output` and `channel` are the
  // first ones of the key's block.
  void define(bool turned, const WinogradForm& form,
              const std::function<Expr(Expr tap, Expr row)>& source, const Expr& output,
              const Expr& channel, const std::vector<Var>& key) {
    turned_ = turned, form_ = &form, key_ = key;
    // The taps of 16 windows of 16 rows, of all rows side by side.
    Func block("block");
    block(keyed<Var>({l_, r_, b_})) = source(
        (turned ? output : channel) * taps() + b_ * kLanes + l_, (turned ? channel : output) + r_);
    turns_ = transpose_block(block, kLanes, sizeof(float), l_, r_, keyed<Var>({b_}));
    taps_(keyed<Var>({l_, t_})) =
        turns_.back()(keyed<Expr>({l_, t_ % kLanes, t_ / kLanes}, vars_as_exprs()));
    if (!turned) return;
    // Back, by tap: the output channels of a row side by side.
    Func of_tap("of_tap");
    of_tap(keyed<Var>({l_, r_, b_})) = taps_(keyed<Expr>({l_, r_ * taps() + b_}, vars_as_exprs()));
    turns_back_ = transpose_block(of_tap, kLanes, sizeof(float), l_, r_, keyed<Var>({b_}));
    windows_(keyed<Var>({l_, r_, b_})) =
        turns_back_.back()(keyed<Expr>({l_, r_, b_}, vars_as_exprs()));
  }

  // An element of the transform of a block's window: of output channel `lane`, input channel
  // `channel`.
  Expr element(const Expr& element, const Expr& lane, const Expr& channel,
               const std::vector<Expr>& key) const {
    const auto tap = [&](int row, int column) -> Expr {
      const int at = row * form_->window + column;
      if (!turned_) return taps_(keyed<Expr>({lane, channel * taps() + at}, key));
      return windows_(keyed<Expr>({lane, channel, taps() - 1 - at}, key));
    };
    return mux(element, transformed(filter(*form_), form_->windows(), form_->window, tap));
  }

  // `level`: the loop over blocks.
  void schedule(const Halide::LoopLevel& level) {
    taps_.compute_at(level).store_in(Halide::MemoryType::Stack);
    taps_.bound(t_, 0, taps() * kLanes).split(t_, b_, r_, kLanes).vectorize(l_).unroll(r_);
    schedule_turns(turns_, taps_);
    if (!turned_) return;
    windows_.compute_at(level).store_in(Halide::MemoryType::Stack).bound_extent(b_, taps());
    windows_.bound_extent(l_, kLanes).bound_extent(r_, kLanes).vectorize(l_).unroll(r_);
    schedule_turns(turns_back_, windows_);
  }

 private:
  int taps() const { return form_->window * form_->window; }

  template <class T>
  static std::vector<T> keyed(std::vector<T> first, const std::vector<T>& key) {
    first.insert(first.end(), key.begin(), key.end());
    return first;
  }
  template <class T>
  std::vector<T> keyed(std::vector<T> first) const {
    return keyed<T>(std::move(first), key_);
  }
  std::vector<Expr> vars_as_exprs() const { return {key_.begin(), key_.end()}; }

  void schedule_turns(const std::vector<Func>& steps, const Func& turned_blocks) {
    for (Func step : steps) {
      step.compute_at(turned_blocks, b_).store_in(Halide::MemoryType::Register);
      step.bound_extent(l_, kLanes).bound_extent(r_, kLanes).vectorize(l_).unroll(r_);
    }
  }

  bool turned_ = false;
  const WinogradForm* form_ = nullptr;
  Var l_{"filter_l"}, r_{"filter_r"}, b_{"filter_b"}, t_{"filter_t"};
  std::vector<Var> key_;
  Func taps_{"taps"}, windows_{"windows"};
  std::vector<Func> turns_, turns_back_;
};

}  // namespace ballast::kernels::winograd
