// Sums over steps of left(row, step) right(step, column) on a GPU: a work-group computes a block of
// rows x columns and brings what its items share to local memory, a chunk of steps at a time; each
// item keeps its sums in registers. Needs Halide; for generators.
//
// An item's sums are squares of 4 x 4 that lie `across` x 4 columns and `down` x 4 rows apart, so
// that neighbouring items read neighbouring vectors of 4 of local memory. A sum is the fma chain
// over the steps, upwards and started at +0, as in every product's kernel.
#pragma once

#include "kernels/plan/blocks.h"
#include "kernels/recipe/fma.h"
#include "kernels/recipe/hints.h"

#include <Halide.h>

#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {

// Work-items of a group along the columns and the rows; squares of each item, likewise; steps in
// local memory at a time, and those of them that are written out one after the other; registers
// that an item may use, 0: as many as the compiler likes.
struct BlockShape {
  int across, down, wide, high, steps, unrolled, registers;
  static constexpr int kSide = 4;             // of a square
  static constexpr int kSteps = kBlockSteps;  // of operands that are read one by one
  // Those that let a unit of an H100 hold two groups of 256 items.
  static constexpr int kRegisters = 128;
  int columns() const { return across * wide * kSide; }
  int rows() const { return down * high * kSide; }
  int items() const { return across * down; }
  int sums_of_item() const { return kSide * kSide * wide * high; }
  // Whether two chunks fit into the local memory that every OpenCL device has.
  bool has_turns() const {
    constexpr int kLocalBytes = 32 * 1024, kFloatBytes = 4;
    return kTurns * steps * (columns() + rows() + 2 * kSide) * kFloatBytes <= kLocalBytes;
  }
};

// The shapes there are (blocks.h), by their rows; `width`: of both operands (BlockOperand). Of most
// sums, more steps at a time would take more than 128 registers: one group a unit on an H100
// instead of two. Of fewer, compilers use 70 unless they are told that they may use more: products
// of 512 and 1024 took 1.35 and 1.15 times as long.
inline BlockShape block_shape(int rows, int width = 1) {
  constexpr int kSteps = BlockShape::kSteps, kRegisters = BlockShape::kRegisters;
  const bool by_fours = width == 4;
  if (rows == 128) return {16, 16, 2, 2, by_fours ? 8 : kSteps, by_fours ? 8 : 2, 0};
  const int unrolled = by_fours ? kSteps : 4;
  if (rows == 64) return {16, 8, 1, 2, kSteps, unrolled, kRegisters};
  return {8, 8, 1, 1, kSteps, unrolled, kRegisters};
}

// An operand: its element for a row or column (an existing one), the number of a step in its chunk
// and that of the chunk; 0 for steps beyond the last. Along `by_step` neighbours in memory are the
// next steps, else the next rows or columns: so items next to each other read them, `width` at a
// time, 1 or 4, of which at() gives number `next`. Vectors begin at multiples of 4 in memory and in
// their dimension, whose extent is one too.
struct BlockOperand {
  using Expr = Halide::Expr;
  std::function<Expr(const Expr& line, const Expr& step, const Expr& chunk, const Expr& next)> at;
  bool by_step;
  int width = 1;
};

// The first of `width` elements of `count`, at multiples of `width`: those at `first`, or the last.
inline Halide::Expr first_or_last(const Halide::Expr& first, const Halide::Expr& count, int width) {
  return min(first, (count / width - 1) * width);
}

// Element `step` of `count` that an operand has, the first of `width`, 0 beyond.
template <class Element>
Halide::Expr step_or_zero(const Halide::Expr& step, const Halide::Expr& count,
                          const Element& element, int width = 1) {
  return select(step < count, element(first_or_last(step, count, width)), 0.0f);
}

class BlockedSums {
 public:
  using Expr = Halide::Expr;
  using Func = Halide::Func;
  using Var = Halide::Var;
  using VarOrRVar = Halide::VarOrRVar;

  // `which`: what tells the products of a batch apart, from whose names operands may take it.
  BlockedSums(const BlockShape& shape, const Expr& rows, const Expr& columns, const Expr& chunks,
              const BlockOperand& left, const BlockOperand& right, const std::vector<Var>& which)
      : shape_(shape), which_(which), k_({{0, shape.steps}, {0, chunks}}, "k") {
    share(left_, left, shape.rows(), rows);
    share(right_, right, shape.columns(), columns);
    // What an item reads of them in a step.
    const auto take = [&](Func& mine, const Func& part, int items) {
      const Expr line = (lane_ / kSide * items + item_) * kSide + lane_ % kSide;
      mine(with({lane_, step_, chunk_, item_, block_}, which_)) =
          part(with({line, step_, chunk_, block_}, which_));
    };
    take(mine_left_, left_.part, shape.down);
    take(mine_right_, right_.part, shape.across);
    const std::vector<Expr> at = with({l_, r_, p_, t_, bx_, by_}, which_);
    const std::string name = shape.registers > 0 ? in_registers("sums", shape.registers) : "sums";
    sums_ = Func(of_item(name, shape.sums_of_item()));
    sums_(at) = 0.0f;
    sums_(at) = fma_f32(mine_left_(with({r_, k_.x, k_.y, t_, by_}, which_)),
                        mine_right_(with({l_, k_.x, k_.y, p_, bx_}, which_)), sums_(at));
  }

  // What at() gives instead of the sums: value(sum, x, y), of rows and columns that may lie beyond
  // the last. An item has all of its values in registers, which the stages below change.
  template <class Value>
  void begin_with(const Value& value) {
    values_ = Func(of_item("values", shape_.sums_of_item()));
    const auto line_of = [&](const Expr& block, int lines, const Expr& lane, int items,
                             const Expr& item) {
      return block * lines + (lane / kSide * items + item) * kSide + lane % kSide;
    };
    const Expr x = line_of(bx_, shape_.columns(), l_, shape_.across, p_),
               y = line_of(by_, shape_.rows(), r_, shape_.down, t_);
    values_(with({one_, l_, r_, p_, t_, bx_, by_}, which_)) =
        value(sums_(with({l_, r_, p_, t_, bx_, by_}, which_)), x, y);
  }
  // Another stage: after(value) where `condition` holds, the same for all. A loop of one step or
  // none around all of an item's values: they are constants' places in it, so in registers.
  template <class After>
  void then_if(const Expr& condition, const After& after) {
    const Halide::RDom once(0, select(condition, 1, 0), "once");
    const std::vector<Expr> at = with({once, l_, r_, p_, t_, bx_, by_}, which_);
    values_(at) = after(values_(at));
    values_.update(values_.num_update_definitions() - 1)
        .reorder(l_, r_, once, p_, t_)
        .gpu_threads(p_, t_)
        .unroll(l_)
        .unroll(r_);
  }

  // The sum for column x and row y of a product.
  Expr at(const Expr& x, const Expr& y, const std::vector<Expr>& which) const {
    const auto lane_of = [](const Expr& line, int items, int squares) {
      return line / (items * kSide) % squares * kSide + line % kSide;
    };
    std::vector<Expr> place =
        with({lane_of(x, shape_.across, shape_.wide), lane_of(y, shape_.down, shape_.high),
              x / kSide % shape_.across, y / kSide % shape_.down, x / shape_.columns(),
              y / shape_.rows()},
             which);
    if (!values_.defined()) return sums_(place);
    place.insert(place.begin(), 0);
    return values_(place);
  }

  // Schedules a stage that stores the results for all columns x, rows y and `which`, of which the
  // groups share out the first; each value of the others is a launch.
  void schedule_store(Halide::Stage stage, const Var& x, const Var& y,
                      const std::vector<Var>& which) {
    constexpr auto kGuard = Halide::TailStrategy::GuardWithIf;
    const Var bx("bx"), by("by"), item_x("item_x"), item_y("item_y"), wide("wide"), high("high"),
        column("column"), row("row"), in_x("in_x"), in_y("in_y"), of_x("of_x"), of_y("of_y");
    stage.split(x, bx, in_x, shape_.columns(), kGuard)
        .split(in_x, wide, of_x, shape_.across * kSide)
        .split(of_x, item_x, column, kSide)
        .split(y, by, in_y, shape_.rows(), kGuard)
        .split(in_y, high, of_y, shape_.down * kSide)
        .split(of_y, item_y, row, kSide);
    stage.unroll(column).unroll(wide).unroll(row).unroll(high);
    std::vector<VarOrRVar> order = {column, wide, row, high, item_x, item_y, bx, by};
    order.insert(order.end(), which.begin(), which.end());
    stage.reorder(order).gpu_blocks(bx, by, which.front()).gpu_threads(item_x, item_y);
    block_loop_ = bx;
  }

  // The same for results whose place is computed from column, row and product: a domain that has
  // the loops of a stage which updates them, in their order.
  struct Elements {
    Halide::RDom domain;
    Expr x, y, which;
  };
  Elements elements(const Expr& columns, const Expr& rows, const Expr& products) const {
    const auto count = [](const Expr& extent, int block) { return (extent + block - 1) / block; };
    const Halide::RDom d({{0, kSide},
                          {0, shape_.wide},
                          {0, kSide},
                          {0, shape_.high},
                          {0, shape_.across},
                          {0, shape_.down},
                          {0, count(columns, shape_.columns())},
                          {0, count(rows, shape_.rows())},
                          {0, products}},
                         "d");
    Elements all{d, d[6] * shape_.columns() + (d[1] * shape_.across + d[4]) * kSide + d[0],
                 d[7] * shape_.rows() + (d[3] * shape_.down + d[5]) * kSide + d[2], d[8]};
    all.domain.where(all.x < columns && all.y < rows);
    return all;
  }
  void schedule_update(Halide::Stage stage, const Elements& elements) {
    const Halide::RDom& d = elements.domain;
    stage.allow_race_conditions().gpu_blocks(d[6], d[7], d[8]).gpu_threads(d[4], d[5]);
    stage.unroll(d[0]).unroll(d[1]).unroll(d[2]).unroll(d[3]);
    block_loop_ = VarOrRVar(Halide::RVar(d[6]));
  }

  // Once, after the stages of `store`.
  void schedule(Func store) {
    store.never_partition_all();
    keep_apart(sums_, store);
    if (values_.defined()) keep_apart(values_.bound_extent(one_, 1), store);
    const Halide::RVar some("some"), step("step");
    sums_.update()
        .split(k_.x, some, step, shape_.unrolled)
        .reorder(l_, r_, step, some, p_, t_, k_.y)
        .gpu_threads(p_, t_)
        .unroll(l_)
        .unroll(r_)
        .unroll(step);
    schedule_shared(left_, store);
    schedule_shared(right_, store);
    for (Func* mine : {&mine_left_, &mine_right_}) {
      const int squares = mine == &mine_left_ ? shape_.high : shape_.wide;
      const Var square("square");
      mine->compute_at(sums_, step).store_in(Halide::MemoryType::Register);
      mine->bound_extent(lane_, kSide * squares);
      mine->split(lane_, square, lane_, kSide).vectorize(lane_).unroll(square);
    }
  }

 private:
  static constexpr int kSide = BlockShape::kSide;

  template <class Which>
  static std::vector<Expr> with(std::vector<Expr> head, const std::vector<Which>& which) {
    head.insert(head.end(), which.begin(), which.end());
    return head;
  }

  // Sums that each item keeps for itself.
  void keep_apart(Func sums, const Func& store) const {
    sums.compute_at(Halide::LoopLevel(store, block_loop_)).store_in(Halide::MemoryType::Register);
    sums.bound_extent(l_, shape_.wide * kSide).bound_extent(r_, shape_.high * kSide);
    sums.bound_extent(p_, shape_.across).bound_extent(t_, shape_.down);
    sums.bound_extent(bx_, 1).bound_extent(by_, 1);
    for (const Var& one : which_) sums.bound_extent(one, 1);
    sums.gpu_threads(p_, t_).unroll(l_).unroll(r_);
  }

  // What a group has of an operand: a chunk of steps of its rows or columns, in local memory, and
  // before that in its items' registers, an equal number of elements each.
  struct Shared {
    Func part, fetched;
    bool by_step = false;
    int lines = 0, width = 1;
  };

  int fetched_by_item(int lines) const { return lines * shape_.steps / shape_.items(); }

  // Items take elements, or vectors of them, in turns, by step or by line.
  void share(Shared& shared, const BlockOperand& operand, int lines, const Expr& extent) const {
    const int items = shape_.items(), width = operand.width;
    shared = {Func(shape_.has_turns() ? in_turns("part") : "part"),
              Func(fetched_ahead("fetched", fetched_by_item(lines))), operand.by_step, lines,
              width};
    // As many vectors as fill the steps, or the lines, and the lines or steps of all items.
    const int along = (operand.by_step ? shape_.steps : lines) / width;
    const Expr number = more_ * items + outer_ * shape_.across + inner_;
    const Expr dense = number % along * width, other = number / along;
    const Expr line = block_ * lines + (operand.by_step ? other : dense);
    shared.fetched(with({next_, more_, inner_, outer_, chunk_, block_}, which_)) =
        operand.at(first_or_last(line, extent, operand.by_step ? 1 : width),
                   operand.by_step ? dense : other, chunk_, next_);
    const Expr at = operand.by_step ? line_ * along + step_ / width : step_ * along + line_ / width;
    const Expr next = (operand.by_step ? step_ : line_) % width;
    shared.part(with({line_, step_, chunk_, block_}, which_)) = shared.fetched(with(
        {next, at / items, at % items % shape_.across, at % items / shape_.across, chunk_, block_},
        which_));
  }

  // A step's values lie a vector further from the next one's than they need to: those of several
  // steps, written at once, would share a bank.
  void schedule_shared(Shared& shared, const Func& store) const {
    const int items = shape_.items(), lines = shared.lines, width = shared.width;
    const Var more("more"), inner("inner"), outer("outer"), item("item"), next("next");
    Func& fetched = shared.fetched;
    fetched.compute_at(sums_, k_.y).store_in(Halide::MemoryType::Register);
    fetched.bound_extent(next_, width).bound_extent(more_, fetched_by_item(lines) / width);
    fetched.bound_extent(inner_, shape_.across).bound_extent(outer_, shape_.down);
    fetched.gpu_threads(inner_, outer_).unroll(more_).vectorize(next_);
    Func& part = shared.part;
    part.compute_at(sums_, k_.y).store_in(Halide::MemoryType::GPUShared);
    if (shape_.has_turns()) {
      part.hoist_storage(Halide::LoopLevel(store, block_loop_)).ring_buffer(kTurns);
    }
    part.bound_extent(line_, lines).bound_extent(step_, shape_.steps);
    part.bound_storage(line_, lines + kSide);
    if (shared.by_step) {
      part.split(step_, step_, next, width).fuse(step_, line_, item).unroll(next);
    } else {
      part.split(line_, line_, next, width).fuse(line_, step_, item).vectorize(next);
    }
    part.split(item, more, item, items)
        .split(item, outer, inner, shape_.across)
        .reorder(next, more, inner, outer)
        .gpu_threads(inner, outer)
        .unroll(more);
  }

  const BlockShape shape_;
  const std::vector<Var> which_;
  const Halide::RDom k_;
  Shared left_, right_;
  Func mine_left_{"mine_left"}, mine_right_{"mine_right"}, sums_, values_;
  const Var line_{"line"}, step_{"step"}, chunk_{"chunk"}, block_{"block"};
  const Var lane_{"lane"}, item_{"item"}, more_{"more"}, next_{"next"}, inner_{"inner"},
      outer_{"outer"};
  const Var l_{"l"}, r_{"r"}, p_{"p"}, t_{"t"}, bx_{"bx"}, by_{"by"}, one_{"one"};
  VarOrRVar block_loop_{"bx", false};
};

}  // namespace ballast::kernels
