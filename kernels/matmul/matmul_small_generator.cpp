// Many small products whose results are narrower than a vector of 16: in tiles of 4 rows and one
// shorter vector of B where it lies, of which the last ones of a row overlap. A work-group computes
// some whole products, one after the other.
#include "kernels/matmul/matmul_kernel.h"

#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

class MatmulSmall : public MatmulKernel<MatmulSmall> {
 public:
  GeneratorParam<int> lanes{"lanes", 8};

  Input<Buffer<float, 5>> a{"a"};        // [row][k]
  Input<Buffer<float, 5>> b{"b"};        // [k][lane], lanes dense, a vector of them at least
  Input<Buffer<float, 2>> bias{"bias"};  // [row][lane], repeated along one of them
  Input<Buffer<float, 5>> extra{"extra"};
  Input<int> products_per_group{"products_per_group"};
  Input<int> has_bias{"has_bias"};
  Input<int> activation{"activation"};
  Input<int> extra_mode{"extra_mode"};
  Output<Buffer<float, 5>> out{"out"};  // [row][lane]

  void generate() {
    // Algorithm. Rows beyond the last repeat it and are not stored.
    const std::vector<Var> which = {p, t, z0, z1, z2};
    const std::vector<Expr> at = std::vector<Expr>{l, v, y} + which;
    const Expr last = out.dim(0).extent() - lanes;
    const auto first = [&](const Expr& panel) { return min(panel * lanes, last); };
    const auto row = [&](const Expr& r) { return min(t * kRows + r, out.dim(1).extent() - 1); };
    const RDom k(0, a.dim(0).extent(), "k");
    Func product("product"), staged("staged");
    product(at) = 0.0f;
    product(at) = fma_f32(a(std::vector<Expr>{k, row(y)} + batch),
                          b(std::vector<Expr>{first(p) + l, k} + batch), product(at));
    staged(at) = product(at);
    MatmulEpilogue epilogue(staged, 1, kRows, which);
    epilogue.add_bias(has_bias != 0, [&](const Expr& lane, const Expr&, const Expr& r) {
      return bias(first(p) + lane, row(r));
    });
    epilogue.add_activations(activation);
    epilogue.add_extra(extra_mode, false, [&](const Expr& lane, const Expr&, const Expr& r) {
      return extra(std::vector<Expr>{first(p) + lane, row(r)} + batch);
    });
    const Expr panel = x / lanes, lane = unsafe_promise_clamped(x - first(panel), 0, lanes - 1);
    out(std::vector<Expr>{x, y} + batch) =
        staged(std::vector<Expr>{lane, 0, y % kRows, panel, y / kRows} + batch);
    for (auto* tensor : {&a, &b, &extra}) set_any_layout(*tensor);
    b.dim(0).set_stride(1);
    set_any_layout(bias);
    set_any_layout(out);

    // Schedule.
    Var group("group");
    Func store = out;
    store.tile(x, y, xo, yo, xi, yi, lanes, kRows, TailStrategy::GuardWithIf)
        .split(z0, group, z0, products_per_group, TailStrategy::GuardWithIf)
        .reorder(xi, yi, yo, xo, z1, z2, z0, group)
        .gpu_blocks(group)
        .never_partition_all();
    schedule_product(product, which, lanes, 1, kRows);
    unroll_steps(product.update(), {l, v, y, k, p, t, z0, z1, z2});
    schedule_staged(product, staged, which, lanes, 1, kRows);
    staged.compute_at(store, yo);
    staged.bound(l, 0, lanes);
  }

 private:
  static constexpr int kRows = 4;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulSmall, matmul_small)
