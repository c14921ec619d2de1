// Sums over k of left(row, k) right(k, column) on a GPU: a work-group computes a block of rows x
// columns and brings what they share to local memory, some steps of k at a time; each work-item
// keeps a tile of sums in registers. Needs Halide; for generators.
//
// An item's tile is made of squares of 4 x 4 which lie `across` x 4 columns and `down` x 4 rows
// apart, so that neighbouring items read neighbouring vectors of 4 of local memory. An element is
// the fma chain over k from 0 upwards, started at +0, as in every product's kernel (the steps after
// the last add products of zeros, which change nothing).
#pragma once

#include "kernels/fma.h"
#include "kernels/hints.h"

#include <Halide.h>

#include <functional>
#include <vector>

namespace ballast::kernels {

// Work-items of a group along the columns and the rows; squares of each item, likewise.
struct BlockShape {
  int across = 16, down = 16, wide = 2, high = 2;
  static constexpr int kSide = 4;
  int columns() const { return across * wide * kSide; }
  int rows() const { return down * high * kSide; }
  int items() const { return across * down; }
  int sums_of_item() const { return kSide * kSide * wide * high; }
};

// The shapes there are, by their rows.
inline BlockShape block_shape(int rows) {
  if (rows == 128) return {16, 16, 2, 2};
  return rows == 64 ? BlockShape{16, 8, 1, 2} : BlockShape{8, 8, 1, 1};
}

// The operands: functions of (row, step) and (step, column) that are asked for existing elements
// only. Along `by_step` a value's neighbours in memory are the next steps, else the next rows or
// columns: it says which items read them.
struct BlockOperand {
  std::function<Halide::Expr(const Halide::Expr&, const Halide::Expr&)> at;
  Halide::Expr by_step;
};

class BlockedSums {
 public:
  // `is_staged`: results are computed in a loop over an item's sums, which go through the stack,
  // for what is too long to be written out for each of them.
  // `which`: the results' other dimensions, at least one, innermost first; of all but the first,
  // each value is a launch.
  BlockedSums(const BlockShape& shape, const Halide::Expr& rows, const Halide::Expr& columns,
              const Halide::Expr& steps, const BlockOperand& left, const BlockOperand& right,
              const std::vector<Halide::Var>& which, bool is_staged = false)
      : shape_(shape), which_(which), is_staged_(is_staged) {
    using Halide::min;
    k_ = Halide::RDom({{0, kSteps}, {0, (steps + kSteps - 1) / kSteps}}, "k");
    const auto part_of = [&](Halide::Func& part, const BlockOperand& operand, int width,
                             const Halide::Expr& extent) {
      const Halide::Expr step = block_step_ * kSteps + step_;
      const Halide::Expr value =
          operand.at(min(block_ * width + line_, extent - 1), min(step, steps - 1));
      part(with_which({line_, step_, block_step_, block_})) = select(step < steps, value, 0.0f);
    };
    part_of(left_, left, shape.rows(), rows);
    part_of(right_, right, shape.columns(), columns);
    left_by_step_ = left.by_step;
    right_by_step_ = right.by_step;
    // What an item reads of them in a step.
    constexpr int kSide = BlockShape::kSide;
    const auto of_item = [&](Halide::Func& mine, const Halide::Func& part, int items) {
      const Halide::Expr line = (lane_ / kSide * items + item_) * kSide + lane_ % kSide;
      mine(with_which({lane_, step_, block_step_, item_, block_})) =
          part(with_which({line, step_, block_step_, block_}));
    };
    of_item(mine_left_, left_, shape.down);
    of_item(mine_right_, right_, shape.across);
    sums_ = Halide::Func(kernels::of_item("sums", shape.sums_of_item()));
    const std::vector<Halide::Expr> at = with_which({l_, r_, p_, t_, bx_, by_});
    sums_(at) = 0.0f;
    sums_(at) = fma_f32(mine_left_(with_which({r_, k_.x, k_.y, t_, by_})),
                        mine_right_(with_which({l_, k_.x, k_.y, p_, bx_})), sums_(at));
    staged_ = Halide::Func(kernels::of_item("staged", shape.sums_of_item()));
    staged_(at) = sums_(at);
  }

  // The sum for column x and row y.
  Halide::Expr at(const Halide::Expr& x, const Halide::Expr& y) const {
    const auto lane_of = [](const Halide::Expr& line, int items, int squares) {
      constexpr int kSide = BlockShape::kSide;
      return line / (items * kSide) % squares * kSide + line % kSide;
    };
    constexpr int kSide = BlockShape::kSide;
    const Halide::Func& sums = is_staged_ ? staged_ : sums_;
    return sums(with_which({lane_of(x, shape_.across, shape_.wide),
                             lane_of(y, shape_.down, shape_.high), x / kSide % shape_.across,
                             y / kSide % shape_.down, x / shape_.columns(), y / shape_.rows()}));
  }

  // Schedules a stage that stores the results, out(x, y, which...).
  void schedule_store(Halide::Stage stage, const Halide::Var& x, const Halide::Var& y) const {
    constexpr int kSide = BlockShape::kSide;
    const Halide::Var row("row"), wide("wide"), high("high");
    stage.split(x, bx_, x, shape_.columns(), Halide::TailStrategy::GuardWithIf)
        .split(x, wide, x, shape_.across * kSide)
        .split(x, item_x_, element_, kSide)
        .split(y, by_, y, shape_.rows(), Halide::TailStrategy::GuardWithIf)
        .split(y, high, y, shape_.down * kSide)
        .split(y, item_y_, row, kSide);
    if (!is_staged_) stage.unroll(element_).unroll(wide).unroll(row).unroll(high);
    std::vector<Halide::VarOrRVar> order = {element_, wide, row, high, item_x_,
                                            item_y_, bx_,  by_};
    order.insert(order.end(), which_.begin(), which_.end());
    stage.reorder(order).gpu_blocks(bx_, by_, which_.front()).gpu_threads(item_x_, item_y_);
  }

  // The innermost loop of a stage that stores the results: over elements.
  const Halide::Var& element() const { return element_; }

  // Once, after the stages of `store`.
  void schedule(Halide::Func store) {
    constexpr int kSide = BlockShape::kSide, kUnrolled = 4;
    store.never_partition_all();
    schedule_of_items(sums_, store);
    if (is_staged_) schedule_of_items(staged_, store);
    const Halide::RVar some("some"), step("step");
    sums_.update()
        .split(k_.x, some, step, kUnrolled)
        .reorder(l_, r_, step, some, p_, t_, k_.y)
        .gpu_threads(p_, t_)
        .unroll(l_)
        .unroll(r_)
        .unroll(step);
    schedule_part(left_, left_by_step_, shape_.rows());
    schedule_part(right_, right_by_step_, shape_.columns());
    for (Halide::Func* mine : {&mine_left_, &mine_right_}) {
      const int squares = mine == &mine_left_ ? shape_.high : shape_.wide;
      const Halide::Var square("square");
      mine->compute_at(sums_, step).store_in(Halide::MemoryType::Register);
      mine->bound_extent(lane_, kSide * squares);
      mine->split(lane_, square, lane_, kSide).vectorize(lane_).unroll(square);
    }
  }

 private:
  static constexpr int kSteps = 16;  // of k in local memory

  template <class T>
  std::vector<T> with_which(std::vector<T> head) const {
    head.insert(head.end(), which_.begin(), which_.end());
    return head;
  }
  std::vector<Halide::Expr> with_which(std::initializer_list<Halide::Expr> head) const {
    return with_which(std::vector<Halide::Expr>(head));
  }

  // What items keep for themselves.
  void schedule_of_items(Halide::Func sums, const Halide::Func& store) const {
    constexpr int kSide = BlockShape::kSide;
    sums.compute_at(store, bx_).store_in(Halide::MemoryType::Register);
    sums.bound_extent(l_, shape_.wide * kSide).bound_extent(r_, shape_.high * kSide);
    sums.bound_extent(p_, shape_.across).bound_extent(t_, shape_.down);
    sums.bound_extent(bx_, 1).bound_extent(by_, 1);
    for (const Halide::Var& one : which_) sums.bound_extent(one, 1);
    sums.gpu_threads(p_, t_).unroll(l_).unroll(r_);
  }

  // Items next to each other read what lies so in memory. A step's values are a vector more apart
  // than they need to be: those of several steps, written at once, would share a bank.
  void schedule_part(Halide::Func part, const Halide::Expr& by_step, int width) const {
    part.compute_at(sums_, k_.y).store_in(Halide::MemoryType::GPUShared);
    part.bound_extent(line_, width).bound_extent(step_, kSteps);
    part.bound_storage(line_, width + BlockShape::kSide);
    const int lines = shape_.items() / kSteps;  // read at a time
    const auto read = [&](Halide::Stage stage, bool steps_first) {
      const Halide::Var more("more"), inner("inner"), outer("outer"), item("item");
      // A line of k, or of the block, per so many items.
      if (steps_first) {
        stage.split(line_, more, line_, lines).reorder(step_, line_, more);
        stage.fuse(step_, line_, item).split(item, outer, inner, shape_.across);
      } else {
        stage.reorder(line_, step_).fuse(line_, step_, item);
        stage.split(item, more, item, shape_.items()).split(item, outer, inner, shape_.across);
      }
      stage.reorder(more, inner, outer).gpu_threads(inner, outer).unroll(more);
    };
    read(part.specialize(by_step), true);
    read(part, false);
  }

  const BlockShape shape_;
  const std::vector<Halide::Var> which_;
  const bool is_staged_;
  Halide::Expr left_by_step_, right_by_step_;
  Halide::RDom k_;
  Halide::Func left_{"left_part"}, right_{"right_part"}, mine_left_{"mine_left"},
      mine_right_{"mine_right"}, sums_, staged_;
  Halide::Var line_{"line"}, step_{"step"}, block_step_{"block_step"}, block_{"block"};
  Halide::Var lane_{"lane"}, item_{"item"};
  Halide::Var l_{"l"}, r_{"r"}, p_{"p"}, t_{"t"}, bx_{"bx"}, by_{"by"};
  Halide::Var element_{"element"}, item_x_{"item_x"}, item_y_{"item_y"};
};

}  // namespace ballast::kernels
