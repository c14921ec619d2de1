// A transposing copy on a GPU: p is dense in the result, q in the source; four outer loops.
//
// A work-group takes a tile of side x side elements through local memory: items next to each other
// read along q and write along p. Rows of the tile are one element longer than its side, so that
// neighbours of a column lie in different banks.
#include "kernels/shape/transpose_loops.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

class TransposeTiles : public Generator<TransposeTiles> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "gpu"};
  GeneratorParam<int> bytes{"bytes", 4};
  GeneratorParam<int> side{"side", 32};

  void configure() {
    const Type element = UInt(8 * bytes);
    source_ = add_input<Buffer<>>("source", element, 1);
    for (const std::string& name : transpose_places()) numbers_.push_back(add_input<int>(name));
    for (const std::string& name : transpose_outer_loops()) outer_.push_back(add_input<int>(name));
    target_ = add_output<Buffer<>>("result", element, 1);
  }

  void generate() {
    // Algorithm.
    const Expr extent_p = *numbers_[0], extent_q = *numbers_[1];
    const Expr source_stride = *numbers_[2], target_stride = *numbers_[3];
    std::vector<Expr> loops;
    for (const GeneratorInput<int>* number : outer_) loops.emplace_back(*number);
    const auto begin = [&](const Expr& number) {
      return outer_begin(number, *numbers_[4], *numbers_[5], loops);
    };
    const auto blocks = [&](const Expr& extent) { return (extent + side - 1) / side; };
    Expr count = 1;
    for (int d = 0; d < kTransposeOuter; ++d) count = count * loops[3 * d];

    Func tile("tile"), target = *target_;
    const Expr from = begin(n)[0] + min(block_p * side + p, extent_p - 1) * source_stride +
                      min(block_q * side + q, extent_q - 1);
    tile(q, p, block_p, block_q, n) =
        (*source_)(unsafe_promise_clamped(from, 0, source_->dim(0).extent() - 1));

    const int rows = side > 16 ? 8 : side;  // of items
    RDom all({{0, side / rows},
              {0, side},
              {0, rows},
              {0, blocks(extent_p)},
              {0, blocks(extent_q)},
              {0, count}},
             "all");
    const Expr column = all[1], row = all[0] * rows + all[2];
    const Expr at_p = all[3] * side + column, at_q = all[4] * side + row;
    all.where(at_p < extent_p);
    all.where(at_q < extent_q);
    const Expr to = begin(all[5])[1] + at_q * target_stride + at_p;
    target(x) = undef(target_->type());
    target(unsafe_promise_clamped(to, 0, target_->dim(0).extent() - 1)) =
        tile(row, column, all[3], all[4], all[5]);

    // Schedule, of its own for up to one outer loop, whose number need not be divided.
    const auto schedule = [&](Stage stage) {
      stage.allow_race_conditions()
          .unroll(all[0])
          .gpu_blocks(all[3], all[4], all[5])
          .gpu_threads(all[1], all[2])
          .never_partition_all();
    };
    schedule(target.update().specialize(loops[0] == 1 && loops[3] == 1 && loops[6] == 1));
    schedule(target.update());
    const Var outer("outer"), inner("inner");
    tile.compute_at(target, all[3])
        .bound_extent(q, side)
        .bound_extent(p, side)
        .align_storage(q, side + 1)
        .split(p, outer, inner, rows)
        .reorder(outer, q, inner)
        .unroll(outer)
        .gpu_threads(q, inner);
    for (const Var& one : {block_p, block_q, n}) tile.bound_extent(one, 1);
  }

 private:
  Var x{"x"}, q{"q"}, p{"p"}, block_p{"block_p"}, block_q{"block_q"}, n{"n"};
  GeneratorInput<Buffer<>>* source_ = nullptr;
  std::vector<GeneratorInput<int>*> numbers_;
  std::vector<GeneratorInput<int>*> outer_;
  GeneratorOutput<Buffer<>>* target_ = nullptr;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::TransposeTiles, transpose_tiles)
