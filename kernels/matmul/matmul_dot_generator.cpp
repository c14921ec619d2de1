// Products along whose k both operands are contiguous, where one of them has few rows: an element
// is a sum of 16 fma chains, one per lane, over k in steps of 16, then of one over what is left.
// Nothing is packed or transposed, so the larger matrix streams through once.
#include "kernels/matmul/matmul_kernel.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/shuffle.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

class MatmulDot : public MatmulKernel<MatmulDot> {
 public:
  // A tile, whose chains are in registers: lanes are the larger matrix's rows, a multiple of 4.
  GeneratorParam<int> lanes{"lanes", 8};
  GeneratorParam<int> rows{"rows", 1};
  // How many elements before they are read b's are asked for, where its rows follow each other; 0:
  // nothing is.
  GeneratorParam<int> ahead{"ahead", 0};

  Input<Buffer<float, 5>> a{"a"};        // [row][k]
  Input<Buffer<float, 5>> b{"b"};        // [k][lane]
  Input<Buffer<float, 2>> bias{"bias"};  // [row][lane], repeated along one of them
  Input<Buffer<float, 5>> extra{"extra"};
  Input<int> has_bias{"has_bias"};
  Input<int> activation{"activation"};
  Input<int> extra_mode{"extra_mode"};
  Output<Buffer<float, 5>> out{"out"};  // [row][lane]

  void generate() {
    // Algorithm. Lanes and rows beyond the edges repeat the last ones and are not stored.
    const Expr steps = a.dim(0).extent(), whole = steps / kLanes * kLanes;
    const RDom k(0, whole / kLanes, "k"), rest(0, steps - whole, "rest");
    Func chains("chains"), sums("sums"), staged("staged");
    const std::vector<Expr> chains_at = std::vector<Expr>{c, l, y} + which;
    chains(chains_at) = 0.0f;
    chains(chains_at) = term(k * kLanes + c, chains(chains_at), ahead);
    const std::vector<Func> folded = fold(chains);
    const std::vector<Expr> sums_at = std::vector<Expr>{l, y} + which;
    sums(sums_at) = folded.back()(std::vector<Expr>{l % 4 * 4, l / 4, y} + which);
    sums(sums_at) = term(whole + rest, sums(sums_at));
    staged(std::vector<Expr>{l, v, y} + which) = sums(sums_at);
    add_epilogue(staged);
    out(std::vector<Expr>{x, y} + batch) =
        staged(std::vector<Expr>{x % lanes, 0, y % rows, x / lanes, y / rows} + batch);
    for (auto* tensor : {&a, &b, &extra}) set_any_layout(*tensor);
    a.dim(0).set_stride(1);
    b.dim(1).set_stride(1);
    set_any_layout(bias);
    set_any_layout(out);

    // Schedule: a work-item per block of lanes, which it reads once for all rows.
    Func store = out;
    store.tile(x, y, xo, yo, xi, yi, lanes, rows, TailStrategy::GuardWithIf)
        .reorder(xi, yi, yo, z1, z2, xo, z0)
        .gpu_blocks(xo, z0)
        .never_partition_all();
    staged.compute_at(store, yo).store_in(MemoryType::Stack).vectorize(l);
    bound_tile(staged, which, lanes, 1, rows);
    sums.compute_at(staged, Var::outermost()).store_in(MemoryType::Stack);
    sums.bound_extent(l, lanes).bound_extent(y, rows).unroll(l).unroll(y);
    sums.update().reorder({l, y, rest, p, t, z0, z1, z2}).unroll(l).unroll(y);
    chains.compute_at(sums, Var::outermost()).store_in(MemoryType::Register);
    chains.bound_extent(c, kLanes).bound_extent(l, lanes).bound_extent(y, rows);
    chains.vectorize(c).unroll(l).unroll(y);
    chains.update().reorder({c, l, y, k, p, t, z0, z1, z2}).vectorize(c).unroll(l).unroll(y);
    for (const Var& one : which) sums.bound_extent(one, 1), chains.bound_extent(one, 1);
    for (size_t i = 0; i < folded.size(); ++i) {
      Func step = folded[i];
      step.compute_at(sums, Var::outermost()).store_in(MemoryType::Register);
      step.bound(c, 0, kLanes).bound_extent(g, i == 0 ? lanes / 2 : lanes / 4);
      step.bound_extent(y, rows).vectorize(c).unroll(g).unroll(y);
      for (const Var& one : which) step.bound_extent(one, 1);
    }
  }

 private:
  Expr lane_at(const Expr& lane) const { return min(p * lanes + lane, b.dim(0).extent() - 1); }
  Expr row_at(const Expr& row) const { return min(t * rows + row, a.dim(1).extent() - 1); }
  Expr term(const Expr& step, const Expr& sum, int asked = 0) const {
    const auto at = [&](const Expr& row) {
      return Expr(b(std::vector<Expr>{lane_at(l), row} + batch));
    };
    const Expr here = at(step), asking = with_late_prefetch(here, at(step + asked));
    const Expr element = asked == 0 ? here : select(y == 0, asking, here);
    return fma_f32(a(std::vector<Expr>{step, row_at(y)} + batch), element, sum);
  }

  // The chains of four lanes at a time are folded into the parts of one vector; the sum of the i-th
  // is at last in its element 4 i.
  std::vector<Func> fold(const Func& chains) {
    const std::vector<std::vector<int>> low = {
        {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23},
        {0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27},
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
    const std::vector<std::vector<int>> high = {
        {8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31},
        {4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31},
        {2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13},
        {1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14}};
    std::vector<Func> steps = {chains};
    for (size_t i = 0; i < low.size(); ++i) {
      const bool joins = i < 2;  // two vectors
      const auto at = [&](const Expr& vector) {
        return Expr(steps.back()(std::vector<Expr>{c, vector, y} + which));
      };
      const Expr first = at(joins ? g * 2 : Expr(g)), second = joins ? at(g * 2 + 1) : first;
      Func step("fold" + std::to_string(i));
      step(std::vector<Expr>{c, g, y} + which) =
          strict_float(take_lanes(first, second, low[i]) + take_lanes(first, second, high[i]));
      steps.push_back(step);
    }
    steps.erase(steps.begin());
    return steps;
  }

  void add_epilogue(Func staged) {
    MatmulEpilogue epilogue(staged, 1, rows, which);
    epilogue.add_bias(has_bias != 0, [&](const Expr& lane, const Expr&, const Expr& row) {
      return bias(lane_at(lane), row_at(row));
    });
    epilogue.add_activations(activation);
    epilogue.add_extra(extra_mode, false, [&](const Expr& lane, const Expr&, const Expr& row) {
      return extra(std::vector<Expr>{lane_at(lane), row_at(row)} + batch);
    });
  }

  const std::vector<Var> which{p, t, z0, z1, z2};
  Var c{"c"}, g{"g"};  // a chain's lane, a vector of several
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulDot, matmul_dot)
