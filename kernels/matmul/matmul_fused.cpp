#include "kernels/matmul/matmul_fused.h"

#include "kernels/matmul/matmul_blocks.h"
#include "kernels/matmul/matmul_general.h"
#include "kernels/matmul/matmul_short.h"
#include "kernels/matmul/matmul_tiles.h"
#include "kernels/matmul/matmul_turned.h"
#include "kernels/pointwise/fuse_steps.h"
#include "kernels/pointwise/pointwise_recipe.h"
#include "kernels/recipe/hints.h"

#include <algorithm>
#include <memory>
#include <string>

namespace ballast::kernels {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::ImageParam;

// Binds what the generators of all kernels declare, builds, and fixes every layout.
template <class Kernel>
class Builder {
 public:
  Builder(const FusedMatmulOperands& operands, const FusedPointwise& chain, bool has_wide_indices)
      : operands_(operands), chain_(chain) {
    kernel_.has_wide_indices = has_wide_indices;
    generator_ = Kernel::create(Halide::GeneratorContext(jit_target(has_wide_indices)));
  }

  void set(const std::string& param, const std::string& value) {
    base().set_generatorparam_value(param, value);
  }

  // has_vectors: of C, whole ones. Elsewhere lanes beyond an edge repeat the last one, and known
  // edges would give vectors of lengths that OpenCL C does not have.
  JitKernel build(bool has_vectors = false) {
    const ImageParam a = add(operands_.a), b = add(operands_.b);
    for (const Operand& operand : operands_.of_chain) {
      of_chain_.push_back(add(operand));
      if (lies_like_c(operand)) like_c_.push_back(static_cast<uint32_t>(of_chain_.size()));
    }
    base().bind_input("a", {a.parameter()});
    base().bind_input("b", {b.parameter()});
    const char* const names[] = {"panel_step", "last_panel",      "first_panel",
                                 "panels",     "tiles_per_group", "panels_per_group"};
    for (size_t i = 0; i < operands_.panels.size(); ++i) {
      base().bind_input(names[i], {Expr(operands_.panels[i])});
    }
    generator_->chain = [&](Func sums, const auto& at, const auto& place) {
      return last_step(sums, at, place);
    };
    generator_->ask = [&](const Expr& value, const std::vector<Expr>& place) {
      return with_requests(value, place);
    };
    generator_->keep = [&](const std::vector<Expr>& place) { return kept(place); };
    kernel_.func = base().build_pipeline().outputs()[0];
    // The generator has said of the operands what holds for all shapes.
    fix(a, operands_.a);
    fix(b, operands_.b);
    fix_strides(kernel_.func.output_buffer(), operands_.out.strides);
    if (has_vectors) fix_extents(kernel_.func.output_buffer(), operands_.out.extents);
    return kernel_;
  }

 private:
  Halide::Internal::AbstractGenerator& base() { return *generator_; }

  Func last_step(Func sums, const std::vector<Halide::Var>& at, const std::vector<Expr>& place) {
    return make_steps(chain_, at,
                      [&](uint32_t input) {
                        const bool keeps = sums.outputs() > 1;
                        if (input == 0) return keeps ? Expr(sums(at)[0]) : Expr(sums(at));
                        const auto found = std::find(like_c_.begin(), like_c_.end(), input);
                        if (!keeps || found == like_c_.end()) return value_at(input, place);
                        return Expr(sums(at)[1 + static_cast<int>(found - like_c_.begin())]);
                      })
        .back();
  }

  // Of the chain's input, read at `place` in C.
  Expr value_at(uint32_t input, const std::vector<Expr>& place) const {
    return loaded(of_chain_[input - 1](place), chain_.inputs[input].dtype);
  }

  // Whether it is a matrix like C, whose rows are far apart.
  static bool lies_like_c(const Operand& operand) {
    return operand.strides[0] == 1 && operand.strides[1] != 0;
  }

  // All inputs like C: read before any row of a tile is written. Where rows are whole pages apart,
  // CPUs take the next row's read for one of what the last row's write is about to change, and wait
  // for it: gelu_grad after 1576x256 by 256x1024 took 85 cycles a row of 16 instead of 35 (Zen 3).
  std::vector<Expr> kept(const std::vector<Expr>& place) const {
    std::vector<Expr> values;
    for (uint32_t input : like_c_) values.push_back(value_at(input, place));
    return values;
  }

  // `value`, and requests for what the chain reads of matrices like C, whose rows are far apart: a
  // tile's are a line each, which come while it is summed up.
  Expr with_requests(Expr value, const std::vector<Expr>& place) const {
    for (uint32_t input : like_c_) value = with_prefetch(value, of_chain_[input - 1](place));
    return value;
  }

  ImageParam add(const Operand& operand) {
    return add_fixed_input(kernel_, operand.dtype, operand.extents, operand.strides);
  }

  template <class Param>
  static void fix(Param param, const Operand& operand) {
    fix_extents(param, operand.extents);
    fix_strides(param, operand.strides);
  }

  const FusedMatmulOperands& operands_;
  const FusedPointwise& chain_;
  JitKernel kernel_;
  std::vector<ImageParam> of_chain_;
  std::vector<uint32_t> like_c_;  // the chain's inputs that lie so
  std::unique_ptr<Kernel> generator_;
};

// Of a kernel of matmul_parts.h.
template <class Kernel>
Builder<Kernel> parts_builder(const MatmulTile& tile, const FusedMatmulOperands& operands,
                              const FusedPointwise& chain) {
  Builder<Kernel> builder(operands, chain, true);
  builder.set("held_rows", std::to_string(tile.held_rows));
  builder.set("vectors", std::to_string(tile.vectors));
  return builder;
}

}  // namespace

JitKernel build_fused_matmul(DeviceClass device_class, const MatmulTile* tile,
                             const FusedMatmulOperands& operands, const FusedPointwise& chain) {
  if (tile == nullptr) {
    Builder<MatmulGeneral> general(operands, chain, false);
    general.set("device_class", device_class == DeviceClass::kCpu ? "cpu" : "gpu");
    return general.build();
  }
  if (tile->is_block()) {
    Builder<MatmulBlocks> blocks(operands, chain, false);
    blocks.set("rows", std::to_string(tile->rows));
    blocks.set("a_by_step", operands.a.strides[0] == 1 ? "true" : "false");
    blocks.set("b_by_step", operands.b.strides[0] == 1 ? "false" : "true");
    const bool by_fours = lies_in_fours(operands.a) && lies_in_fours(operands.b);
    blocks.set("by_fours", by_fours ? "true" : "false");
    return blocks.build();
  }
  if (tile->store == MatmulStore::kRows) {
    return parts_builder<MatmulTurned>(*tile, operands, chain).build();
  }
  if (tile->store == MatmulStore::kShortRows) {
    Builder<MatmulShort> builder = parts_builder<MatmulShort>(*tile, operands, chain);
    builder.set("in_place", operands.b.strides[3] < kMatmulLanes ? "true" : "false");
    return builder.build();
  }
  Builder<MatmulTiles> tiles(operands, chain, true);
  tiles.set("rows", std::to_string(tile->rows));
  tiles.set("vectors", std::to_string(tile->vectors));
  tiles.set("lanes", std::to_string(tile->vector_lanes));
  const bool is_dense = tile->store == MatmulStore::kLanes;
  tiles.set("chunks", tile->has(kMatmulChunks) ? "true" : "false");
  tiles.set("dense_store", is_dense ? "true" : "false");
  return tiles.build(is_dense);
}

}  // namespace ballast::kernels
