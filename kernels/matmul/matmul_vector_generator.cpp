// A matrix times a vector where the matrix is contiguous along k: x B' or A x. The lanes are the
// matrix's rows; blocks of 16 x 16 are transposed in registers on the way, so that the matrix is
// read once and an element stays the one chain over k that all matmul kernels promise.
#include "kernels/matmul/matmul_kernel.h"
#include "kernels/recipe/shuffle.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

class MatmulVector : public MatmulKernel<MatmulVector> {
 public:
  GeneratorParam<int> vectors{"vectors", 4};

  Input<Buffer<float, 5>> a{"a"};        // [1][k]: the vector
  Input<Buffer<float, 5>> b{"b"};        // [k][lane]: the matrix, k contiguous
  Input<Buffer<float, 1>> bias{"bias"};  // along the lanes
  Input<Buffer<float, 5>> extra{"extra"};
  Input<int> has_bias{"has_bias"};
  Input<int> activation{"activation"};
  Input<int> extra_mode{"extra_mode"};
  Output<Buffer<float, 5>> out{"out"};  // [1][lane]

  void generate() {
    // Algorithm. Lanes beyond the edge repeat the last one and are not stored.
    const int width = vectors * kLanes;
    const std::vector<Var> which = {p, t, z0, z1, z2};
    const std::vector<Expr> at = std::vector<Expr>{l, v, y} + which;
    const Expr last = b.dim(0).extent() - 1, k = a.dim(0).extent(), whole = k / kLanes;
    const auto matrix = [&](const Expr& lane, const Expr& step) {
      return b(std::vector<Expr>{min(p * width + lane, last), step} + batch);
    };
    Func block("block"), product("product"), staged("staged");
    block(l, r, v, kb, p, z0, z1, z2) = matrix(v * kLanes + r, kb * kLanes + l);
    const std::vector<Func> steps =
        transpose_block(block, kLanes, sizeof(float), l, r, {v, kb, p, z0, z1, z2});
    const RDom ks({{0, kLanes}, {0, whole}}, "k"), rest(0, k % kLanes, "rest");
    product(at) = 0.0f;
    product(at) = fma_f32(a(std::vector<Expr>{ks.y * kLanes + ks.x, 0} + batch),
                          steps.back()(l, ks.x, v, ks.y, p, z0, z1, z2), product(at));
    const Expr step = whole * kLanes + rest;
    product(at) =
        fma_f32(a(std::vector<Expr>{step, 0} + batch), matrix(v * kLanes + l, step), product(at));
    staged(at) = product(at);
    MatmulEpilogue epilogue(staged, vectors, 1, which);
    const auto lane_of = [&](const Expr& lane, const Expr& vector) {
      return min(p * width + vector * kLanes + lane, last);
    };
    epilogue.add_bias(has_bias != 0, [&](const Expr& lane, const Expr& vector, const Expr&) {
      return bias(min(lane_of(lane, vector), bias.dim(0).extent() - 1));
    });
    epilogue.add_activations(activation);
    epilogue.add_extra(extra_mode, false, [&](const Expr& lane, const Expr& vector, const Expr&) {
      return extra(std::vector<Expr>{lane_of(lane, vector), 0} + batch);
    });
    out(std::vector<Expr>{x, y} + batch) =
        staged(std::vector<Expr>{x % kLanes, x / kLanes % vectors, 0, x / width, y} + batch);
    for (auto* tensor : {&a, &b, &extra}) set_any_layout(*tensor);
    b.dim(1).set_stride(1);
    set_any_layout(out);
    out.dim(1).set_extent(1);
    bias.dim(0).set_min(0);

    // Schedule: a work-item per panel.
    Func store = out;
    store.split(x, xo, xi, width, TailStrategy::GuardWithIf)
        .reorder(xi, y, z1, z2, xo, z0)
        .gpu_blocks(xo, z0)
        .never_partition_all();
    staged.compute_at(store, y);
    schedule_staged(product, staged, which, kLanes, vectors, 1);
    product.store_in(MemoryType::Register).vectorize(l).unroll(v).unroll(y);
    bound_tile(product, which, kLanes, vectors, 1);
    product.update(0).reorder({l, ks.x, v, y, ks.y, p, t, z0, z1, z2});
    product.update(0).vectorize(l).unroll(ks.x).unroll(v).unroll(y);
    product.update(1).reorder({l, v, y, rest, p, t, z0, z1, z2});
    product.update(1).vectorize(l).unroll(v).unroll(y);
    for (Func f : steps) {
      f.compute_at(product, v).store_in(MemoryType::Register).vectorize(l).unroll(r);
      f.bound_extent(l, kLanes).bound_extent(r, kLanes);
      for (const Var& one : {v, kb, p, z0, z1, z2}) f.bound_extent(one, 1);
    }
  }

 private:
  Var r{"r"}, kb{"kb"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulVector, matmul_vector)
