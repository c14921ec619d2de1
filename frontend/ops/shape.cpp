#include "frontend/ops/shape.h"

#include "frontend/ops/call.h"

#include <algorithm>

namespace ballast::ops {

Tensor broadcast_to(const Operand& x, const Shape& shape) {
  return unary("broadcast_to", x, {{"shape", shape}});
}

Tensor reshape(const Operand& x, Shape shape) {
  Tensor tensor = x.tensor();
  auto open = std::find(shape.begin(), shape.end(), -1);
  if (open != shape.end()) {
    *open = 1;
    int64_t rest = TensorType{tensor.dtype(), shape}.elements();
    // Left as -1 where nothing fits, for the op to refuse.
    *open = rest > 0 && tensor.elements() % rest == 0 ? tensor.elements() / rest : -1;
  }
  return apply_primitive("reshape", {tensor}, {{"shape", std::move(shape)}}, x.where())[0];
}

Tensor transpose(const Operand& x, const std::vector<int64_t>& perm) {
  Tensor tensor = x.tensor();
  std::vector<int64_t> order = perm;
  for (int64_t& axis : order) axis = from_start(axis, tensor.rank());
  for (int64_t axis = tensor.rank(); perm.empty() && axis > 0; --axis) order.push_back(axis - 1);
  return apply_primitive("transpose", {tensor}, {{"perm", std::move(order)}}, x.where())[0];
}

Tensor flatten(const Operand& x) {
  Tensor tensor = x.tensor();
  if (tensor.rank() < 1) {
    fail(BALLAST_INVALID_ARGUMENT, "[flatten] the input is {}, expected at least rank 1 (at {})",
         to_string(tensor.type()), to_string(CallScope::resolve(x.where())));
  }
  TensorType row{tensor.dtype(), Shape(tensor.shape().begin() + 1, tensor.shape().end())};
  Shape shape{tensor.shape()[0], row.elements()};
  return apply_primitive("reshape", {tensor}, {{"shape", std::move(shape)}}, x.where())[0];
}

}  // namespace ballast::ops
