// C of any strides on a GPU, of operands that are dense along a dimension, in blocks that share
// what they read (blocked_sums.h).
#pragma once

#include "kernels/matmul/matmul_kernel.h"
#include "kernels/recipe/blocked_sums.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// Operands and arguments are those of MatmulGeneral.
class MatmulBlocks : public MatmulKernel<MatmulBlocks> {
 public:
  Halide::GeneratorParam<int> rows{"rows", 128};  // of a block
  // Along which dimension they are dense: k, else rows of A and columns of B.
  Halide::GeneratorParam<bool> a_by_step{"a_by_step", true}, b_by_step{"b_by_step", false};
  // Operands are read in vectors of 4: their addresses, extents where they are dense and strides
  // elsewhere are multiples of these.
  Halide::GeneratorParam<bool> by_fours{"by_fours", false};
  // With any activation; else with none or relu.
  Halide::GeneratorParam<bool> activates{"activates", false};

  Input<Buffer<float, 5>> a{"a"};  // [row][k]
  Input<Buffer<float, 5>> b{"b"};  // [k][x]
  Input<Buffer<float, 2>> bias{"bias"};
  Input<Buffer<float, 5>> extra{"extra"};
  Input<int> has_bias{"has_bias"};
  Input<int> activation{"activation"};
  Input<int> extra_mode{"extra_mode"};
  Output<Buffer<float, 5>> out{"out"};

  void generate() {
    const Expr steps = a.dim(0).extent();
    const int width = by_fours ? 4 : 1;
    BlockShape shape = block_shape(rows, width);
    // Else what follows the sums takes more, and a unit has one group instead of two: 1.1 times as
    // long with gelu's gradient.
    if (chain) shape.registers = BlockShape::kRegisters;
    const auto of_step = [&](const Expr& step, const Expr& chunk, bool by_step,
                             const auto& element) {
      return step_or_zero(chunk * shape.steps + step, steps, element, by_step ? width : 1);
    };
    const auto a_at = [&](const Expr& row, const Expr& step, const Expr& chunk, const Expr& next) {
      return of_step(step, chunk, a_by_step, [&](const Expr& at) {
        const std::vector<Expr> dense = {at + next, row}, lines = {at, row + next};
        return a((a_by_step ? dense : lines) + batch);
      });
    };
    const auto b_at = [&](const Expr& column, const Expr& step, const Expr& chunk,
                          const Expr& next) {
      return of_step(step, chunk, b_by_step, [&](const Expr& at) {
        const std::vector<Expr> dense = {column, at + next}, lines = {column + next, at};
        return b((b_by_step ? dense : lines) + batch);
      });
    };
    BlockedSums sums(shape, out.dim(1).extent(), out.dim(0).extent(),
                     (steps + shape.steps - 1) / shape.steps, {a_at, a_by_step, width},
                     {b_at, b_by_step, width}, batch);
    const std::vector<Var> at = {x, y, z0, z1, z2};
    if (activates) add_activations(sums);
    Func summed("summed"), store = out;
    summed(at) = sums.at(x, y, {z0, z1, z2});
    if (chain) {
      store(at) = chain(summed, at, {x, y, z0, z1, z2})(at);
    } else if (activates) {
      store(at) = with_extra(summed(at));
    } else {
      const Expr value = with_bias(summed(at), x, y);
      store(at) = with_extra(select(activation == activation_number("relu"),
                                    apply_pointwise("relu", DType::kF32, {value}), value));
      sums.schedule_store(store.specialize(is_plain()), x, y, {z0, z1, z2});
    }
    sums.schedule_store(store, x, y, {z0, z1, z2});
    set_any_layout(a, b, bias, extra, out);
    set_dense(a, a_by_step ? 0 : 1, width);
    set_dense(b, b_by_step ? 1 : 0, width);
    sums.schedule(store);
  }

 private:
  // Along dimension `dense`, and its lines in vectors of `width` where these do not begin in
  // between.
  template <class Operand>
  static void set_dense(Operand& operand, int dense, int width) {
    for (int d = 0; d < operand.dimensions(); ++d) {
      auto dim = operand.dim(d);
      dim.set_stride(d == dense ? Expr(1) : dim.stride() / width * width);
    }
  }

  Expr is_plain() const { return has_bias == 0 && activation == 0 && extra_mode == 0; }

  // Operands that there are none of are read where they begin.
  static Expr if_there(const Expr& mode, const Expr& place) { return select(mode != 0, place, 0); }
  Expr with_bias(const Expr& sum, const Expr& column, const Expr& row) {
    const Expr value = bias(if_there(has_bias, column), if_there(has_bias, row));
    return select(has_bias != 0, apply_pointwise("add", DType::kF32, {sum, value}), sum);
  }
  Expr with_extra(const Expr& value) {
    std::vector<Expr> place;
    for (const Var& one : {x, y, z0, z1, z2}) place.push_back(if_there(extra_mode, one));
    return select(extra_mode != 0, MatmulEpilogue::with_extra(extra_mode, value, extra(place)),
                  value);
  }
  // Each activation is code that an item takes or not: results of all, of which one is selected,
  // would take several times as long as the sums.
  void add_activations(BlockedSums& sums) {
    sums.begin_with([&](const Expr& sum, const Expr& column, const Expr& row) {
      return with_bias(sum, min(column, out.dim(0).extent() - 1),
                       min(row, out.dim(1).extent() - 1));
    });
    for (int i = 1; i < kActivationCount; ++i) {
      sums.then_if(activation == i, [&](const Expr& value) {
        return apply_pointwise(kActivations[i], DType::kF32, {value});
      });
    }
  }
};

}  // namespace ballast::kernels
