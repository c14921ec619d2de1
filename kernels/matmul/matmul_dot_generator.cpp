// A matrix times a vector along whose k both are contiguous: an element is a sum of 16 fma chains,
// one per lane, over k in steps of 16, then of one over what is left. Nothing is transposed, so the
// matrix streams through once.
#include "kernels/matmul/matmul_kernel.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

class MatmulDot : public MatmulKernel<MatmulDot> {
 public:
  GeneratorParam<int> rows{"rows", 8};  // of the matrix, in registers at a time

  Input<Buffer<float, 5>> a{"a"};        // [1][k]: the vector
  Input<Buffer<float, 5>> b{"b"};        // [k][lane]: the matrix
  Input<Buffer<float, 1>> bias{"bias"};  // along the matrix's rows, or one number
  Input<Buffer<float, 5>> extra{"extra"};
  Input<int> has_bias{"has_bias"};
  Input<int> activation{"activation"};
  Input<int> extra_mode{"extra_mode"};
  Output<Buffer<float, 5>> out{"out"};  // [1][lane]

  void generate() {
    // Algorithm. Rows beyond the edge repeat the last one and are not stored.
    const std::vector<Var> which = {p, z0, z1, z2};
    const Expr last = b.dim(0).extent() - 1, whole = a.dim(0).extent() / kLanes * kLanes;
    const auto term = [&](const Expr& row, const Expr& step, const Expr& sum) {
      return fused_multiply_add(a(std::vector<Expr>{step, 0} + batch),
                                b(std::vector<Expr>{min(p * rows + row, last), step} + batch), sum);
    };
    const RDom k(0, whole / kLanes, "k"), lane(0, kLanes, "lane");
    const RDom rest(0, a.dim(0).extent() - whole, "rest");
    Func lanes("lanes"), sums("sums"), staged("staged");
    const std::vector<Expr> lanes_at = std::vector<Expr>{l, y} + which;
    lanes(lanes_at) = 0.0f;
    lanes(lanes_at) = term(y, k * kLanes + l, lanes(lanes_at));
    const std::vector<Expr> at = std::vector<Expr>{y} + which;
    sums(at) = 0.0f;
    sums(at) += lanes(std::vector<Expr>{lane, y} + which);
    sums(at) = term(y, whole + rest, sums(at));
    // The epilogue's tile has the matrix's rows for its lanes.
    const std::vector<Expr> staged_at = std::vector<Expr>{l, v, y} + which;
    staged(staged_at) = sums(std::vector<Expr>{l} + which);
    MatmulEpilogue epilogue(staged, rows, 1, 1, which);
    const auto row_of = [&](const Expr& row) { return min(p * rows + row, last); };
    epilogue.add_bias(has_bias, [&](const Expr& row, const Expr&, const Expr&) {
      return bias(min(row_of(row), bias.dim(0).extent() - 1));
    });
    epilogue.add_activations(activation);
    epilogue.add_extra(extra_mode, false, [&](const Expr& row, const Expr&, const Expr&) {
      return extra(std::vector<Expr>{row_of(row), 0} + batch);
    });
    out(std::vector<Expr>{x, y} + batch) =
        staged(std::vector<Expr>{x % rows, 0, 0, x / rows} + batch);
    for (auto* tensor : {&a, &b, &extra}) set_any_layout(*tensor);
    a.dim(0).set_stride(1);
    b.dim(1).set_stride(1);
    set_any_layout(out);
    out.dim(1).set_extent(1);
    bias.dim(0).set_min(0);

    // Schedule: a work-item per block of rows.
    Func store = out;
    store.split(x, xo, xi, rows, TailStrategy::GuardWithIf)
        .reorder(xi, y, z1, z2, xo, z0)
        .gpu_blocks(xo, z0)
        .never_partition_all();
    staged.compute_at(store, y).store_in(MemoryType::Stack).vectorize(l);
    staged.bound_extent(l, rows).bound_extent(v, 1).bound_extent(y, 1);
    sums.compute_at(staged, Var::outermost()).store_in(MemoryType::Stack);
    sums.bound_extent(y, rows).unroll(y);
    sums.update(0).reorder({y, lane, p, z0, z1, z2}).unroll(y).unroll(lane);
    sums.update(1).reorder({y, rest, p, z0, z1, z2}).unroll(y);
    lanes.compute_at(sums, Var::outermost()).store_in(MemoryType::Register);
    lanes.bound_extent(l, kLanes).bound_extent(y, rows).vectorize(l).unroll(y);
    lanes.update().reorder({l, y, k, p, z0, z1, z2}).vectorize(l).unroll(y);
    for (Func f : {lanes, sums, staged}) {
      for (const Var& one : which) f.bound_extent(one, 1);
    }
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulDot, matmul_dot)
