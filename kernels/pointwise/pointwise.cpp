#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/widen.h"
#include "kernels/pointwise/fuse.h"
#include "kernels/pointwise/loops.h"
#include "kernels/pointwise/pointwise_ops.h"
#include "kernels/shape/shape.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace ballast::kernels {
namespace {

using device::Code;
using device::fail;

// The manifest row for `op` on these types.
std::string kernel_name(const PointwiseOp& op, const std::vector<TensorType>& inputs,
                        DType output) {
  switch (op.rule) {
    case PointwiseRule::kCast:
      return fmt::format("{}_{}_{}", op.name, name_of(inputs[0].dtype), name_of(output));
    case PointwiseRule::kSelect:
      return fmt::format("{}_{}", op.name, size_of(output));
    case PointwiseRule::kTest:
    case PointwiseRule::kCompare:
      return fmt::format("{}_{}", op.name, name_of(inputs[0].dtype));
    default:
      return fmt::format("{}_{}", op.name, name_of(output));
  }
}

const PointwiseOp& checked_op(const std::string& name, const std::vector<TensorType>& inputs,
                              DType output) {
  const PointwiseOp* op = find_pointwise(name);
  if (op == nullptr) fail(Code::kNotFound, "[{}] no such pointwise op", name);
  std::vector<DType> types;
  for (const TensorType& input : inputs) types.push_back(input.dtype);
  if (!accepts(*op, types, output)) {
    std::vector<std::string> names;
    for (DType type : types) names.emplace_back(name_of(type));
    fail(Code::kUnimplemented, "[{}] no kernel takes ({}) and gives {}", name,
         fmt::join(names, ", "), name_of(output));
  }
  return *op;
}

// `strides`: of each input and of the output, outermost first.
Plan plan_elementwise(DeviceClass device_class, const PointwiseOp& op,
                      const std::vector<TensorType>& inputs, const TensorType& output,
                      std::vector<std::vector<int64_t>> strides) {
  const Loops loops = make_loops(device_class, output.shape, strides);
  if (loops.extents.size() > 4) {  // rare: several patterns of repetition or order interleaved
    FusedPointwise single{inputs, {{op.name, {}, output}}, {0}};
    for (uint32_t i = 0; i < inputs.size(); ++i) single.steps[0].args.push_back({true, i});
    strides.pop_back();
    return plan_fused_strided(device_class, single, strides);
  }
  const std::string kernel = kernel_name(op, inputs, output.dtype);
  Recorder recorder;
  record_elementwise(recorder, device_class, loops, [&](const Loops& part, const Chunks& chunks) {
    std::vector<HostArg> args;
    uint32_t slot = 0;
    for (const TensorType& input : inputs) {
      args.push_back(part.operand(slot, slot, input.dtype));
      ++slot;
    }
    args.insert(args.end(), {chunks.x, chunks.y, part.operand(slot, slot, output.dtype)});
    recorder.call(kernel, device_class, args);
  });
  return recorder.finish();
}

}  // namespace

namespace {

// Without a kernel of its own a narrow type is widened to f32.
Plan plan_wide(DeviceClass device_class, const std::string& op,
               const std::vector<TensorType>& inputs, const TensorType& output) {
  const auto wide = [](TensorType type) {
    if (is_narrow_float(type.dtype)) type.dtype = DType::kF32;
    return type;
  };
  std::vector<WidenedOperand> operands;
  std::vector<TensorType> wide_inputs;
  for (const TensorType& input : inputs) {
    operands.push_back({input, wide(input)});
    wide_inputs.push_back(wide(input));
  }
  return widen(device_class, operands, {{output, wide(output)}},
               plan_pointwise(device_class, op, wide_inputs, wide(output)));
}

}  // namespace

Plan plan_pointwise(DeviceClass device_class, const std::string& op,
                    const std::vector<TensorType>& inputs, const TensorType& output) {
  const PointwiseOp& row = checked_op(op, inputs, output.dtype);
  std::vector<std::vector<int64_t>> strides;
  for (const TensorType& input : inputs) {
    strides.push_back(broadcast_strides(op, input.shape, output.shape));
  }
  strides.push_back(broadcast_strides(op, output.shape, output.shape));
  if (output.elements() == 0) return {};
  if (row.rule == PointwiseRule::kAny ||
      (row.rule == PointwiseRule::kCast && inputs[0].dtype == output.dtype)) {
    return plan_copy(device_class, output.dtype, output.shape, strides[0]);
  }
  const bool has_narrow = is_narrow_float(output.dtype) ||
                          std::any_of(inputs.begin(), inputs.end(), [](const TensorType& type) {
                            return is_narrow_float(type.dtype);
                          });
  if (has_narrow && !has_aot_kernel(kernel_name(row, inputs, output.dtype))) {
    return plan_wide(device_class, op, inputs, output);
  }
  return plan_elementwise(device_class, row, inputs, output, strides);
}

}  // namespace ballast::kernels
