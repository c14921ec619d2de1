// Puts the lanes of a product into panels[panel][k][vector][lane], which matmul_tiles reads from
// front to back: `source` is B, or A in the other's role. Three forms: by rows where neighbouring
// lanes are contiguous, by columns where neighbours along k are, by elements for any strides. The
// last panel begins where its lanes end with the source's, as the tiles that read it do; where the
// source is narrower than a panel, its last lane is repeated.
#include "kernels/recipe/hints.h"
#include "kernels/recipe/lanes.h"
#include "kernels/recipe/shuffle.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

template <class Derived>
class PackKernel : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> lanes{"lanes", kLanes};  // of a vector

 protected:
  Var l{"l"}, v{"v"}, k{"k"}, p{"p"}, ko{"ko"}, ki{"ki"}, po{"po"}, pi{"pi"};
  Var z0{"z0"}, z1{"z1"}, z2{"z2"};
  std::vector<Var> batch{z0, z1, z2};

  // The first lane of a vector.
  Expr lane_of(const Expr& vectors, const Expr& extent) const {
    const Expr width = vectors * lanes;
    return max(min(p * width, extent - width), 0) + v * lanes;
  }
};

class MatmulPack : public PackKernel<MatmulPack> {
  // Panels of one vector of 16 lanes or three of 8, and how many of them a work-item packs.
  static constexpr int kNarrowLanes = 24, kNarrowPanels = 8;

 public:
  GeneratorParam<bool> by_vectors{"by_vectors", false};

  Input<Buffer<float, 5>> source{"source"};  // [k][lane]
  Input<int> panel_vectors{"panel_vectors"};
  Output<Buffer<float, 7>> panels{"panels"};

  void generate() {
    // Algorithm.
    const Expr extent = source.dim(0).extent(), lane = lane_of(panel_vectors, extent) + l;
    panels(l, v, k, p, batch[0], batch[1], batch[2]) =
        source(by_vectors ? lane : min(lane, extent - 1), k, batch[0], batch[1], batch[2]);
    for (int d = 0; d < source.dimensions(); ++d) source.dim(d).set_min(0);
    source.dim(0).set_stride(by_vectors ? Expr(1) : Expr());
    for (int d = 1; d < panels.dimensions(); ++d) panels.dim(d).set_min(0);
    panels.dim(0).set_bounds(0, lanes).set_stride(1);
    panels.dim(1).set_stride(lanes);

    // Schedule: a work-item packs 32 rows of a panel, or of some. 1024 x 1024 measured as
    // matmul_tiles: 134 us by vectors, 315 us by elements.
    Func pack = panels;
    pack.split(k, ko, ki, 32, TailStrategy::GuardWithIf);
    if (by_vectors) {
      // Panels follow each other, so that the source's rows are read from front to back.
      // Narrow ones go eight at a time: single cache lines of 32 rows are no stream.
      Stage narrow = pack.specialize(panel_vectors == kNarrowLanes / lanes);
      narrow.split(p, po, pi, kNarrowPanels, TailStrategy::GuardWithIf)
          .reorder(l, v, pi, ki, z1, z2, po, ko, z0)
          .vectorize(l)
          .gpu_blocks(po, ko, z0)
          .never_partition_all();
      for (Stage stage : {Stage(pack.specialize(panel_vectors == 2)), Stage(pack)}) {
        stage.reorder(l, v, ki, z1, z2, p, ko, z0).vectorize(l).gpu_blocks(p, ko, z0);
        stage.never_partition_all();
      }
    } else {
      pack.reorder(l, ki, v, z1, z2, ko, p, z0)
          .unroll(l)
          .gpu_blocks(ko, p, z0)
          .never_partition_all();
    }
  }
};

// The same for a source contiguous along k: panels[panel][k / 16][vector][k % 16][lane], each panel
// a multiple of 16 long.
class MatmulPackColumns : public PackKernel<MatmulPackColumns> {
  // Along k, and vectors of lanes, of a work-item; blocks from one that is written to one asked
  // for.
  static constexpr int kBlocks = 4, kVectors = 4, kAhead = 2;

 public:
  Input<Buffer<float, 5>> source{"source"};  // [k][lane]
  Input<int> panel_vectors{"panel_vectors"};
  Output<Buffer<float, 8>> panels{"panels"};

  void generate() {
    // Algorithm.
    // The block is read in a loop of its own: whole vectors along k, or near the end of k one by
    // one.
    const Expr last = source.dim(0).extent() - 1, end = source.dim(1).extent();
    const std::vector<Var> at = {l, r, v, kb, p, batch[0], batch[1], batch[2]};
    Func block("block");
    const auto block_at = [&](const Expr& lane, const Expr& row) {
      return block(lane, row, v, kb, p, batch[0], batch[1], batch[2]);
    };
    const auto source_at = [&](const Expr& row, const Expr& step) {
      return source(min(lane_of(panel_vectors, last + 1) + row, last), step, batch[0], batch[1],
                    batch[2]);
    };
    block(at) = undef<float>();
    RDom whole(0, lanes, "whole"), part({{0, lanes}, {0, lanes}}, "part");
    whole.where((kb + 1) * lanes <= end);
    // Asks for what the next work-item reads of this row: rows are far apart, and each is left
    // again before the CPU's own prefetching knows of it.
    const Expr step = kb * lanes + l;
    block_at(l, whole) =
        with_prefetch(source_at(whole, step),
                      source_at(whole, unsafe_promise_clamped(step + kBlocks * lanes, 0, end - 1)));
    part.where((kb + 1) * lanes > end);
    block_at(part.x, part.y) = source_at(part.y, min(kb * lanes + part.x, end - 1));
    block.update(0).vectorize(l);
    block.update(1).unscheduled();
    const std::vector<Func> steps =
        transpose_block(block, lanes, sizeof(float), l, r, {v, kb, p, z0, z1, z2});
    const Expr blocks = panels.dim(3).extent();
    const RDom kbs(0, blocks, "kbs");
    const auto panels_at = [&](const Expr& number) {
      return panels(l, r, v, number, p, z0, z1, z2);
    };
    panels(at) = undef<float>();
    // And for the memory of a later block: stores wait for theirs.
    panels_at(kbs) = with_prefetch(steps.back()(l, r, v, kbs, p, z0, z1, z2),
                                   panels_at(unsafe_promise_clamped(kbs + kAhead, 0, blocks - 1)));
    for (int d = 0; d < source.dimensions(); ++d) source.dim(d).set_min(0);
    source.dim(0).set_stride(Expr());
    source.dim(1).set_stride(1);
    panels.dim(0).set_bounds(0, lanes);
    panels.dim(1).set_bounds(0, lanes);
    for (int d = 2; d < panels.dimensions(); ++d) panels.dim(d).set_min(0);

    // Schedule: a work-item packs 64 rows of a panel. 64 x 784 measured as above: 11 us, 17 us
    // element by element.
    RVar ko("ko"), ki("ki");
    Stage pack = Func(panels).update();
    pack.allow_race_conditions();
    pack.split(kbs, ko, ki, kBlocks, TailStrategy::GuardWithIf)
        .split(v, vo, vi, kVectors, TailStrategy::GuardWithIf)
        .reorder(l, r, vi, ki, z1, z2, ko, vo, p, z0)
        .fuse(vo, p, p)
        .gpu_blocks(ko, p, z0)
        .vectorize(l)
        .unroll(r)
        .never_partition_all();
    for (Func turn : steps) {
      turn.compute_at(panels, vi).store_in(MemoryType::Register);
      turn.bound_extent(l, lanes).bound_extent(r, lanes);
      for (const Var& one : {v, kb, p, batch[0], batch[1], batch[2]}) turn.bound_extent(one, 1);
      if (turn.name() != block.name()) turn.vectorize(l).unroll(r);
    }
    block.store_in(MemoryType::Stack);
  }

 private:
  Var r{"r"}, kb{"kb"}, vo{"vo"}, vi{"vi"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulPack, matmul_pack)
HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulPackColumns, matmul_pack_columns)
