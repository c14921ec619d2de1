// C in tiles of 16 rows x 16 `vectors` lanes, stored along the rows: for a product computed
// transposed, whose lanes are C's rows. Layers of weights [out, in] at a batch of some dozens are
// such products: the batch is packed and the weights are read where they lie.
//
// The epilogue works on the stack; then shuffles turn blocks of 16 x 16, so that C is written in
// whole lines. In C, on the shapes of a batch of 64, such a tile took 0.9 of the time of 6 x 64
// stored element by element, and 1.03 of that without any stores.
#pragma once

#include "kernels/matmul/matmul_parts.h"
#include "kernels/recipe/shuffle.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// `out` has at least 16 contiguous rows; the bias lies along them.
class MatmulTurned : public MatmulParts<MatmulTurned> {
 public:
  void generate() {
    // Algorithm.
    sum_parts(
        [&](const Expr& step, const Expr& row) {
          return std::vector<Expr>{step, 0, first_row(t) + row};
        },
        [&](const Expr& step, const Expr&) { return b_at(step); }, kUnrolledSteps);
    if (!chain) add_epilogue();
    const std::vector<Var> one_block = {v, p, t, z0, z1, z2};
    Func block("block");
    block(std::vector<Expr>{l, y} + one_block) = staged(std::vector<Expr>{l, v, y} + which);
    const std::vector<Func> turned = transpose_block(block, kLanes, sizeof(float), l, y, one_block);

    Func result = turned.back();
    if (chain) {
      result = chain(result, {l, y, v, p, t, z0, z1, z2},
                     std::vector<Expr>{column_of(p, v, y), first_row(t) + l} + batch);
    }

    loop_over(kRows, kLanes, vectors);
    const RVar row = r[0], lane = r[1], vector = r[2], panel = r[4];
    out(std::vector<Expr>{x, y} + batch) = Halide::undef<float>();
    out(std::vector<Expr>{column_of(panel, vector, lane), first_row(number) + row} + batch) =
        result(std::vector<Expr>{row, lane, vector, panel, number} + batch);
    set_layouts();

    // Schedule.
    schedule_parts().unroll(lane);
    for (Func step : turned) {
      step.compute_at(out, vector).store_in(MemoryType::Register).vectorize(l).unroll(y);
      step.bound_extent(l, kLanes).bound_extent(y, kLanes);
      for (const Var& one : one_block) step.bound_extent(one, 1);
    }
  }

 private:
  // Where the lanes are fewer than a tile's, the last one is computed and stored again.
  Expr column_of(const Expr& panel, const Expr& vector, const Expr& lane) const {
    const Expr last = out.dim(0).extent() - 1;
    const int width = vectors * kLanes;
    const Expr first = max(min(panel * width, last + 1 - width), 0);
    return min(first + vector * kLanes + lane, last);
  }

  void add_epilogue() {
    MatmulEpilogue epilogue(staged, vectors, kRows, which);
    epilogue.add_bias(is_bias(MatmulBias::kRows), [&](const Expr&, const Expr&, const Expr& row) {
      return bias(first_row(t) + row);
    });
    epilogue.add_activations(activation);
    epilogue.add_extra(
        extra_mode, false, [&](const Expr& lane, const Expr& vector, const Expr& row) {
          return extra(std::vector<Expr>{column_of(p, vector, lane), first_row(t) + row} + batch);
        });
  }

  void set_layouts() {
    set_panel_layouts(vectors);
    a.dim(0).set_stride(1);
    out.dim(1).set_stride(1);
    out.dim(0).set_stride(Expr());
  }
};

}  // namespace ballast::kernels
