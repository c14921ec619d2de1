#include "frontend/ops/reduce.h"

#include "frontend/ops/call.h"

#include <algorithm>

namespace ballast::ops {

namespace {

Tensor reduce(const char* name, const Operand& x, const Axes& axes, bool keep_dims) {
  Tensor tensor = x.tensor();
  Axes sorted;
  for (int64_t axis : axes) sorted.push_back(from_start(axis, tensor.rank()));
  std::sort(sorted.begin(), sorted.end());
  return apply_primitive(name, {tensor}, {{"axes", sorted}, {"keep_dims", int64_t{keep_dims}}},
                         x.where())[0];
}

Tensor arg_reduce(const char* name, const Operand& x, int64_t axis) {
  Tensor tensor = x.tensor();
  return apply_primitive(name, {tensor}, {{"axis", from_start(axis, tensor.rank())}}, x.where())[0];
}

}  // namespace

Tensor reduce_sum(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_sum", x, axes, keep_dims);
}
Tensor reduce_mean(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_mean", x, axes, keep_dims);
}
Tensor reduce_max(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_max", x, axes, keep_dims);
}
Tensor reduce_min(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_min", x, axes, keep_dims);
}
Tensor reduce_prod(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_prod", x, axes, keep_dims);
}
Tensor reduce_any(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_any", x, axes, keep_dims);
}
Tensor reduce_all(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_all", x, axes, keep_dims);
}
Tensor argmax(const Operand& x, int64_t axis) { return arg_reduce("argmax", x, axis); }
Tensor argmin(const Operand& x, int64_t axis) { return arg_reduce("argmin", x, axis); }
Tensor sum(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce_sum(x, axes, keep_dims);
}
Tensor mean(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce_mean(x, axes, keep_dims);
}

}  // namespace ballast::ops
