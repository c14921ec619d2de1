#include "frontend/ops/softmax.h"

#include "frontend/ops.h"
#include "frontend/ops/call.h"

namespace ballast::ops {

Tensor softmax(const Operand& x, int64_t axis) {
  CallScope scope(x.where());
  Tensor tensor = x.tensor();
  // The shift cancels out; without it exp would overflow.
  Tensor e = exp(tensor - stop_gradient(reduce_max(tensor, {axis}, true)));
  return e / reduce_sum(e, {axis}, true);
}

Tensor log_softmax(const Operand& x, int64_t axis) {
  CallScope scope(x.where());
  Tensor tensor = x.tensor();
  Tensor shifted = tensor - stop_gradient(reduce_max(tensor, {axis}, true));
  return shifted - log(reduce_sum(exp(shifted), {axis}, true));
}

Tensor softmax_cross_entropy(const Operand& logits, const Operand& labels) {
  return apply_primitive("softmax_cross_entropy", {logits.tensor(), labels.tensor()}, {},
                         logits.where())[0];
}

Tensor softmax_cross_entropy_grad(const Operand& dloss, const Operand& logits,
                                  const Operand& labels) {
  return apply_primitive("softmax_cross_entropy_grad",
                         {dloss.tensor(), logits.tensor(), labels.tensor()}, {}, logits.where())[0];
}

}  // namespace ballast::ops
