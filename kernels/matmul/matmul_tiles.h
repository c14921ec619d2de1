// C in register tiles of rows x lanes, on CPUs.
#pragma once

#include "kernels/matmul/matmul_choice.h"
#include "kernels/matmul/matmul_kernel.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/shuffle.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// A's rows are contiguous along k; B's rows (or packed panels of them) along the lanes. A tile that
// would pass an edge moves inwards and computes again what its neighbour did, so there are no
// tails: all tiles are whole. Where a matrix is smaller than a tile, rows and lanes repeat the last
// one.
//
// dense_store: the lanes of the output are contiguous, and at least as many as a tile's; otherwise
// the output may have any strides, which also stores a product computed transposed. The bias lies
// along the lanes or, as always if not dense_store, along the rows. `columns` reads A transposed,
// of at least a tile's rows. `plain` has no epilogue but a bias of the rows, stores straight from
// registers and takes at least a tile's rows too, so that a tile's addresses are one and a stride:
// worth its own program where k is small. `layer`: with a bias of the lanes too, a scale of the
// rows and ReLU, as dense layers and convolutions have them. `packs` and `copies` are plain and put
// each panel on their stack as the loop reads it, which saves the launch that would; they add a
// bias of the lanes to what they store from registers, `packs` none of the rows. `packs` takes B
// contiguous along k, whose steps are some blocks of as many as a vector has lanes. `copies` takes
// it contiguous along the lanes and asks for the next panel meanwhile. `chunks`: the sums of a
// group's tiles, of several panels, are on the stack while k passes in chunks, for few rows and a B
// from afar, of which whole rows are then read at a time; for one row, some side by side. But for
// `packs` and `copies` a group may have several panels.
//
// Four steps of k are unrolled so that A's addresses are one pointer per row and constants; with
// 64-bit indices (see manifest.cmake) nothing is left in the loop but loads and fmas.
class MatmulTiles : public MatmulPanels<MatmulTiles> {
 public:
  GeneratorParam<int> rows{"rows", 12};
  GeneratorParam<int> vectors{"vectors", 2};
  GeneratorParam<int> lanes{"lanes", kLanes};  // of a vector
  GeneratorParam<bool> dense_store{"dense_store", true};
  GeneratorParam<bool> plain{"plain", false};
  GeneratorParam<bool> layer{"layer", false};
  GeneratorParam<bool> columns{"columns", false};
  GeneratorParam<bool> packs{"packs", false};
  GeneratorParam<bool> copies{"copies", false};
  GeneratorParam<bool> chunks{"chunks", false};

  void generate() {
    // Algorithm.
    const std::vector<Var> which = {p, t, batch[0], batch[1], batch[2]};
    const std::vector<Expr> at = std::vector<Expr>{l, v, y} + which;
    Func product("product"), staged("staged");
    chunks ? sum_in_chunks(product, at) : sum(product, at);
    std::vector<Expr> values = {product(at)};
    if (keep && dense_store) {
      for (const Expr& value : keep(place_in_c())) values.push_back(value);
    }
    staged(at) = Halide::Tuple(values);
    Func result = plain ? product : staged, lane_bias;
    if (chain) {
      result = chain(staged, {l, v, y, p, t, z0, z1, z2}, place_in_c());
    } else if (plain) {
      Expr sum = product(at);
      if (layer) sum *= scale_of_row();
      if (holds_panel() || layer) {
        lane_bias = bias_of_lanes(vectors, first_lane(p), lanes);
        sum += lane_bias(l, v, p);
      }
      if (!packs) sum += bias_of_row();
      if (layer) sum = with_relu(sum);
      result = Func("with_bias");
      result(at) = sum;
    } else {
      lane_bias = add_epilogue(staged, which);
    }

    const Expr tiles = (out.dim(1).extent() + rows - 1) / rows,
               strip_panels = holds_panel() ? Expr(1) : Expr(panels_per_group);
    // The innermost loop is the one along which the output is likely to be contiguous.
    const Expr extents[] = {dense_store ? lanes : rows, dense_store ? vectors : lanes,
                            dense_store ? rows : vectors};
    RDom r({{0, extents[0]},
            {0, extents[1]},
            {0, extents[2]},
            {0, tiles_per_group},
            {0, strip_panels},
            {0, (panels + strip_panels - 1) / strip_panels},
            {0, (tiles + tiles_per_group - 1) / tiles_per_group}},
           "r");
    const RVar lane = dense_store ? r[0] : r[1], vector = dense_store ? r[1] : r[2];
    const RVar row = dense_store ? r[2] : r[0], tile = r[3], of_strip = r[4], strip = r[5],
               group = r[6];
    const Expr number = group * tiles_per_group + tile, of_all = strip * strip_panels + of_strip,
               panel = first_panel + of_all;
    r.where(number < tiles);
    if (!holds_panel()) r.where(of_all < panels);
    out(std::vector<Expr>{x, y} + batch) = Halide::undef<float>();
    out(std::vector<Expr>{column_of(panel, vector, lane), row_of(number, row)} + batch) =
        result(std::vector<Expr>{lane, vector, row, panel, number} + batch);
    set_layouts();

    // Schedule.
    Halide::Stage store = Func(out).update();
    store.allow_race_conditions();
    store.reorder({r[0], r[1], r[2], tile, of_strip, z1, z2, strip, group, z0});
    if (dense_store) store.vectorize(lane);
    if (plain) store.unroll(vector).unroll(row);
    if (chain && dense_store) store.unroll(vector);  // steps of several vectors side by side
    if (!dense_store) store.unroll(row);
    // Panels follow each other while A's rows of a group stay in the second cache.
    store.gpu_blocks(strip, group, z0).never_partition_all();
    if (holds_panel()) schedule_panel();
    if (lane_bias.defined()) {
      lane_bias.compute_at(out, holds_panel() ? strip : of_strip).store_in(MemoryType::Stack);
    }
    if (chunks) {
      schedule_chunks(product, staged, which);
      staged.compute_at(out, tile);
      return;
    }
    schedule_product(product, which, lanes, vectors, rows);
    std::vector<Halide::VarOrRVar> order = {l, v, y, k.x, k.y};
    if (!holds_panel()) {
      order.emplace_back(k.z);
      first_step.compute_at(product, k.z).store_in(MemoryType::Register);
      for (const Var& one : {i, t, p, z0, z1, z2}) first_step.bound_extent(one, 1);
    }
    order.insert(order.end(), which.begin(), which.end());
    unroll_steps(product.update(0), order);
    product.update(0).unroll(k.x);
    unroll_steps(product.update(1), {l, v, y, rest, p, t, z0, z1, z2});
    if (plain) {
      product.compute_at(out, tile);
      return;
    }
    schedule_staged(product, staged, which, lanes, vectors, rows);
    staged.compute_at(out, tile);
  }

 private:
  // The sums of all of a group's tiles, on the stack, while k passes in chunks.
  void sum_in_chunks(Func product, const std::vector<Expr>& at) {
    const int chunk = static_cast<int>(matmul_chunks(rows, lanes).steps);
    const Expr steps = a.dim(0).extent(), chunks_of_k = steps / chunk;
    k = RDom({{0, chunk}, {0, chunks_of_k}}, "k");
    rest = RDom(0, steps % chunk, "rest");
    product(at) = 0.0f;
    for (const Expr& step : {k.y * chunk + k.x, chunks_of_k * chunk + rest}) {
      const std::vector<Expr> place = {step, 0, row_of(t, y)};
      product(at) = fma_f32(a(place + batch), b_at(step), product(at));
    }
  }

  void schedule_chunks(Func product, Func staged, const std::vector<Var>& which) {
    product.compute_at(out, z1).store_in(MemoryType::Stack).vectorize(l).unroll(v).unroll(y);
    const MatmulChunks most = matmul_chunks(rows, lanes);
    product.bound_storage(t, static_cast<int>(most.tiles))
        .bound_storage(p, static_cast<int>(most.panels))
        .reorder_storage(l, v, y, p, t, z0, z1, z2)
        .bound_extent(l, lanes)
        .bound_extent(v, vectors)
        .bound_extent(y, rows);
    if (is_one_row()) {
      // Within its one tile: compilers load what all steps of a panel read before a loop over
      // tiles.
      unroll_steps(product.update(0), {l, v, y, k.x, p, t, k.y, z0, z1, z2});
      product.update(0).unroll(k.x);
    } else {
      unroll_steps(product.update(0), {l, v, y, k.x, t, p, k.y, z0, z1, z2});
    }
    unroll_steps(product.update(1), {l, v, y, rest, t, p, z0, z1, z2});
    staged.store_in(MemoryType::Stack).vectorize(l).unroll(v).unroll(y);
    bound_tile(staged, which, lanes, vectors, rows);
  }

  void sum(Func product, const std::vector<Expr>& at) {
    const auto place = [&](const Expr& step) {
      return plain ? std::vector<Expr>{step, y, first_row(t)}
                   : std::vector<Expr>{step, 0, row_of(t, y)};
    };
    const Expr zero = ask ? ask(0.0f, place_in_c()) : Expr(0.0f);
    if (!holds_panel()) return sum_asking(product, at, place, zero);
    packs ? pack_panel() : copy_panel();
    sum_over_k(product, at, place, [&](const Expr& step) {
      return Expr(packed(std::vector<Expr>{l, v, step, p} + batch));
    });
  }

  // The chain over k in blocks of steps. A group that has several panels comes from one to the
  // next, whose rows are asked for meanwhile: before each block a tile asks for its share of the
  // block's steps, all of them where a panel has four tiles or fewer; of more panels than
  // kMatmulStripPanels nothing, as their rows are long runs. (In the loop over k itself requests
  // make sums spill.)
  template <class Place>
  void sum_asking(Func product, const std::vector<Expr>& at, const Place& place, const Expr& zero) {
    constexpr int kTurns = 8, kBlock = kTurns * kUnrolledSteps, kSharing = 4;
    const int most = static_cast<int>(kMatmulStripPanels);
    const Expr steps = a.dim(0).extent(), turns = steps / kUnrolledSteps;
    k = RDom({{0, kUnrolledSteps}, {0, kTurns}, {0, (turns + kTurns - 1) / kTurns}}, "k");
    k.where(k.z * kTurns + k.y < turns);
    rest = RDom(0, steps % kUnrolledSteps, "rest");
    const Expr of_block = min(steps, kBlock), sharing = clamp(tiles_per_group, 1, kSharing),
               of_tile = (of_block + sharing - 1) / sharing,
               share = select(panels_per_group > 1 && panels_per_group <= most, of_tile, 0),
               first = t % tiles_per_group * share;
    RDom asked(0, share, "asked");
    asked.where(first + asked < of_block);
    const Expr next_step = min(i * kBlock + first + asked, steps - 1);
    first_step(std::vector<Var>{i, t, p, z0, z1, z2}) = i * kBlock;
    const auto block = [&](const Expr& number) {
      return first_step(std::vector<Expr>{number, t, p} + batch);
    };
    Expr with_requests = block(i);
    for (int vector = 0; vector < int{vectors}; ++vector) {
      with_requests = with_late_prefetch(
          with_requests,
          b(std::vector<Expr>{lanes - 1, vector, first_of_next_panel(), next_step} + batch));
    }
    first_step(std::vector<Expr>{i, t, p} + batch) = with_requests;
    product(at) = zero;
    // The remainder says that steps do not overflow: else compilers multiply their number by B's
    // pitch instead of adding it, and sums spill.
    const Expr step = block(k.z) % (1 << 30) + k.y * kUnrolledSteps + k.x;
    for (const Expr& one : {step, turns * kUnrolledSteps + rest}) {
      product(at) = fma_f32(a(place(one) + batch), b_at(one), product(at));
    }
  }

  // packed[vector][k][lane] of a panel, by blocks of as many steps as a vector has lanes.
  void pack_panel() {
    const std::vector<Var> one_block = {v, ko, p, z0, z1, z2};
    Func block("block");
    block(std::vector<Expr>{l, ki} + one_block) =
        b(std::vector<Expr>{ki, v, first_of_panel(), ko * lanes + l} + batch);
    blocks = transpose_block(block, lanes, sizeof(float), l, ki, one_block);
    packed(std::vector<Expr>{l, v, xi, p} + batch) =
        blocks.back()(std::vector<Expr>{l, xi % lanes, v, xi / lanes, p} + batch);
  }

  // packed[k][vector][lane] of a panel whose rows lie so already, but far apart. Asks for the next
  // one's by its last lanes: where rows begin within cache lines this one has the first of them.
  void copy_panel() {
    const auto element = [&](const Expr& first) {
      return b(std::vector<Expr>{l, v, first, xi} + batch);
    };
    packed(std::vector<Var>{l, v, xi, p, z0, z1, z2}) =
        with_prefetch(element(first_of_panel()), element(first_of_next_panel() + (lanes - 1)));
  }

  void schedule_panel() {
    const Expr steps = a.dim(0).extent();
    packed.compute_at(out, z1).store_in(MemoryType::Stack).never_partition_all();
    packed.reorder_storage(l, copies ? v : xi, copies ? xi : v, p, z0, z1, z2)
        .bound_storage(xi, static_cast<int>(copies ? kMatmulCopiedSteps : kMatmulPackedSteps))
        .bound_extent(l, lanes)
        .bound(v, 0, vectors)
        .bound(xi, 0, copies ? steps : steps / lanes * lanes);
    for (const Var& one : {p, z0, z1, z2}) packed.bound_extent(one, 1);
    if (copies) {
      packed.reorder(l, v, xi).vectorize(l).unroll(v);
      return;
    }
    packed.split(xi, ko, ki, lanes).reorder(l, ki, ko, v).vectorize(l).unroll(ki);
    for (Func step : blocks) {
      step.compute_at(packed, ko).store_in(MemoryType::Register).vectorize(l).unroll(ki);
      step.bound_extent(l, lanes).bound_extent(ki, lanes);
      for (const Var& one : {v, ko, p, z0, z1, z2}) step.bound_extent(one, 1);
    }
  }

  bool holds_panel() const { return packs || copies; }
  bool is_one_row() const { return rows == 1; }
  // What can be added without a change where the bias does not lie along the rows.
  Expr bias_of_row() const {
    const Expr has_bias = is_bias(MatmulBias::kRows);
    return select(has_bias, bias(select(has_bias, row_of(t, y), 0)), -0.0f);
  }

  // Before a bias: its shift.
  Expr scale_of_row() {
    const Expr has_scale = extra_mode == static_cast<int>(MatmulExtra::kScale),
               row = select(has_scale, row_of(t, y), 0);
    return select(has_scale, extra(std::vector<Expr>{0, row} + batch), 1.0f);
  }
  // Two instructions a vector, wanted or not. Halide takes 0.0f for the -0.0f of a bias.
  Expr with_relu(const Expr& sum) const {
    const Expr zero = cast<float>(min(activation, 0)),
               least = select(activation == activation_number("relu"), zero, Float(32).min());
    return select(le(sum, least), least, sum);
  }

  Expr first_row(const Expr& number) const {
    const Expr first = min(number * rows, out.dim(1).extent() - rows);
    return plain ? first : max(first, 0);
  }
  Expr row_of(const Expr& number, const Expr& row) const {
    return plain ? first_row(number) + row : min(first_row(number) + row, out.dim(1).extent() - 1);
  }
  Expr first_lane(const Expr& panel) const {
    const int width = int{vectors} * lanes;
    return max(min(panel * width, out.dim(0).extent() - width), 0);
  }

  Expr column_of(const Expr& panel, const Expr& vector, const Expr& lane) const {
    const Expr column = first_lane(panel) + vector * lanes + lane;
    return dense_store ? column : min(column, out.dim(0).extent() - 1);
  }

  std::vector<Expr> place_in_c() const {
    return std::vector<Expr>{column_of(p, v, l), row_of(t, y)} + batch;
  }

  void set_layouts() {
    set_panel_layouts(vectors, lanes);
    if (packs) {
      b.dim(0).set_stride(Expr());
      b.dim(1).set_stride(Expr());
      b.dim(2).set_stride(Expr());
      b.dim(3).set_stride(1).set_extent(b.dim(3).extent() / lanes * lanes);
    }
    if (plain) a.dim(1).set_extent(rows);
    if (columns) {
      a.dim(1).set_stride(1);
      a.dim(2).set_stride(1);
    } else {
      a.dim(0).set_stride(1);
    }
    if (!dense_store) return;
    extra.dim(0).set_stride(layer ? 0 : 1);
    out.dim(0).set_stride(1);
  }

  // Appends the stages to `staged`; returns what holds the bias of a panel, if anything does.
  Func add_epilogue(Func staged, const std::vector<Var>& which) {
    MatmulEpilogue epilogue(staged, vectors, rows, which);
    const auto extra_at = [&](const Expr& lane, const Expr& vector, const Expr& row) {
      return extra(std::vector<Expr>{column_of(p, vector, lane), row_of(t, row)} + batch);
    };
    epilogue.add_bias(is_bias(MatmulBias::kRows), [&](const Expr&, const Expr&, const Expr& row) {
      return bias(row_of(t, row));
    });
    Func lane_bias;
    if (dense_store) lane_bias = add_lane_bias(epilogue, vectors, first_lane(p), lanes);
    epilogue.add_activations(activation);
    epilogue.add_extra(extra_mode, dense_store, extra_at);
    return lane_bias;
  }

  Func packed{"packed"}, first_step{"first_step"};  // of a block
  Var i{"i"};
  std::vector<Func> blocks;
  Var ko{"ko"}, ki{"ki"};
};

}  // namespace ballast::kernels
