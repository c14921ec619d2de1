#include "frontend/ops/softmax.h"

#include "frontend/ops/call.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/shape.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace ballast::ops {

namespace {

Tensor along(const char* name, const std::vector<Tensor>& inputs, int64_t axis,
             const Where& where) {
  return apply_primitive(name, inputs, {{"axis", from_start(axis, inputs[0].rank())}}, where)[0];
}

// Of lines that lie along all of `axes`: these are made the last, and one.
Tensor over_axes(const char* name, const Operand& x, const Axes& axes) {
  CallScope scope(x.where());
  const Tensor tensor = x.tensor();
  const int64_t rank = tensor.rank();
  std::vector<bool> is_along(static_cast<size_t>(rank), axes.empty());
  for (int64_t axis : axes) {
    is_along[static_cast<size_t>(checked_axis(name, axis, rank, x.where()))] = true;
  }
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  const auto first_along = std::stable_partition(order.begin(), order.end(), [&](int64_t axis) {
    return !is_along[static_cast<size_t>(axis)];
  });
  Shape lines;
  for (auto axis = order.begin(); axis != first_along; ++axis) {
    lines.push_back(tensor.shape()[static_cast<size_t>(*axis)]);
  }
  int64_t length = 1;
  for (auto axis = first_along; axis != order.end(); ++axis) {
    length *= tensor.shape()[static_cast<size_t>(*axis)];
  }
  lines.push_back(length);
  const Tensor turned = rank == 0 ? tensor : transpose(tensor, order);
  const Tensor result =
      reshape(along(name, {reshape(turned, lines)}, -1, x.where()), turned.shape());
  return rank == 0 ? result : transpose(result, inverse_of(order));
}

}  // namespace

Tensor softmax(const Operand& x, int64_t axis) {
  return along("softmax", {x.tensor()}, axis, x.where());
}

Tensor log_softmax(const Operand& x, int64_t axis) {
  return along("log_softmax", {x.tensor()}, axis, x.where());
}

Tensor softmax(const Operand& x, const Axes& axes) { return over_axes("softmax", x, axes); }
Tensor log_softmax(const Operand& x, const Axes& axes) { return over_axes("log_softmax", x, axes); }

Tensor softmax_grad(const Operand& dy, const Operand& y, int64_t axis) {
  return along("softmax_grad", {dy.tensor(), y.tensor()}, axis, dy.where());
}

Tensor log_softmax_grad(const Operand& dy, const Operand& y, int64_t axis) {
  return along("log_softmax_grad", {dy.tensor(), y.tensor()}, axis, dy.where());
}

Tensor class_labels(const Operand& labels) {
  Tensor classes = labels.tensor();
  if (classes.dtype() != DType::kI64) return classes;
  CallScope scope(labels.where());
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  return cast(minimum(maximum(classes, int64_t{-1}), kMost), DType::kI32);
}

Tensor softmax_cross_entropy(const Operand& logits, const Operand& labels, double label_smoothing) {
  return apply_primitive("softmax_cross_entropy", {logits.tensor(), class_labels(labels)},
                         {{"label_smoothing", label_smoothing}}, logits.where())[0];
}

Tensor softmax_cross_entropy_grad(const Operand& dloss, const Operand& logits,
                                  const Operand& labels, double label_smoothing) {
  return apply_primitive("softmax_cross_entropy_grad",
                         {dloss.tensor(), logits.tensor(), class_labels(labels)},
                         {{"label_smoothing", label_smoothing}}, logits.where())[0];
}

}  // namespace ballast::ops
