// From a choice (matmul_choice.h) to launches. The kernels are described in matmul_generator.cpp.
#include "kernels/matmul/matmul.h"

#include "kernels/matmul/matmul_activations.h"
#include "kernels/matmul/matmul_choice.h"
#include "kernels/matmul/matmul_fused.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/streaming.h"
#include "kernels/pointwise/fuse.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

SourceRules rules_for(DeviceClass device_class, const MatmulChoice& choice) {
  if (device_class == DeviceClass::kGpu) return kNoAliases;
  SourceRules rules = kDirectAccess;
  rules.direct_stack = choice.tile != nullptr && choice.tile->has(kMatmulChunks);
  return rules;
}

// Writes the plan of one product, its choice made.
class Writer {
 public:
  Writer(DeviceClass device_class, const MatmulConfig& config, const MatmulSlots& slots,
         const MatmulProblem& problem, const MatmulChoice& choice, const FusedPointwise* chain)
      : recorder_(rules_for(device_class, choice)),
        workspace_(slots.output + 1),
        device_class_(device_class),
        config_(config),
        slots_(slots),
        problem_(problem),
        choice_(choice),
        chain_(chain),
        rows_(problem_.rows(choice_)),
        lanes_(problem_.lanes(choice_)) {}

  Plan write() {
    const Operand source = rows_source();
    const Operand rows = has_panels() ? by_tiles(source, choice_.tile->rows) : source;
    std::vector<int32_t> panel_args;
    Operand lanes;
    if (has_panels()) {
      const bool in_place = choice_.pack == MatmulPack::kNone || packs_itself();
      const Panels panels = in_place ? panels_in_place(choice_.tile->panel()) : write_panels();
      lanes = panels.operand;
      panel_args = args_of(panels, 0, panel_count() - has_narrow_panel(),
                           {choice_.tiles_per_group, choice_.panels_per_group});
    } else {
      lanes = matrix_of(lanes_, true);
      if (is_line() || is_small()) panel_args = {static_cast<int32_t>(choice_.panels_per_group)};
    }
    if (has_panels()) recorder_.set_streams(streams(), most_kept());
    if (chain_ != nullptr) {
      add_fused({rows, lanes, panel_args, operands_of_chain(), over_output(slots_.output)});
    } else {
      add_built(rows, lanes, panel_args, kernel_name());
    }
    if (has_narrow_panel()) add_narrow_panel(source);
    return recorder_.finish(workspace_);
  }

 private:
  using BatchStrides = std::array<int64_t, kMatmulBatch>;

  // The kernel built ahead of time, whose epilogue is a matter of arguments.
  void add_built(const Operand& rows, const Operand& lanes, const std::vector<int32_t>& panel_args,
                 std::string kernel) {
    std::vector<HostArg> args = {rows, lanes, bias(), extra()};
    args.insert(args.end(), panel_args.begin(), panel_args.end());
    args.push_back(static_cast<int32_t>(bias_mode()));
    args.push_back(static_cast<int32_t>(activation_number(config_.activation)));
    args.push_back(static_cast<int32_t>(extra_mode()));
    args.push_back(over_output(slots_.output));
    if (has_panels() && packs_itself()) {
      kernel += choice_.pack == MatmulPack::kColumns ? "_packing" : "_copying";
    } else if (has_panels() && is_plain()) {
      kernel += reads_columns() ? "_columns" : "_plain";
    }
    if (has_panels() && is_layer()) kernel += "_layer";
    if (reads_short_rows()) kernel += "_in_place";
    if (is_block()) {
      kernel += a_by_step() ? "_n" : "_t";
      kernel += b_by_step() ? "t" : "n";
      if (lies_in_fours(rows) && lies_in_fours(lanes)) kernel += "_by_fours";
      if (activation_number(config_.activation) > activation_number("relu")) kernel += "_activated";
    }
    recorder_.call(aot_kernel(kernel, device_class_), kernel, args);
  }
  bool is_block() const { return choice_.tile != nullptr && choice_.tile->is_block(); }
  // Else they are dense along the rows and the columns.
  bool a_by_step() const { return rows_.k_stride == 1; }
  bool b_by_step() const { return lanes_.k_stride == 1 && lanes_.stride != 1; }

  bool has_narrow_panel() const {
    const bool has_kernel =
        has_panels() && chain_ == nullptr && (is_plain() || choice_.pack == MatmulPack::kNone);
    return has_kernel && narrow_tiles_per_group(problem_, choice_) > 0;
  }
  void add_narrow_panel(const Operand& rows) {
    const int64_t lanes = choice_.tile->vector_lanes;
    const Panels panels = panels_in_place({1, lanes});
    const int64_t number = ceil_div(lanes_.extent, lanes) - 1;
    add_built(by_tiles(rows, kMatmulNarrowRows), panels.operand,
              args_of(panels, number, 1, {narrow_tiles_per_group(problem_, choice_), 1}),
              fmt::format("matmul_{}x{}", kMatmulNarrowRows, lanes));
    recorder_.join_beside();
  }

  // The same kernel with the chain behind it, compiled now.
  void add_fused(const FusedMatmulOperands& operands) {
    std::vector<HostArg> args = {operands.a, operands.b};
    args.insert(args.end(), operands.of_chain.begin(), operands.of_chain.end());
    args.push_back(operands.out);
    record_jit(
        recorder_,
        [&] { return build_fused_matmul(device_class_, choice_.tile, operands, *chain_); },
        kernel_name() + "_" + label_of(*chain_), args);
  }

  std::string kernel_name() const {
    if (choice_.tile != nullptr) return std::string("matmul_") + choice_.tile->name;
    return problem_.dtype == DType::kF32
               ? "matmul_general"
               : fmt::format("matmul_general_{}", name_of(problem_.dtype));
  }

  std::vector<Operand> operands_of_chain() const {
    std::vector<Operand> operands;
    const size_t size = chain_->inputs[0].elements();
    for (size_t i = 1; i < chain_->inputs.size(); ++i) {
      const TensorType& type = chain_->inputs[i];
      Operand operand = over_output(slots_.of_chain + static_cast<uint32_t>(i) - 1);
      operand.dtype = type.dtype;
      const size_t elements = type.elements();
      if (elements != size) {
        std::fill(operand.strides.begin(), operand.strides.end(), 0);
        if (elements != 1) operand.strides[choice_.swapped ? 1 : 0] = 1;
      }
      operands.push_back(operand);
    }
    return operands;
  }

  // The kernels that read panels, in memory as they are or packed.
  bool has_panels() const { return choice_.tile != nullptr && choice_.tile->has_panels(); }
  bool is_small() const {
    return choice_.tile == &kMatmulSmall8 || choice_.tile == &kMatmulSmall4;
  }
  bool is_line() const { return choice_.tile == &kMatmulLine || choice_.tile == &kMatmulLine8; }
  bool is_plain() const {
    return chain_ == nullptr && has_plain_kernel(problem_, choice_) &&
           (bias_mode() != MatmulBias::kRows || has_plain_rows(problem_, choice_)) &&
           (config_.activation == "none" || config_.activation == "relu") && !config_.has_residual;
  }
  // What more a plain kernel has for a layer's bias of the lanes, its scale or its ReLU.
  bool is_layer() const {
    const bool has_bias = bias_mode() == MatmulBias::kLanes && !packs_itself();
    return is_plain() && (has_bias || config_.has_scale || config_.activation == "relu");
  }
  // A transposed lies so that a step of k is one address: copying it is another launch, worth it
  // where there are many steps.
  bool reads_columns() const {
    constexpr int64_t kFewSteps = 128;
    return choice_.packs_rows && is_plain() && !packs_itself() &&
           choice_.tile->has(kMatmulColumns) && rows_.stride == 1 && problem_.k <= kFewSteps;
  }
  bool reads_short_rows() const {
    return choice_.tile != nullptr && choice_.tile->store == MatmulStore::kShortRows &&
           choice_.pack == MatmulPack::kNone && lanes_.extent < kMatmulLanes;
  }
  bool packs_itself() const { return is_plain() && packs_in_groups(problem_, choice_); }
  // Whether C is written in cache lines, past the caches.
  bool streams() const {
    const Operand c = over_output(slots_.output);
    const bool is_lines = std::all_of(c.strides.begin() + 1, c.strides.end(),
                                      [](int64_t stride) { return stride % kMatmulLanes == 0; });
    return choice_.tile->store == MatmulStore::kLanes && is_lines &&
           choice_.tile->has_whole_lines() && has_streamed_size(problem_, choice_);
  }
  int64_t most_kept() const {
    const bool is_apart = over_output(slots_.output).strides[1] >= kPageElements;
    return panel_count() > 1 && is_apart ? most_kept_in_pieces() : last_cache_bytes();
  }
  int64_t width() const { return choice_.tile->lanes(); }
  int64_t panel_count() const { return ceil_div(lanes_.extent, width()); }
  MatmulBias bias_mode() const {
    if (!config_.has_bias) return MatmulBias::kNone;
    return choice_.swapped ? MatmulBias::kRows : MatmulBias::kLanes;
  }
  MatmulExtra extra_mode() const {
    if (config_.has_scale) return MatmulExtra::kScale;
    if (config_.has_residual) return MatmulExtra::kResidual;
    return config_.activation == "relu_grad" ? MatmulExtra::kReluGrad : MatmulExtra::kNone;
  }

  Operand with_batch(Operand operand, const BatchStrides& strides) const {
    operand.extents.insert(operand.extents.end(), problem_.batch.begin(), problem_.batch.end());
    operand.strides.insert(operand.strides.end(), strides.begin(), strides.end());
    return operand;
  }

  // A matrix that lies as C does, as the kernel indexes it.
  Operand over_output(uint32_t slot) const {
    const MatmulStrides& c = problem_.c;
    Operand operand{slot, problem_.dtype, {lanes_.extent, rows_.extent}, {c.column, c.row}, {}};
    if (choice_.swapped) std::swap(operand.strides[0], operand.strides[1]);
    return with_batch(operand, problem_.c_batch);
  }

  // Where there is none, one that is not read, of as many dimensions. A scale lies along the rows.
  Operand extra() const {
    const MatmulExtra mode = extra_mode();
    const bool is_scale = mode == MatmulExtra::kScale;
    if (mode != MatmulExtra::kNone && !is_scale) return over_output(slots_.extra);
    Operand operand = over_output(is_scale ? slots_.scale : slots_.a);
    std::fill(operand.extents.begin(), operand.extents.end(), 1);
    std::fill(operand.strides.begin(), operand.strides.end(), 0);
    if (is_scale) operand.extents[1] = rows_.extent, operand.strides[1] = 1;
    return operand;
  }

  Operand bias() const {
    const uint32_t slot = config_.has_bias ? slots_.bias : slots_.a;
    if (has_panels() || is_line() || choice_.tile == &kMatmulVector) {
      return {slot, DType::kF32, {config_.n}, {1}, {}};
    }
    const int64_t along_lanes = choice_.swapped ? 0 : 1;
    return {slot, DType::kF32, {lanes_.extent, rows_.extent}, {along_lanes, 1 - along_lanes}, {}};
  }

  Operand matrix_of(const MatmulSide& side, bool lanes_first) const {
    Operand operand{
        side.slot, problem_.dtype, {problem_.k, side.extent}, {side.k_stride, side.stride}, {}};
    if (lanes_first) {
      std::swap(operand.extents[0], operand.extents[1]);
      std::swap(operand.strides[0], operand.strides[1]);
    }
    return with_batch(operand, side.batch);
  }

  // A, or B in its role.
  Operand rows_source() {
    const bool columns = has_panels() && reads_columns();
    return choice_.packs_rows && !columns ? write_rows() : matrix_of(rows_, false);
  }
  // With one dimension more (matmul_kernel.h).
  Operand by_tiles(Operand operand, int64_t tile_rows) const {
    const bool is_whole = is_plain() || choice_.tile->store == MatmulStore::kShortRows;
    const int64_t rows = is_whole ? tile_rows : 1;
    operand.extents[1] -= rows - 1;
    operand.extents.insert(operand.extents.begin() + 1, rows);
    operand.strides.insert(operand.strides.begin() + 1, operand.strides[1]);
    return operand;
  }

  // B, or A in its role, as matmul_tiles takes it: panels where they lie, or packed.
  struct Panels {
    Operand operand;
    int64_t step = 0, last = 0;  // elements between panels, and to the last
  };

  Panels panels_in_place(const MatmulPanel& shape) const {
    return panels(lanes_.slot, lanes_.k_stride, lanes_.batch, shape, shape.width(),
                  std::max<int64_t>(lanes_.extent - shape.width(), 0), lanes_.stride);
  }

  Panels panels(uint32_t slot, int64_t k_stride, const BatchStrides& batch,
                const MatmulPanel& shape, int64_t step, int64_t last, int64_t stride = 1) const {
    const Operand operand{slot,
                          DType::kF32,
                          {shape.lanes, shape.vectors, last + 1, problem_.k},
                          {stride, shape.lanes * stride, stride, k_stride},
                          {}};
    return {with_batch(operand, batch), step, last};
  }

  // Of `count` panels, from number `first` on; how many tiles and panels a group has.
  std::vector<int32_t> args_of(const Panels& panels, int64_t first, int64_t count,
                               const std::array<int64_t, 2>& of_group) const {
    std::vector<int32_t> args;
    for (int64_t arg : {panels.step, panels.last, first, count, of_group[0], of_group[1]}) {
      args.push_back(static_cast<int32_t>(arg));
    }
    return args;
  }

  Panels write_panels() {
    BatchStrides batch{};
    const MatmulPanel shape = choice_.tile->panel();
    const PackedMatrix packed = pack(matrix_of(lanes_, true), lanes_, shape, choice_.pack, &batch);
    return panels(packed.slot, packed.pitch, batch, shape, packed.panel,
                  (panel_count() - 1) * packed.panel);
  }

  // A transposed so that it is contiguous along k: one panel as wide as k.
  Operand write_rows() {
    BatchStrides batch{};
    const int64_t vectors = ceil_div(problem_.k, kMatmulLanes);
    const PackedMatrix packed =
        pack(matrix_of(rows_, false), rows_, {vectors},
             rows_.stride == 1 ? MatmulPack::kColumns : MatmulPack::kElements, &batch);
    return with_batch({packed.slot, DType::kF32, {problem_.k, rows_.extent}, {1, packed.pitch}, {}},
                      batch);
  }

  struct PackedMatrix {
    uint32_t slot = 0;
    int64_t pitch = 0, panel = 0;  // elements from one step, or panel, to the next
  };

  // Appends the launch that packs `source`[step][lane] into panels of such a shape.
  PackedMatrix pack(Operand source, const MatmulSide& side, const MatmulPanel& shape,
                    MatmulPack form, BatchStrides* batch) {
    const int64_t lanes = shape.lanes, vectors = shape.vectors;
    const int64_t count = ceil_div(source.extents[0], shape.width());
    // Rows a multiple of 1 KiB apart would share few sets of the first cache.
    const int64_t width = shape.width() + (shape.width() % 256 == 0) * lanes;
    const int64_t blocks = ceil_div(source.extents[1], lanes);
    // Packing by columns writes whole blocks, as many steps as a vector has lanes.
    const int64_t steps = form == MatmulPack::kColumns ? blocks * lanes : source.extents[1];
    const int64_t panel = width * steps;
    Operand target{0, DType::kF32, {lanes, vectors, steps, count}, {1, lanes, width, panel}, {}};
    std::string kernel = "matmul_pack";
    if (form == MatmulPack::kRows) kernel += "_rows";
    if (form == MatmulPack::kColumns) {
      kernel += "_columns";
      target.extents = {lanes, lanes, vectors, blocks, count};
      target.strides = {1, width, lanes, width * lanes, panel};
    }
    if (lanes != kMatmulLanes) kernel += fmt::format("_by_{}", lanes);
    int64_t elements = panel * count;
    for (size_t d = 0; d < kMatmulBatch; ++d) {
      const bool repeats = side.batch[d] == 0;  // packed once
      (*batch)[d] = repeats ? 0 : elements;
      target.extents.push_back(repeats ? 1 : problem_.batch[d]);
      target.strides.push_back((*batch)[d]);
      source.extents[2 + d] = target.extents.back();
      elements *= target.extents.back();
    }
    target.slot = workspace_.add_floats(elements);
    recorder_.call(aot_kernel(kernel, DeviceClass::kCpu), kernel,
                   {source, static_cast<int32_t>(vectors), target});
    return {target.slot, width, panel};
  }

  Recorder recorder_;
  Workspace workspace_;
  DeviceClass device_class_;
  const MatmulConfig& config_;
  const MatmulSlots& slots_;
  const MatmulProblem& problem_;
  const MatmulChoice& choice_;
  const FusedPointwise* chain_;
  const MatmulSide& rows_;
  const MatmulSide& lanes_;
};

}  // namespace

bool can_fuse(const MatmulChoice& choice) {
  return choice.tile == nullptr || choice.tile->has_panels() || choice.tile->is_block();
}

Plan plan_matmul_as(DeviceClass device_class, const MatmulConfig& config,
                    const MatmulChoice& choice, const FusedPointwise* chain) {
  const MatmulSlots slots(config, chain);
  const MatmulProblem problem = make_matmul_problem(config, slots);
  return Writer(device_class, config, slots, problem, choice, chain).write();
}

}  // namespace ballast::kernels
