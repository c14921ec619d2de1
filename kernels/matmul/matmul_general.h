// C of any strides: a work-item per small tile. Of integers too, which wrap and have no epilogue.
#pragma once

#include "kernels/matmul/matmul_kernel.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// The bias is given C's dimensions, repeated along the rows by a stride of 0.
class MatmulGeneral : public MatmulKernel<MatmulGeneral> {
 public:
  Halide::GeneratorParam<std::string> dtype{"dtype", "f32"};

  Input<Buffer<>> a{"a", 5};  // [row][k]
  Input<Buffer<>> b{"b", 5};  // [k][x]
  Input<Buffer<float, 2>> bias{"bias"};
  Input<Buffer<float, 5>> extra{"extra"};
  Input<int> has_bias{"has_bias"};
  Input<int> activation{"activation"};
  Input<int> extra_mode{"extra_mode"};
  Output<Buffer<>> out{"out", 5};

  void configure() {
    a.set_type(type());
    b.set_type(type());
    out.set_type(type());
  }

  void generate() {
    // Algorithm. Elements beyond the edges repeat the last ones and are not stored.
    const bool is_gpu = device_class.value() == "gpu";
    const int lanes = is_gpu ? 4 : kLanes, rows = 4;
    const std::vector<Var> which = {p, t, batch[0], batch[1], batch[2]};
    const std::vector<Expr> at = std::vector<Expr>{l, v, y} + which;
    const auto column = [&](const Expr& lane) {
      return min(p * lanes + lane, out.dim(0).extent() - 1);
    };
    const auto row = [&](const Expr& r) { return min(t * rows + r, out.dim(1).extent() - 1); };
    RDom k(0, a.dim(0).extent(), "k");
    Func product("product"), staged("staged");
    product(at) = Halide::Internal::make_zero(type());
    product(at) = sum_with(product(at), a(std::vector<Expr>{k, row(y)} + batch),
                           b(std::vector<Expr>{column(l), k} + batch));
    staged(at) = product(at);
    Func result = staged;
    if (chain) {
      result =
          chain(staged, {l, v, y, p, t, z0, z1, z2}, std::vector<Expr>{column(l), row(y)} + batch);
    } else if (type().is_float()) {
      MatmulEpilogue epilogue(staged, 1, rows, which);
      epilogue.add_bias(has_bias != 0, [&](const Expr& lane, const Expr&, const Expr& r) {
        return bias(column(lane), row(r));
      });
      epilogue.add_activations(activation);
      epilogue.add_extra(extra_mode, false, [&](const Expr& lane, const Expr&, const Expr& r) {
        return extra(std::vector<Expr>{column(lane), row(r)} + batch);
      });
    }
    out(std::vector<Expr>{x, y} + batch) =
        result(std::vector<Expr>{x % lanes, 0, y % rows, x / lanes, y / rows} + batch);
    set_any_layout(a, b, bias, extra, out);

    // Schedule: a work-item per tile. On a GPU 16 x 16 of them make a group.
    Func store = out;
    if (is_gpu) {
      constexpr int kThreads = 16;
      Var xt("xt"), yt("yt");
      store.tile(x, y, xo, yo, xi, yi, kThreads * lanes, kThreads * rows, TailStrategy::GuardWithIf)
          .tile(xi, yi, xt, yt, xi, yi, lanes, rows)
          .reorder(xi, yi, z1, z2, xt, yt, xo, yo, z0)
          .gpu_blocks(xo, yo, z0)
          .gpu_threads(xt, yt);
    } else {
      store.tile(x, y, xo, yo, xi, yi, lanes, rows, TailStrategy::GuardWithIf)
          .reorder(xi, yi, z1, z2, xo, yo, z0)
          .gpu_blocks(xo, yo, z0);
    }
    store.never_partition_all();
    schedule_product(product, which, lanes, 1, rows);
    unroll_steps(product.update(), {l, v, y, k, p, t, z0, z1, z2});
    schedule_staged(product, staged, which, lanes, 1, rows);
    staged.compute_at(store, z1);
  }

 private:
  Type type() const { return storage_type(dtype_named(dtype)); }
  Expr sum_with(const Expr& sum, const Expr& left, const Expr& right) const {
    return type().is_float() ? fma_f32(left, right, sum)
                             : wrapped_add(sum, wrapped_mul(left, right));
  }
};

}  // namespace ballast::kernels
