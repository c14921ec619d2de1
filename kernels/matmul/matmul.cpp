// From a choice (matmul_choice.h) to launches. The kernels are described in matmul_generator.cpp.
#include "kernels/matmul/matmul.h"

#include "kernels/kernels.h"
#include "kernels/matmul/matmul_activations.h"
#include "kernels/matmul/matmul_choice.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using device::Code;
using device::fail;

int32_t activation_number(const std::string& name) {
  for (int32_t i = 0; i < kActivationCount; ++i) {
    if (name == kActivations[i]) return i;
  }
  return name == "relu_grad" ? 0 : -1;
}

void check(const MatmulConfig& config) {
  check_epilogue(config);
  if (config.m < 0 || config.n < 0 || config.k < 0) {
    fail(Code::kInvalidArgument, "[matmul] sizes are m = {}, n = {}, k = {}, expected none below 0",
         config.m, config.n, config.k);
  }
}

bool is_empty(const MatmulConfig& config) {
  return config.m == 0 || config.n == 0 ||
         std::any_of(config.batch.begin(), config.batch.end(),
                     [](const MatmulBatch& b) { return b.extent == 0; });
}

// Records one product, its choice made.
class Writer {
 public:
  Writer(Recorder& recorder, DeviceClass device_class, const MatmulConfig& config,
         const MatmulSlots& slots, const MatmulProblem& problem, const MatmulChoice& choice)
      : recorder_(recorder),
        device_class_(device_class),
        config_(config),
        slots_(slots),
        problem_(problem),
        choice_(choice),
        rows_(problem_.rows(choice_)),
        lanes_(problem_.lanes(choice_)) {}

  // Returns the bytes of workspace.
  uint64_t write() {
    uint64_t workspace_bytes = 0;
    std::string kernel = "matmul_general";
    std::vector<HostArg> args = {with_batch(
        {rows_.slot, DType::kF32, {problem_.k, rows_.extent}, {rows_.k_stride, rows_.stride}, {}},
        rows_.batch)};
    if (!has_panels()) {
      if (choice_.tile != nullptr) kernel = "matmul_vector";
      args.push_back(with_batch({lanes_.slot,
                                 DType::kF32,
                                 {lanes_.extent, problem_.k},
                                 {lanes_.stride, lanes_.k_stride},
                                 {}},
                                lanes_.batch));
    } else {
      kernel = std::string("matmul_") + choice_.tile->name + (is_plain() ? "_plain" : "");
      if (choice_.pack == MatmulPack::kNone) {
        args.push_back(with_batch({lanes_.slot,
                                   DType::kF32,
                                   {kMatmulLanes, choice_.tile->vectors, problem_.k, panel_count()},
                                   {1, kMatmulLanes, lanes_.k_stride, width()},
                                   {}},
                                  lanes_.batch));
      } else {
        workspace_bytes = panel_bytes();
        args.push_back(write_panels());
      }
    }
    args.push_back(bias());
    args.push_back(over_output(has_extra() ? slots_.extra : slots_.a));
    if (has_panels()) {
      args.push_back(static_cast<int32_t>(ceil_div(lanes_.extent, kMatmulLanes)));
      args.push_back(static_cast<int32_t>(tiles_per_group()));
    }
    args.push_back(static_cast<int32_t>(config_.has_bias));
    args.push_back(activation_number(config_.activation));
    args.push_back(static_cast<int32_t>(extra_mode()));
    args.push_back(over_output(slots_.output));
    recorder_.call(aot_kernel(kernel, device_class_), kernel, args);
    return workspace_bytes;
  }

 private:
  using BatchStrides = std::array<int64_t, kMatmulBatch>;

  // The kernels that read panels, in memory as they are or packed.
  bool has_panels() const { return choice_.tile != nullptr && choice_.tile != &kMatmulVector; }
  bool is_plain() const {
    return choice_.tile->has_plain && lanes_.extent % kMatmulLanes == 0 && !config_.has_bias &&
           config_.activation == "none" && !config_.has_residual;
  }
  int64_t width() const { return choice_.tile->lanes(); }
  int64_t panel_count() const { return ceil_div(lanes_.extent, width()); }
  // Packing by columns writes whole blocks of 16.
  int64_t panel_rows() const {
    return choice_.pack == MatmulPack::kColumns ? ceil_div(problem_.k, kMatmulLanes) * kMatmulLanes
                                                : problem_.k;
  }
  uint64_t panel_bytes() const {
    return problem_.matrices(lanes_) * panel_count() * width() * panel_rows() * sizeof(float);
  }

  MatmulExtra extra_mode() const {
    if (config_.has_residual) return MatmulExtra::kResidual;
    return config_.activation == "relu_grad" ? MatmulExtra::kReluGrad : MatmulExtra::kNone;
  }
  bool has_extra() const { return extra_mode() != MatmulExtra::kNone; }

  Operand with_batch(Operand operand, const BatchStrides& strides) const {
    operand.extents.insert(operand.extents.end(), problem_.batch.begin(), problem_.batch.end());
    operand.strides.insert(operand.strides.end(), strides.begin(), strides.end());
    return operand;
  }

  // A matrix that lies as C does, as the kernel indexes it.
  Operand over_output(uint32_t slot) const {
    const MatmulStrides& c = problem_.c;
    Operand operand{slot, DType::kF32, {lanes_.extent, rows_.extent}, {c.column, c.row}, {}};
    if (choice_.swapped) std::swap(operand.strides[0], operand.strides[1]);
    return with_batch(operand, problem_.c_batch);
  }

  Operand bias() const {
    const uint32_t slot = config_.has_bias ? slots_.bias : slots_.a;
    if (choice_.tile != nullptr) return {slot, DType::kF32, {config_.n}, {1}, {}};
    const int64_t along_lanes = choice_.swapped ? 0 : 1;
    return {slot, DType::kF32, {lanes_.extent, rows_.extent}, {along_lanes, 1 - along_lanes}, {}};
  }

  // Enough groups to share out among the cores, few enough to keep what a group costs small.
  int64_t tiles_per_group() const {
    const int64_t row_tiles = ceil_div(rows_.extent, choice_.tile->rows);
    return std::clamp<int64_t>(row_tiles * panel_count() * problem_.products() / 128, 1, 8);
  }

  // Appends the launch that packs, and returns the panels as matmul_tiles takes them.
  Operand write_panels() {
    const int64_t vectors = choice_.tile->vectors, panel = width() * panel_rows();
    std::array<int64_t, kMatmulBatch> extents = problem_.batch;
    BatchStrides strides{};
    int64_t stride = panel * panel_count();
    for (size_t d = 0; d < kMatmulBatch; ++d) {
      if (lanes_.batch[d] == 0) {
        extents[d] = 1;
      } else {
        strides[d] = stride;
        stride *= extents[d];
      }
    }
    const auto with_own_batch = [&](Operand operand, const BatchStrides& batch_strides) {
      operand.extents.insert(operand.extents.end(), extents.begin(), extents.end());
      operand.strides.insert(operand.strides.end(), batch_strides.begin(), batch_strides.end());
      return operand;
    };
    const Operand source = with_own_batch({lanes_.slot,
                                           DType::kF32,
                                           {lanes_.extent, problem_.k},
                                           {lanes_.stride, lanes_.k_stride},
                                           {}},
                                          lanes_.batch);
    Operand target{slots_.workspace,
                   DType::kF32,
                   {kMatmulLanes, vectors, problem_.k, panel_count()},
                   {1, kMatmulLanes, width(), panel},
                   {}};
    const Operand panels = with_batch(target, strides);
    std::string kernel = "matmul_pack";
    if (choice_.pack == MatmulPack::kRows) kernel += "_rows";
    if (choice_.pack == MatmulPack::kColumns) {
      kernel += "_columns";
      target.extents = {kMatmulLanes, kMatmulLanes, vectors, panel_rows() / kMatmulLanes,
                        panel_count()};
      target.strides = {1, width(), kMatmulLanes, width() * kMatmulLanes, panel};
    }
    recorder_.call(aot_kernel(kernel, DeviceClass::kCpu), kernel,
                   {source, static_cast<int32_t>(vectors), with_own_batch(target, strides)});
    return panels;
  }

  Recorder& recorder_;
  DeviceClass device_class_;
  const MatmulConfig& config_;
  const MatmulSlots& slots_;
  const MatmulProblem& problem_;
  const MatmulChoice& choice_;
  const MatmulSide& rows_;
  const MatmulSide& lanes_;
};

}  // namespace

bool is_matmul_activation(const std::string& op) { return activation_number(op) > 0; }

void check_epilogue(const MatmulConfig& config) {
  if (activation_number(config.activation) < 0) {
    std::string names;
    for (const char* name : kActivations) names += std::string(name) + ", ";
    fail(Code::kInvalidArgument, "activation is \"{}\", expected one of {}relu_grad",
         config.activation, names);
  }
  if (config.activation == "relu_grad" && config.has_residual) {
    fail(Code::kInvalidArgument, "activation relu_grad takes no residual beside it");
  }
}

MatmulSlots::MatmulSlots(const MatmulConfig& config) {
  uint32_t next = 2;
  if (config.has_bias) bias = next++;
  if (config.has_residual || config.activation == "relu_grad") extra = next++;
  output = next++;
  workspace = next;
}

SourceRules matmul_source_rules() {
  SourceRules rules;
  rules.fp_contract = false;
  rules.may_alias = false;
  return rules;
}

uint64_t record_matmul(Recorder& recorder, DeviceClass device_class, const MatmulConfig& config,
                       const MatmulSlots& slots) {
  check(config);
  if (is_empty(config)) return 0;
  const MatmulProblem problem = make_matmul_problem(config, slots);
  const MatmulChoice choice = choose_matmul(device_class, problem);
  return Writer(recorder, device_class, config, slots, problem, choice).write();
}

Plan plan_matmul_as(DeviceClass device_class, const MatmulConfig& config,
                    const MatmulChoice& choice) {
  const MatmulSlots slots(config);
  Recorder recorder(matmul_source_rules());
  const MatmulProblem problem = make_matmul_problem(config, slots);
  const uint64_t bytes = Writer(recorder, device_class, config, slots, problem, choice).write();
  return recorder.finish(bytes);
}

Plan plan_matmul(DeviceClass device_class, const MatmulConfig& config) {
  Recorder recorder(matmul_source_rules());
  const uint64_t bytes = record_matmul(recorder, device_class, config, MatmulSlots(config));
  return recorder.finish(bytes);
}

}  // namespace ballast::kernels
