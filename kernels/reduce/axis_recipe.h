// What every op along one axis is written with (softmax, normalisations, their gradients): folds
// over the axis, and the schedule of a kernel in which one work-group keeps what it folds near at
// hand, so that a row comes from memory once however often it is passed over. Needs Halide;
// stateless.
//
// Two layouts of a dense tensor [outer, axis, inner]:
//   rows     x(r, row): the axis is dense; vectors lie along it. CPUs need at least 16 elements.
//            "short_rows", for CPUs: each pass takes several rows before the next pass begins, so
//            that the end of a row's fold, one chain of instructions, runs beside other rows.
//            "long_rows", for GPUs: more work-items for each.
//   columns  x(i, r, o): vectors lie along i, across the axis; i may have any stride.
//            "narrow_rows", for CPUs, of rows of fewer than 16 elements: i counts sixteen rows that
//            lie one after the other and change places in registers (narrow_rows.h), o is the
//            first.
// The order of additions depends on the extents only.
#pragma once

#include "kernels/recipe/lane_fold.h"
#include "kernels/reduce/row_lengths.h"

#include <string>
#include <vector>

namespace ballast::kernels {

constexpr int kRowsAtOnce = 4;  // of "short_rows"

struct AxisNest {
  bool is_rows = true, is_gpu = false;
  // Rows on CPUs whose length is whole steps of four vectors: fewer instructions for each.
  bool has_whole_steps = false;
  int rows_at_once = 1;  // that each pass takes; more for "short_rows"
  bool is_narrow = false;
  // Of a GPU's work-group, and how many elements of a row each has in flight.
  int items = 64, loads = 4;
  Halide::Expr length;  // of the axis
  Halide::Var r{"r"}, row{"row"}, i{"i"}, o{"o"};

  AxisNest(const std::string& layout, bool is_gpu_class)
      : is_rows(layout != "columns" && layout != "narrow_rows"),
        is_gpu(is_gpu_class),
        rows_at_once(layout == "short_rows" ? kRowsAtOnce : 1),
        is_narrow(layout == "narrow_rows") {
    if (layout == "long_rows") items = 256, loads = 8;
  }
  // The coordinates of the element `along` of this line; those of what a line has once.
  std::vector<Halide::Expr> at(const Halide::Expr& along) const;
  std::vector<Halide::Expr> place() const;
  std::vector<Halide::Var> at_vars() const;
  std::vector<Halide::Var> place_vars() const;
  int dimensions() const { return is_rows ? 2 : 3; }  // of a tensor
};

// Totals of one pass over a line. A maximum and a minimum pass over NaN, the largest and the least
// of a line with a NaN are one.
enum class FoldKind { kSum, kSquares, kMax, kMin, kLargest, kLeast };
struct Term {
  FoldKind kind;
  Halide::Expr value;  // at nest.r
};
class Fold {
 public:
  Fold(const AxisNest& nest, const std::string& name, const std::vector<Term>& terms);
  const Halide::Expr& operator[](size_t term) const { return values_[term]; }

 private:
  friend class AxisSchedule;
  void fold_rows(const AxisNest& nest, const std::vector<Term>& terms);
  void fold_columns(const AxisNest& nest, const std::vector<Term>& terms);

  Halide::Func lanes_, total_;
  std::vector<Halide::Expr> values_;  // of each term
  std::vector<LaneFold> lane_fold_;   // one, for rows
  Halide::RDom steps_, rest_, tail_;
};

// Schedules `out`, whose first dimensions are those of the nest (a tensor) or of its places.
class AxisSchedule {
 public:
  // Rows: so many by work-group of a CPU.
  AxisSchedule(const AxisNest& nest, Halide::Func out, const Halide::Expr& rows_per_group);
  // Columns: the extent of i, whether its stride is 1 in all tensors, and how many of o a
  // work-group of a CPU takes; undefined: one.
  AxisSchedule(const AxisNest& nest, Halide::Func out, const Halide::Expr& width,
               const Halide::Expr& is_dense, const Halide::Expr& outer_per_group = {});

  // Narrow rows: where what is kept is computed.
  AxisSchedule(const AxisNest& nest, Halide::Func values, const Halide::LoopLevel& level);

  void keep(Fold& fold);
  void keep(Halide::Func per_line);              // one value by line
  void keep(Fold& fold, Halide::Func per_line);  // which nothing but this needs the fold for
  // A line's values; rows on CPUs only.
  void keep_row(Halide::Func values, int longest);
  void add_output(Halide::Func per_line, Halide::Expr rows_per_group);  // rows only
  // What a CPU's work-group makes once, after its rows; the last dimension of `func`, called like
  // the nest's rows (Halide fuses loops of one name), counts groups.
  void add_by_group(Halide::Func func, Halide::Expr groups);

 private:
  void split_rows(Halide::Func func, const Halide::Expr& rows_per_group);
  // Computes the totals of a fold, and what it needs, in the loop over the rows of `consumer`.
  void fold_within(Fold& fold, Halide::Func consumer);
  // The loop whose passes compute what is kept.
  const Halide::Var& pass() const;
  // The last vector moves inwards. Halide makes a loop of its own of the others, unless the length
  // is known: then compilers see what moves.
  void vectorize_row(Halide::Func func);
  void vectorize_columns(Halide::Stage stage);
  bool is_tensor() const { return out_.dimensions() == nest_.dimensions(); }

  const AxisNest nest_;
  Halide::Func out_;
  Halide::LoopLevel level_;
  Halide::Var group_{"group"}, inner_{"inner"}, block_{"block"};
  Halide::Expr is_wide_, is_vector_, is_gather_, outer_per_group_;
};

}  // namespace ballast::kernels
