// What the generators of matmul kernels share.
#pragma once

#include "kernels/matmul/matmul_epilogue.h"

#include <string>
#include <vector>

namespace ballast::kernels {

inline Halide::Expr fused_multiply_add(const Halide::Expr& a, const Halide::Expr& b,
                                       const Halide::Expr& c) {
  return Halide::Internal::Call::make(Halide::Float(32), "fma", {a, b, c},
                                      Halide::Internal::Call::PureExtern);
}

inline std::vector<Halide::Expr> operator+(std::vector<Halide::Expr> head,
                                           const std::vector<Halide::Var>& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

template <class Tensor>
void set_any_layout(Tensor& tensor) {
  for (int d = 0; d < tensor.dimensions(); ++d) tensor.dim(d).set_min(0);
  tensor.dim(0).set_stride(Halide::Expr());
}

// What both kernels share: operands and the run-time choice of the epilogue. `extra` has C's
// layout; operands that the epilogue does not use may be anything.
template <class Derived>
class MatmulKernel : public Halide::Generator<Derived> {
 public:
  Halide::GeneratorParam<std::string> device_class{"device_class", "cpu"};

 protected:
  Halide::Var l{"l"}, v{"v"}, x{"x"}, y{"y"}, p{"p"}, t{"t"};
  Halide::Var xo{"xo"}, xi{"xi"}, xv{"xv"}, yo{"yo"}, yi{"yi"}, group{"group"}, tile{"tile"};
  // A work-item loops over the second and third dimension of the batch.
  Halide::Var z0{"z0"}, z1{"z1"}, z2{"z2"};
  std::vector<Halide::Var> batch{z0, z1, z2};

  // The accumulators of a tile stay in registers over the whole of k.
  void schedule_product(Halide::Func product, const std::vector<Halide::Var>& which, int lanes,
                        int vectors, int rows) {
    product.store_in(Halide::MemoryType::Register).vectorize(l).unroll(v).unroll(y);
    bound_tile(product, which, lanes, vectors, rows);
  }
  void unroll_steps(Halide::Stage update, const std::vector<Halide::VarOrRVar>& order) {
    update.reorder(order).vectorize(l).unroll(v).unroll(y);
  }

  // Then they go through the stack, where loops instead of unrolled code apply the epilogue.
  void schedule_staged(Halide::Func product, Halide::Func staged,
                       const std::vector<Halide::Var>& which, int lanes, int vectors, int rows) {
    product.compute_at(staged, Halide::Var::outermost());
    staged.store_in(Halide::MemoryType::Stack).vectorize(l).unroll(v).unroll(y);
    bound_tile(staged, which, lanes, vectors, rows);
  }

  void bound_tile(Halide::Func f, const std::vector<Halide::Var>& which, int lanes, int vectors,
                  int rows) {
    f.bound_extent(l, lanes).bound_extent(v, vectors).bound_extent(y, rows);
    for (const Halide::Var& one : which) f.bound_extent(one, 1);
  }
};

}  // namespace ballast::kernels
