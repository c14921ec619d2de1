#include "frontend/transforms/vjp_rules.h"

#include "frontend/ops/ops.h"

namespace ballast::vjp_rules {

std::vector<Tensor> zero(const VjpArgs& args) { return std::vector<Tensor>(args.inputs.size()); }

Tensor unbroadcast(const Tensor& gradient, const Shape& shape) {
  if (gradient.shape() == shape) return gradient;
  size_t added = gradient.shape().size() - shape.size();
  ops::Axes axes;
  for (size_t i = 0; i < gradient.shape().size(); ++i) {
    bool is_repeated = i < added || (shape[i - added] == 1 && gradient.shape()[i] != 1);
    if (is_repeated) axes.push_back(static_cast<int64_t>(i));
  }
  Tensor summed = axes.empty() ? gradient : ops::reduce_sum(gradient, axes, /*keep_dims=*/true);
  return summed.shape() == shape ? summed : ops::reshape(summed, shape);
}

Tensor or_zero(const Tensor& cotangent, const Tensor& like) {
  return cotangent.defined() ? cotangent : Tensor::zeros(like.shape(), like.dtype());
}

}  // namespace ballast::vjp_rules
