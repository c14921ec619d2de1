#include "kernels/reduce/axis_recipe.h"

#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/lanes.h"
#include "kernels/reduce/extremum.h"

#include <cmath>

namespace ballast::kernels {

using Halide::Expr;
using Halide::Func;
using Halide::MemoryType;
using Halide::RDom;
using Halide::Stage;
using Halide::TailStrategy;
using Halide::Tuple;
using Halide::Var;

namespace {

constexpr int kUnroll = kRowStep / kLanes;  // vectors folded side by side
const Var kLane("lane"), kPart("part");

// The largest and the least of a line are two totals each.
std::vector<Term> totals_of(const std::vector<Term>& terms) {
  std::vector<Term> totals;
  for (const Term& term : terms) {
    if (term.kind == FoldKind::kLargest || term.kind == FoldKind::kLeast) {
      const bool is_max = term.kind == FoldKind::kLargest;
      totals.push_back({is_max ? FoldKind::kMax : FoldKind::kMin, term.value});
      totals.push_back({FoldKind::kSquares, term.value});
    } else {
      totals.push_back(term);
    }
  }
  return totals;
}

std::vector<Expr> values_of(const std::vector<Term>& terms, const std::vector<Expr>& totals) {
  std::vector<Expr> values;
  size_t next = 0;
  for (const Term& term : terms) {
    Expr value = totals[next++];
    if (term.kind == FoldKind::kLargest || term.kind == FoldKind::kLeast) {
      value = extremum(value, totals[next++]);
    }
    values.push_back(value);
  }
  return values;
}

Expr joined(FoldKind kind, const Expr& a, const Expr& b) {
  if (kind == FoldKind::kMax) return larger(a, b);
  if (kind == FoldKind::kMin) return smaller(a, b);
  return Halide::strict_float(a + b);
}

Expr with_value(FoldKind kind, const Expr& total, const Expr& value) {
  return kind == FoldKind::kSquares ? with_square(total, value) : joined(kind, total, value);
}

Expr identity(FoldKind kind) {
  if (kind == FoldKind::kMax) return -INFINITY;
  return kind == FoldKind::kMin ? INFINITY : 0.0f;
}

// Every total's `next(its index)`.
template <class Next>
Tuple each(const std::vector<Term>& totals, const Next& next) {
  std::vector<Expr> values;
  for (size_t k = 0; k < totals.size(); ++k) values.push_back(next(k));
  return Tuple(values);
}

Tuple identities(const std::vector<Term>& totals) {
  return each(totals, [&](size_t k) { return identity(totals[k].kind); });
}

Tuple with_values(const std::vector<Term>& totals, const std::vector<Expr>& old,
                  const std::string& axis, const Expr& along) {
  return each(totals, [&](size_t k) {
    return with_value(totals[k].kind, old[k], substitute(axis, along, totals[k].value));
  });
}

}  // namespace

std::vector<Expr> AxisNest::at(const Expr& along) const {
  return is_rows ? std::vector<Expr>{along, row} : std::vector<Expr>{i, along, o};
}

std::vector<Expr> AxisNest::place() const {
  return is_rows ? std::vector<Expr>{row} : std::vector<Expr>{i, o};
}

std::vector<Var> AxisNest::at_vars() const {
  return is_rows ? std::vector<Var>{r, row} : std::vector<Var>{i, r, o};
}

std::vector<Var> AxisNest::place_vars() const {
  return is_rows ? std::vector<Var>{row} : std::vector<Var>{i, o};
}

Fold::Fold(const AxisNest& nest, const std::string& name, const std::vector<Term>& terms)
    : lanes_(name + "_lanes"), total_(name) {
  nest.is_rows ? fold_rows(nest, terms) : fold_columns(nest, terms);
}

void Fold::fold_columns(const AxisNest& nest, const std::vector<Term>& terms) {
  const std::vector<Term> totals = totals_of(terms);
  const std::vector<Var> place = nest.place_vars();
  steps_ = RDom(0, nest.length, "steps");
  total_(place) = identities(totals);
  const std::vector<Expr> old = values_at(total_, nest.place());
  total_(place) = with_values(totals, old, nest.r.name(), steps_);
  values_ = values_of(terms, old);
}

// CPU: lanes(lane, part, row); whole steps go to kUnroll vectors, the whole vectors left to the
// first of them, and what is left of the row comes as the last sixteen elements, of which only new
// ones count. GPU: lanes(lane, 0, row), a work-item each; whole steps, then those left.
void Fold::fold_rows(const AxisNest& nest, const std::vector<Term>& terms) {
  const std::vector<Term> totals = totals_of(terms);
  const Var row = nest.row;
  const auto update = [&](const Expr& part, const Expr& column, const Expr& is_new) {
    const std::vector<Expr> at = {kLane, part, row}, old = values_at(lanes_, at);
    const Tuple next = with_values(totals, old, nest.r.name(), column);
    if (!is_new.defined()) {
      lanes_(at) = next;
    } else {
      lanes_(at) = each(totals, [&](size_t k) { return select(is_new, next[k], old[k]); });
    }
  };
  lanes_(kLane, kPart, row) = identities(totals);
  if (nest.is_gpu) {
    const int items = nest.items, loads = nest.loads;
    const Expr whole = nest.length / (items * loads);
    steps_ = RDom(0, loads, 0, whole, "steps");
    update(0, (steps_.y * loads + steps_.x) * items + kLane, Expr());
    const Expr left = nest.length - whole * (items * loads);
    rest_ = RDom(0, (left + items - 1) / items, "rest");
    const Expr column = (whole * loads + rest_) * items + kLane;
    update(0, min(column, nest.length - 1), column < nest.length);
  } else {
    const Expr steps = nest.length / kRowStep, whole = nest.length / kLanes;
    steps_ = RDom(0, kUnroll, 0, steps, "steps");
    update(steps_.x, (steps_.y * kUnroll + steps_.x) * kLanes + kLane, Expr());
    if (!nest.has_whole_steps) {
      rest_ = RDom(0, whole - steps * kUnroll, "rest");
      update(0, steps * kRowStep + rest_ * kLanes + kLane, Expr());
      tail_ = RDom(0, select(whole * kLanes < nest.length, 1, 0), "tail");
      update(1, nest.length - kLanes + kLane + tail_, kLane >= kLanes - nest.length % kLanes);
    }
  }
  const auto combine = [&](const std::vector<Expr>& a, const std::vector<Expr>& b) {
    std::vector<Expr> both;
    for (size_t k = 0; k < totals.size(); ++k) both.push_back(joined(totals[k].kind, a[k], b[k]));
    return both;
  };
  // Neighbours pairwise: shorter chains, smaller error.
  const auto at = [&](int part) { return values_at(lanes_, {kLane, part, row}); };
  Func across(total_.name() + "_across");
  across(kLane, row) =
      Tuple(nest.is_gpu ? at(0) : combine(combine(at(0), at(1)), combine(at(2), at(3))));
  lane_fold_ = {LaneFold(across, nest.is_gpu ? nest.items : kLanes, {row}, combine)};
  total_(row) = Tuple(values_of(terms, lane_fold_[0].total()));
  values_ = values_at(total_, nest.place());
}

AxisSchedule::AxisSchedule(const AxisNest& nest, Func out, const Expr& rows_per_group)
    : nest_(nest), out_(out) {
  if (!nest.is_gpu) {
    split_rows(out, rows_per_group);
    if (is_tensor()) {
      if (nest.has_whole_steps) {
        out.split(nest.r, nest.r, inner_, kRowStep, TailStrategy::RoundUp)
            .vectorize(inner_, kLanes)
            .unroll(inner_);
      } else {
        vectorize_row(out);
      }
    }
  } else if (is_tensor()) {
    out.split(nest.r, nest.r, inner_, nest.items, TailStrategy::GuardWithIf)
        .reorder(nest.r, inner_, nest.row)
        .gpu_blocks(nest.row)
        .gpu_threads(inner_);
  } else {
    out.gpu_blocks(nest.row);
  }
}

AxisSchedule::AxisSchedule(const AxisNest& nest, Func out, const Expr& width, const Expr& is_dense,
                           const Expr& outer_per_group)
    : nest_(nest),
      out_(out),
      is_wide_(width >= kColumns && is_dense),
      is_vector_(width >= kLanes && is_dense),
      is_gather_(width >= kLanes),
      outer_per_group_(nest.is_gpu ? Expr() : outer_per_group) {
  const auto split = [&](Stage stage, int block, TailStrategy tail) {
    stage.split(nest.i, block_, inner_, block, tail);
    Var outermost = nest.o;
    std::vector<Halide::VarOrRVar> order{inner_};
    if (is_tensor()) order.insert(nest.is_gpu ? order.begin() : order.end(), nest.r);
    if (outer_per_group_.defined()) {
      stage.split(nest.o, group_, nest.o, outer_per_group_, TailStrategy::GuardWithIf);
      order.emplace_back(nest.o);
      outermost = group_;
    }
    order.insert(order.end(), {block_, outermost});
    return stage.reorder(order).gpu_blocks(block_, outermost);
  };
  if (nest.is_gpu) {
    split(out, nest.items, TailStrategy::GuardWithIf).gpu_threads(inner_);
    return;
  }
  split(out.specialize(is_wide_), kColumns, TailStrategy::ShiftInwards)
      .vectorize(inner_, kLanes)
      .unroll(inner_);
  for (const Expr& condition : {is_vector_, is_gather_}) {
    split(out.specialize(condition), kLanes, TailStrategy::ShiftInwards).vectorize(inner_);
  }
  split(out, 1, TailStrategy::GuardWithIf);
}

AxisSchedule::AxisSchedule(const AxisNest& nest, Func values, const Halide::LoopLevel& level)
    : nest_(nest), out_(values), level_(level) {
  is_tensor() ? keep_row(values, kLanes) : keep(values);
}

const Var& AxisSchedule::pass() const {
  if (nest_.is_rows) return nest_.rows_at_once > 1 ? block_ : nest_.row;
  if (nest_.is_gpu) return inner_;
  return outer_per_group_.defined() ? nest_.o : block_;
}

void AxisSchedule::split_rows(Func func, const Expr& rows_per_group) {
  func.split(nest_.row, group_, nest_.row, rows_per_group, TailStrategy::GuardWithIf);
  if (nest_.rows_at_once > 1) {
    func.split(nest_.row, block_, nest_.row, nest_.rows_at_once, TailStrategy::GuardWithIf);
    func.never_partition(block_);
  }
  func.gpu_blocks(group_).never_partition(nest_.row);
}

void AxisSchedule::vectorize_row(Func func) {
  func.vectorize(nest_.r, kLanes, TailStrategy::ShiftInwards);
  if (is_const(nest_.length)) func.never_partition(nest_.r);
}

void AxisSchedule::vectorize_columns(Stage stage) {
  stage.specialize(is_wide_).vectorize(nest_.i, kLanes).unroll(nest_.i);
  for (const Expr& condition : {is_vector_, is_gather_}) {
    stage.specialize(condition).vectorize(nest_.i, kLanes);
  }
}

void AxisSchedule::keep(Func per_line) {
  if (nest_.is_narrow) {
    per_line.compute_at(level_).store_in(MemoryType::Stack);
    per_line.bound(nest_.i, 0, kLanes).bound_extent(nest_.o, 1).vectorize(nest_.i);
    return;
  }
  if (nest_.is_rows) {
    per_line.compute_at(out_, pass());
    if (nest_.is_gpu) return;
    per_line.store_in(MemoryType::Stack).bound_storage(nest_.row, nest_.rows_at_once);
    return;
  }
  per_line.compute_at(out_, pass()).store_in(MemoryType::Stack);
  per_line.bound_storage(nest_.i, nest_.is_gpu ? 1 : kColumns).bound_storage(nest_.o, 1);
  if (!nest_.is_gpu) vectorize_columns(per_line);
}

void AxisSchedule::keep(Fold& fold) {
  keep(fold.total_);
  if (!nest_.is_rows) {
    Stage update = fold.total_.update().reorder(nest_.i, fold.steps_.x);
    if (nest_.is_narrow) {
      update.vectorize(nest_.i);
    } else if (!nest_.is_gpu) {
      vectorize_columns(update);
    }
    return;
  }
  if (nest_.is_gpu) {
    fold.lane_fold_[0].share(out_, nest_.row, fold.lanes_);
    fold.lanes_.update(0).unroll(fold.steps_.x);
    fold.lanes_.update(1).unscheduled();
    return;
  }
  fold_within(fold, nest_.rows_at_once > 1 ? fold.total_ : out_);
}

void AxisSchedule::keep(Fold& fold, Func per_line) {
  if (nest_.rows_at_once > 1) {
    keep(per_line);
    fold.total_.compute_at(per_line, nest_.row)
        .store_in(MemoryType::Stack)
        .bound_storage(nest_.row, 1);
    fold_within(fold, per_line);
  } else {
    keep(fold);
    keep(per_line);
  }
}

void AxisSchedule::fold_within(Fold& fold, Func consumer) {
  fold.lanes_.compute_at(consumer, nest_.row);
  fold.lanes_.bound(kLane, 0, kLanes).bound(kPart, 0, kUnroll).bound_storage(nest_.row, 1);
  fold.lanes_.store_in(MemoryType::Stack).vectorize(kLane).unroll(kPart);
  fold.lanes_.update(0)
      .reorder(kLane, fold.steps_.x, fold.steps_.y)
      .vectorize(kLane)
      .unroll(fold.steps_.x);
  if (!nest_.has_whole_steps) {
    fold.lanes_.update(1).reorder(kLane, fold.rest_).vectorize(kLane);
    fold.lanes_.update(2).reorder(kLane, fold.tail_).vectorize(kLane);
  }
  fold.lane_fold_[0].keep(consumer, nest_.row);
}

void AxisSchedule::keep_row(Func values, int longest) {
  if (nest_.is_narrow) {
    keep(values);
    values.bound_storage(nest_.r, kLanes);
    return;
  }
  values.compute_at(out_, pass()).store_in(MemoryType::Stack);
  values.bound_storage(nest_.r, longest).bound_storage(nest_.row, nest_.rows_at_once);
  vectorize_row(values);
}

void AxisSchedule::add_output(Func per_line, Expr rows_per_group) {
  if (nest_.is_gpu) {
    per_line.gpu_blocks(nest_.row).compute_with(out_, nest_.row);
    return;
  }
  split_rows(per_line, rows_per_group);
  per_line.compute_with(out_, nest_.row);
}

void AxisSchedule::add_by_group(Func func, Expr groups) {
  func.output_buffers()[0].dim(func.dimensions() - 1).set_bounds(0, groups);
  func.rename(nest_.row, group_).gpu_blocks(group_).compute_with(out_, group_);
}

}  // namespace ballast::kernels
