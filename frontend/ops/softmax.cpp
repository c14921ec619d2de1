#include "frontend/ops/softmax.h"

#include "frontend/ops/call.h"
#include "frontend/ops/pointwise.h"

#include <limits>

namespace ballast::ops {

namespace {

Tensor along(const char* name, const std::vector<Tensor>& inputs, int64_t axis,
             const Where& where) {
  return apply_primitive(name, inputs, {{"axis", from_start(axis, inputs[0].rank())}}, where)[0];
}

}  // namespace

Tensor softmax(const Operand& x, int64_t axis) {
  return along("softmax", {x.tensor()}, axis, x.where());
}

Tensor log_softmax(const Operand& x, int64_t axis) {
  return along("log_softmax", {x.tensor()}, axis, x.where());
}

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
