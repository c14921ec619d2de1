#include "frontend/nn/layers.h"

#include "frontend/nn/initializer.h"
#include "frontend/ops.h"

#include <cmath>

namespace ballast::nn {

Dense::Dense(int64_t in_channels, int64_t out_channels, bool has_bias) {
  if (in_channels < 1 || out_channels < 1) {
    fail(BALLAST_INVALID_ARGUMENT, "[Dense] {} to {} channels: expected at least 1", in_channels,
         out_channels);
  }
  weight_ = add("weight", he_uniform({out_channels, in_channels}, std::sqrt(5.0)));
  if (has_bias) {
    double bound = 1 / std::sqrt(static_cast<double>(in_channels));
    bias_ = add("bias", uniform({out_channels}, -bound, bound));
  }
}

Tensor Dense::construct(const Tensor& x) {
  Tensor y = ops::matmul(x, weight_, /*transpose_a=*/false, /*transpose_b=*/true);
  return bias_.defined() ? y + bias_ : y;
}

Tensor ReLU::construct(const Tensor& x) { return ops::relu(x); }

Tensor Tanh::construct(const Tensor& x) { return ops::tanh(x); }

Tensor Sigmoid::construct(const Tensor& x) { return ops::sigmoid(x); }

Tensor GELU::construct(const Tensor& x) { return ops::gelu(x); }

Tensor Softmax::construct(const Tensor& x) { return ops::softmax(x, axis_); }

Tensor Dropout::construct(const Tensor& x) { return is_training() ? ops::dropout(x, p_) : x; }

Tensor Flatten::construct(const Tensor& x) { return ops::flatten(x); }

void SequentialCell::append(std::shared_ptr<Cell> cell) {
  add(std::to_string(cells_.size()), *cell);
  cells_.push_back(std::move(cell));
}

Tensor SequentialCell::construct(const Tensor& x) {
  Tensor value = x;
  for (const auto& cell : cells_) value = (*cell)(value);
  return value;
}

}  // namespace ballast::nn
