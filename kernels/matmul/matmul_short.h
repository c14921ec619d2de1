// C of rows of at most 16 elements that follow each other without gaps, in tiles of 16 rows: a
// classifier's logits, points turned. A tile's rows are stored over each other's empty lanes on the
// stack, where they make `columns` whole vectors, as they do in C.
#pragma once

#include "kernels/matmul/matmul_parts.h"
#include "kernels/recipe/hints.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// `out` has at least 16 rows; the bias lies along the lanes, of which `b` repeats the last one. Or,
// with `in_place`, lanes beyond a row of `b` are the next row's first ones, for the last steps,
// past whose rows there is nothing, its last one.
class MatmulShort : public MatmulParts<MatmulShort> {
 public:
  GeneratorParam<bool> in_place{"in_place", false};  // rows of b follow each other without gaps

  void generate() {
    // Algorithm.
    const auto place = [&](const Expr& step, const Expr& row) {
      return std::vector<Expr>{step, row, first_row(t)};
    };
    const auto asking = [&](const Expr& step, const Expr& row) {
      const Expr ahead = a(place(step + kAhead + l, row) + batch);
      return select(step % kUnrolled == 0, with_prefetch(b_at(step), ahead), b_at(step));
    };
    LastSteps last;
    if (in_place) {
      const Expr row = Halide::unsafe_promise_clamped(b.dim(3).stride(), 1, kLanes - 1);
      last.count = (kLanes - 1) / row;
      last.element = [&](const Expr& step) {
        return b(std::vector<Expr>{min(l, out.dim(0).extent() - 1), v, 0, step} + batch);
      };
    }
    sum_parts(place, asking, kUnrolled, last);
    Func result = staged, lane_bias;
    if (chain) {
      result = chain(staged, {l, v, y, p, t, z0, z1, z2}, place_in_c(l, y));
    } else {
      lane_bias = add_epilogue();
    }
    const Expr columns = Halide::unsafe_promise_clamped(out.dim(0).extent(), 1, kLanes);
    const RDom c({{0, kLanes}, {0, kRows}}, "c");
    Func joined("joined");
    joined(std::vector<Expr>{x} + which) = Halide::undef<float>();
    joined(std::vector<Expr>{c.y * columns + c.x} + which) =
        result(std::vector<Expr>{c.x, 0, c.y} + which);

    loop_over(kLanes, columns, 1);
    const Expr element = r[1] * kLanes + r[0];
    out(std::vector<Expr>{x, y} + batch) = Halide::undef<float>();
    out(std::vector<Expr>{element, first_row(number)} + batch) =
        joined(std::vector<Expr>{element, r[4], number} + batch);
    set_panel_layouts(vectors);
    a.dim(0).set_stride(1);
    a.dim(1).set_extent(kRows);
    out.dim(0).set_stride(1);

    // Schedule.
    schedule_parts();
    joined.compute_at(out, r[3]).store_in(MemoryType::Stack).bound(x, 0, kLanes * kRows);
    for (const Var& one : which) joined.bound_extent(one, 1);
    joined.update().allow_race_conditions().vectorize(c.x);
    if (!chain) joined.update().unroll(c.y);
    if (lane_bias.defined()) lane_bias.compute_at(out, r[4]).store_in(MemoryType::Stack);
  }

 private:
  static constexpr int kUnrolled = 8;  // steps of k
  // Elements of A from what is read to what is asked for. Rows of some dozens follow each other:
  // that is another tile. Along longer ones it is a later step of k, some rows on.
  static constexpr int kAhead = 1024 + 64;

  std::vector<Expr> place_in_c(const Expr& lane, const Expr& row) const {
    return std::vector<Expr>{min(lane, out.dim(0).extent() - 1), first_row(t) + row} + batch;
  }

  // Returns what holds the bias.
  Func add_epilogue() {
    MatmulEpilogue epilogue(staged, vectors, kRows, which);
    const Func lane_bias = add_lane_bias(epilogue, vectors, 0);
    epilogue.add_activations(activation);
    epilogue.add_extra(extra_mode, false, [&](const Expr& lane, const Expr&, const Expr& row) {
      return extra(place_in_c(lane, row));
    });
    return lane_bias;
  }
};

}  // namespace ballast::kernels
