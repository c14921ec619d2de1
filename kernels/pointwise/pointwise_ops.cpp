#include "kernels/pointwise/pointwise_ops.h"

#include <algorithm>

namespace ballast::kernels {

const std::vector<PointwiseOp>& pointwise_ops() {
  static const std::vector<PointwiseOp> ops = {
#define POINTWISE(name, arity, rule, ...) {#name, arity, PointwiseRule::rule},
#include "kernels/pointwise/pointwise_ops.inc"
#undef POINTWISE
  };
  return ops;
}

const PointwiseOp* find_pointwise(const std::string& name) {
  const auto& ops = pointwise_ops();
  const auto it =
      std::find_if(ops.begin(), ops.end(), [&](const PointwiseOp& op) { return op.name == name; });
  return it == ops.end() ? nullptr : &*it;
}

bool moves_bits(const std::string& op, size_t input) {
  return op == "identity" || (op == "select" && input > 0);
}

bool accepts(const PointwiseOp& op, const std::vector<DType>& inputs, DType output) {
  if (inputs.size() != static_cast<size_t>(op.arity)) return false;
  const auto all_are = [&](DType type, size_t from) {
    return std::all_of(inputs.begin() + from, inputs.end(), [&](DType t) { return t == type; });
  };
  const auto is_float = [](DType type) { return type == DType::kF32 || is_narrow_float(type); };
  const auto is_numeric = [&](DType type) { return is_float(type) || is_integer(type); };
  const auto can_cast = [&](DType type) { return is_numeric(type) || type == DType::kBool; };
  switch (op.rule) {
    case PointwiseRule::kFloat:
      return is_float(output) && all_are(output, 0);
    case PointwiseRule::kNumeric:
      return is_numeric(output) && all_are(output, 0);
    case PointwiseRule::kInteger:
      return is_integer(output) && all_are(output, 0);
    case PointwiseRule::kTest:
      return output == DType::kBool && is_float(inputs[0]);
    case PointwiseRule::kCompare:
      return output == DType::kBool && is_numeric(inputs[0]) && all_are(inputs[0], 0);
    case PointwiseRule::kLogical:
      return output == DType::kBool && all_are(output, 0);
    case PointwiseRule::kSelect:
      return inputs[0] == DType::kBool && all_are(output, 1);
    case PointwiseRule::kCast:
      return can_cast(inputs[0]) && can_cast(output);
    case PointwiseRule::kAny:
      return all_are(output, 0);
  }
  return false;
}

}  // namespace ballast::kernels
