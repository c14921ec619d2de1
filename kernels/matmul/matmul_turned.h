// C in tiles of 16 rows x 16 `vectors` lanes, stored along the rows: for a product computed
// transposed, whose lanes are C's rows. Layers of weights [out, in] at a batch of some dozens are
// such products: the batch is packed and the weights are read where they lie.
//
// Parts of `held_rows`, each in registers over the whole of k, meet on the stack, where the
// epilogue works on them; then shuffles turn blocks of 16 x 16, so that C is written in whole
// lines. In C, on the shapes of a batch of 64, such a tile took 0.9 of the time of 6 x 64 stored
// element by element, and 1.03 of that without any stores.
//
// Sums are those of matmul_tiles, bit for bit.
#pragma once

#include "kernels/matmul/matmul_kernel.h"
#include "kernels/shuffle.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// `out` has at least 16 contiguous rows; the bias lies along them.
class MatmulTurned : public MatmulPanels<MatmulTurned> {
 public:
  GeneratorParam<int> held_rows{"held_rows", 8};
  GeneratorParam<int> vectors{"vectors", 2};

  void generate() {
    // Algorithm.
    const std::vector<Var> which = {p, t, batch[0], batch[1], batch[2]};
    const std::vector<Expr> at = std::vector<Expr>{l, v, y, part} + which;
    Func product("product"), staged("staged"), block("block");
    sum_over_k(product, at, [&](const Expr& step) {
      return std::vector<Expr>{step, 0, first_row(t) + part * held_rows + y};
    });
    staged(std::vector<Expr>{l, v, y} + which) =
        product(std::vector<Expr>{l, v, y % held_rows, y / held_rows} + which);
    if (!chain) add_epilogue(staged, which);
    const std::vector<Var> one_block = {v, p, t, z0, z1, z2};
    block(std::vector<Expr>{l, y} + one_block) = staged(std::vector<Expr>{l, v, y} + which);
    const std::vector<Func> turned = transpose_block(block, kLanes, sizeof(float), l, y, one_block);

    Func result = turned.back();
    if (chain) {
      result = chain(result, {l, y, v, p, t, z0, z1, z2},
                     std::vector<Expr>{column_of(p, v, y), first_row(t) + l} + batch);
    }

    const Expr tiles = (out.dim(1).extent() + kRows - 1) / kRows;
    RDom r({{0, kRows},
            {0, kLanes},
            {0, vectors},
            {0, tiles_per_group},
            {first_panel, panels},
            {0, (tiles + tiles_per_group - 1) / tiles_per_group}},
           "r");
    const RVar row = r[0], lane = r[1], vector = r[2], tile = r[3], panel = r[4], group = r[5];
    const Expr number = group * tiles_per_group + tile;
    r.where(number < tiles);
    out(std::vector<Expr>{x, y} + batch) = Halide::undef<float>();
    out(std::vector<Expr>{column_of(panel, vector, lane), first_row(number) + row} + batch) =
        result(std::vector<Expr>{row, lane, vector, panel, number} + batch);
    set_layouts();

    // Schedule.
    Halide::Stage store = Func(out).update();
    store.allow_race_conditions();
    store.reorder({row, lane, vector, tile, z1, z2, panel, group, z0});
    store.vectorize(row).unroll(lane);
    store.gpu_blocks(panel, group, z0).never_partition_all();
    std::vector<Var> of_product = which;
    of_product.push_back(part);
    schedule_product(product, of_product, kLanes, vectors, held_rows);
    unroll_steps(product.update(0), {l, v, y, k.x, k.y, part, p, t, z0, z1, z2});
    product.update(0).unroll(k.x);
    unroll_steps(product.update(1), {l, v, y, rest, part, p, t, z0, z1, z2});
    staged.split(y, yo, yi, held_rows).reorder(l, v, yi, yo).unroll(yi);
    staged.store_in(MemoryType::Stack).vectorize(l).unroll(v).compute_at(out, tile);
    bound_tile(staged, which, kLanes, vectors, kRows);
    product.compute_at(staged, yo);
    for (Func step : turned) {
      step.compute_at(out, vector).store_in(MemoryType::Register).vectorize(l).unroll(y);
      step.bound_extent(l, kLanes).bound_extent(y, kLanes);
      for (const Var& one : one_block) step.bound_extent(one, 1);
    }
  }

 private:
  static constexpr int kRows = 16;

  Expr first_row(const Expr& number) const {
    return min(number * kRows, out.dim(1).extent() - kRows);
  }
  // Where the lanes are fewer than a tile's, the last one is computed and stored again.
  Expr column_of(const Expr& panel, const Expr& vector, const Expr& lane) const {
    const Expr last = out.dim(0).extent() - 1;
    const int width = vectors * kLanes;
    const Expr first = max(min(panel * width, last + 1 - width), 0);
    return min(first + vector * kLanes + lane, last);
  }

  void add_epilogue(Func staged, const std::vector<Var>& which) {
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

  Var part{"part"};
};

}  // namespace ballast::kernels
