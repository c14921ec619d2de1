#include "tests/op_check.h"

#include "frontend/ops/ops.h"

namespace ballast::tests {

namespace {

// What one rounding to the element type adds to the tolerance, relatively.
double rounding(DType dtype) {
  return dtype == DType::kBF16 ? 0x1p-8 : dtype == DType::kF16 ? 0x1p-11 : 0;
}

}  // namespace

bool is_pointwise(const OpCase& row) { return op_families().pointwise.count(row.op) == 1; }

std::string disagreement(const OpCase& row) {
  std::vector<Tensor> inputs;
  for (const HostArray& input : row.inputs) inputs.push_back(to_tensor(input));
  const std::vector<HostArray> expected =
      reference_op(row.op, row.inputs, row.attrs, expected_types(row.op, row.inputs, row.attrs));
  const std::vector<Tensor> outputs = ops::call(row.op, inputs, row.attrs);
  if (outputs.size() != expected.size()) {
    return fmt::format("{} outputs, expected {}", outputs.size(), expected.size());
  }
  const bool has_signs = is_pointwise(row) && op_families().open_zeros.count(row.op) == 0;
  std::string why;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const double epsilon = rounding(expected[i].type.dtype);
    const std::string differs =
        difference(to_array(outputs[i]), expected[i], row.rtol + epsilon, row.atol + epsilon * 1e-3,
                   has_signs ? Zeros::kSigned : Zeros::kAlike);
    if (!differs.empty()) why += fmt::format("output {}: {}\n", i, differs);
  }
  return why;
}

std::optional<OpCase> narrowed(const OpCase& row, DType dtype, bool stays_wide) {
  const auto wide = op_families().wide_operands.find(row.op);
  if (stays_wide && wide == op_families().wide_operands.end()) return std::nullopt;
  OpCase narrow = row;
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    HostArray& input = narrow.inputs[i];
    if (input.type.dtype != DType::kF32) continue;
    if (stays_wide && wide->second(i, row.inputs.size())) continue;
    input.type.dtype = dtype;
    for (double& value : input.values) value = rounded(value, dtype);
  }
  return narrow;
}

}  // namespace ballast::tests
