// C = epilogue(A B) in f32, one or many products at once, in two kernels:
//
//   matmul_tiles    CPUs: one work-item computes register tiles of rows x lanes. A is only read as
//                   broadcast scalars, so its strides are free; B comes in vectors of 16 lanes.
//   matmul_general  any strides; for GPUs, and on CPUs for products too small to be worth packing.
//
// An element is always the fma chain over k from 0 upwards, started at +0, whatever the kernel, the
// epilogue or the tile: equal products are equal bit for bit. fma is spelled out because PoCL
// contracts nothing by itself: with mul + add it reached half the rate on the same tile.
#include "kernels/matmul/matmul_kernel.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

// B is [panel][k][vector][lane]: rows of a dense matrix (k stride = its width) or packed panels.
// dense_store: the lanes of the output are contiguous; otherwise the output may have any strides,
// which also stores a product computed transposed. The bias lies along the lanes, or if not
// dense_store along the rows. `plain` has no epilogue and stores straight from registers, whole
// vectors only: worth its own program where k is small.
class MatmulTiles : public MatmulKernel<MatmulTiles> {
 public:
  GeneratorParam<int> rows{"rows", 6};
  GeneratorParam<int> vectors{"vectors", 4};
  GeneratorParam<bool> dense_store{"dense_store", true};
  GeneratorParam<bool> plain{"plain", false};

  Input<Buffer<float, 5>> a{"a"};  // [row][k]
  Input<Buffer<float, 7>> b{"b"};
  Input<Buffer<float, 1>> bias{"bias"};
  Input<Buffer<float, 5>> extra{"extra"};
  Input<int> lane_vectors{"lane_vectors"};  // that B has: those beyond repeat the last
  Input<int> tiles_per_group{"tiles_per_group"};
  Input<int> has_bias{"has_bias"};
  Input<int> activation{"activation"};
  Input<int> extra_mode{"extra_mode"};
  Output<Buffer<float, 5>> out{"out"};

  void generate() {
    // Algorithm. Rows beyond the edge of a tile repeat the last one and are not stored.
    const int width = vectors * kLanes;
    const std::vector<Var> which = {p, t, batch[0], batch[1], batch[2]};
    RDom k(0, a.dim(0).extent(), "k");
    Expr vector = min(v, lane_vectors - 1 - p * vectors);
    Func product("product"), staged("staged");
    const std::vector<Expr> at = std::vector<Expr>{l, v, y} + which;
    product(at) = 0.0f;
    product(at) = fused_multiply_add(
        a(std::vector<Expr>{k, min(t * rows + y, a.dim(1).extent() - 1)} + batch),
        b(std::vector<Expr>{l, vector, k, p} + batch), product(at));
    const std::vector<Expr> tile_at =
        std::vector<Expr>{x % kLanes, x / kLanes % vectors, y % rows, x / width, y / rows} + batch;
    Func lane_bias;
    staged(at) = product(at);
    if (!plain) lane_bias = add_epilogue(staged, which);
    out(std::vector<Expr>{x, y} + batch) = plain ? product(tile_at) : staged(tile_at);
    set_layouts();

    // Schedule.
    Func store = out;
    store.split(y, yo, yi, rows, TailStrategy::GuardWithIf)
        .split(yo, group, tile, tiles_per_group, TailStrategy::GuardWithIf);
    if (plain) {
      out.dim(0).set_extent(out.dim(0).extent() / kLanes * kLanes);
      store.split(x, xv, xi, kLanes)
          .split(xv, xo, xv, vectors, TailStrategy::GuardWithIf)
          .reorder(xi, xv, yi, tile, z1, z2, group, xo, z0)
          .vectorize(xi)
          .unroll(xv)
          .unroll(yi);
    } else if (dense_store) {
      store.split(x, xo, xi, width, TailStrategy::GuardWithIf)
          .split(xi, xv, xi, kLanes)
          .reorder(xi, xv, yi, tile, z1, z2, group, xo, z0)
          .vectorize(xi);
    } else {
      store.split(x, xo, xi, width, TailStrategy::GuardWithIf)
          .reorder(yi, xi, tile, z1, z2, group, xo, z0);
    }
    store.gpu_blocks(group, xo, z0).never_partition_all();
    schedule_product(product, k, which, kLanes, vectors, rows);
    if (plain) {
      product.compute_at(store, tile);
      return;
    }
    schedule_staged(product, staged, which, kLanes, vectors, rows);
    staged.compute_at(store, tile);
    if (dense_store) lane_bias.compute_at(store, group).store_in(MemoryType::Stack);
  }

 private:
  void set_layouts() {
    for (auto* tensor : {&a, &extra}) set_any_layout(*tensor);
    set_any_layout(out);
    for (int d = 1; d < b.dimensions(); ++d) b.dim(d).set_min(0);
    b.dim(0).set_bounds(0, kLanes).set_stride(1);
    b.dim(1).set_stride(kLanes);
    bias.dim(0).set_min(0);
    if (!dense_store) return;
    extra.dim(0).set_stride(1);
    out.dim(0).set_stride(1);
  }

  // Appends the stages to `staged`; returns what holds the bias of a panel, if anything does.
  Func add_epilogue(Func staged, const std::vector<Var>& which) {
    const int width = vectors * kLanes;
    MatmulEpilogue epilogue(staged, kLanes, vectors, rows, which);
    const Expr lanes = out.dim(0).extent() - p * width;  // from this panel on
    const auto extra_at = [&](const Expr& lane, const Expr& vector, const Expr& row) {
      return extra(std::vector<Expr>{p * width + vector * kLanes + lane,
                                     min(t * rows + row, out.dim(1).extent() - 1)} +
                   batch);
    };
    if (!dense_store) {
      epilogue.add_bias(has_bias, [&](const Expr&, const Expr&, const Expr& row) {
        return bias(min(t * rows + row, bias.dim(0).extent() - 1));
      });
      epilogue.add_activations(activation);
      epilogue.add_extra_elements(extra_mode, width, 0, lanes, extra_at);
      return {};
    }
    Func lane_bias("lane_bias");
    RDom i(0, select(has_bias != 0, width, 0), "i");
    lane_bias(l, v, p) = 0.0f;
    lane_bias(i % kLanes, i / kLanes, p) = bias(min(p * width + i, bias.dim(0).extent() - 1));
    lane_bias.bound_extent(l, kLanes).bound_extent(v, vectors);
    epilogue.add_bias(has_bias, [&](const Expr& lane, const Expr& vector, const Expr&) {
      return lane_bias(lane, vector, p);
    });
    epilogue.add_activations(activation);
    epilogue.add_extra_vectors(extra_mode, lanes, extra_at);
    const Expr whole = max(lanes, 0) / kLanes * kLanes;
    epilogue.add_extra_elements(extra_mode, kLanes - 1, whole, lanes, extra_at);
    return lane_bias;
  }
};

// The bias is given C's dimensions, repeated along the rows by a stride of 0.
class MatmulGeneral : public MatmulKernel<MatmulGeneral> {
 public:
  Input<Buffer<float, 5>> a{"a"};  // [row][k]
  Input<Buffer<float, 5>> b{"b"};  // [k][x]
  Input<Buffer<float, 2>> bias{"bias"};
  Input<Buffer<float, 5>> extra{"extra"};
  Input<int> has_bias{"has_bias"};
  Input<int> activation{"activation"};
  Input<int> extra_mode{"extra_mode"};
  Output<Buffer<float, 5>> out{"out"};

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
    product(at) = 0.0f;
    product(at) = fused_multiply_add(a(std::vector<Expr>{k, row(y)} + batch),
                                     b(std::vector<Expr>{column(l), k} + batch), product(at));
    staged(at) = product(at);
    MatmulEpilogue epilogue(staged, lanes, 1, rows, which);
    epilogue.add_bias(has_bias, [&](const Expr& lane, const Expr&, const Expr& r) {
      return bias(column(lane), row(r));
    });
    epilogue.add_activations(activation);
    epilogue.add_extra_elements(extra_mode, lanes, 0, out.dim(0).extent() - p * lanes,
                                [&](const Expr& lane, const Expr&, const Expr& r) {
                                  return extra(std::vector<Expr>{column(lane), row(r)} + batch);
                                });
    out(std::vector<Expr>{x, y} + batch) =
        staged(std::vector<Expr>{x % lanes, 0, y % rows, x / lanes, y / rows} + batch);
    for (auto* tensor : {&a, &b, &extra}) set_any_layout(*tensor);
    set_any_layout(bias);
    set_any_layout(out);

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
    schedule_product(product, k, which, lanes, 1, rows);
    schedule_staged(product, staged, which, lanes, 1, rows);
    staged.compute_at(store, z1);
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulTiles, matmul_tiles)
HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulGeneral, matmul_general)
