// What the kernels share whose tiles meet on the stack: 16 rows, in parts of `held_rows` that are
// each in registers over the whole of k. Sums are those of matmul_tiles, bit for bit.
#pragma once

#include "kernels/matmul/matmul_kernel.h"

#include <string>
#include <vector>

namespace ballast::kernels {

template <class Derived>
class MatmulParts : public MatmulPanels<Derived> {
 public:
  Halide::GeneratorParam<int> held_rows{"held_rows", 8};
  Halide::GeneratorParam<int> vectors{"vectors", 2};

 protected:
  using MatmulPanels<Derived>::l;
  using MatmulPanels<Derived>::v;
  using MatmulPanels<Derived>::y;
  using MatmulPanels<Derived>::p;
  using MatmulPanels<Derived>::t;
  using MatmulPanels<Derived>::z0;
  using MatmulPanels<Derived>::z1;
  using MatmulPanels<Derived>::z2;
  using MatmulPanels<Derived>::yo;
  using MatmulPanels<Derived>::yi;
  using MatmulPanels<Derived>::out;
  using MatmulPanels<Derived>::k;
  using MatmulPanels<Derived>::rest;
  using typename MatmulPanels<Derived>::LastSteps;
  using Expr = Halide::Expr;
  static constexpr int kRows = 16;

  // A tile would pass the last row: it moves inwards.
  Expr first_row(const Expr& tile) const {
    return Halide::min(tile * kRows, out.dim(1).extent() - kRows);
  }

  // Defines `staged`. place(step, row): of A's element, without the batch; b_at(step, row): B's.
  template <class Place, class Element>
  void sum_parts(const Place& place, const Element& b_at, int unrolled,
                 const LastSteps& last = {}) {
    const Expr row = part * held_rows + y;
    this->sum_over_k(
        product, std::vector<Expr>{l, v, y, part} + which,
        [&](const Expr& step) { return place(step, row); },
        [&](const Expr& step) { return b_at(step, row); }, unrolled, 0.0f, last);
    staged(std::vector<Expr>{l, v, y} + which) =
        product(std::vector<Expr>{l, v, y % held_rows, y / held_rows} + which);
  }

  // The loops over C: three within a tile, then over tiles, panels and groups.
  void loop_over(const Expr& first, const Expr& second, const Expr& third) {
    const Expr tiles = (out.dim(1).extent() + kRows - 1) / kRows, in_group = this->tiles_per_group;
    r = Halide::RDom({{0, first},
                      {0, second},
                      {0, third},
                      {0, in_group},
                      {this->first_panel, this->panels},
                      {0, (tiles + in_group - 1) / in_group}},
                     "r");
    number = r[5] * in_group + r[3];
    r.where(number < tiles);
  }

  // Of `out`, whose update is over these loops.
  Halide::Stage schedule_parts() {
    Halide::Stage store = Halide::Func(out).update();
    store.allow_race_conditions();
    store.reorder({r[0], r[1], r[2], r[3], z1, z2, r[4], r[5], z0});
    store.vectorize(r[0]).gpu_blocks(r[4], r[5], z0).never_partition_all();
    std::vector<Halide::Var> of_product = which;
    of_product.push_back(part);
    this->schedule_product(product, of_product, kLanes, vectors, held_rows);
    this->unroll_steps(product.update(0), {l, v, y, k.x, k.y, part, p, t, z0, z1, z2});
    product.update(0).unroll(k.x);
    this->unroll_steps(product.update(1), {l, v, y, rest, part, p, t, z0, z1, z2});
    staged.split(y, yo, yi, held_rows).reorder(l, v, yi, yo).unroll(yi);
    staged.store_in(Halide::MemoryType::Stack).vectorize(l).unroll(v).compute_at(out, r[3]);
    this->bound_tile(staged, which, kLanes, vectors, kRows);
    product.compute_at(staged, yo);
    return store;
  }

  const std::vector<Halide::Var> which{p, t, z0, z1, z2};
  Halide::Func product{"product"}, staged{"staged"};
  Halide::RDom r;
  Expr number;  // of a tile
  Halide::Var part{"part"};
};

}  // namespace ballast::kernels
