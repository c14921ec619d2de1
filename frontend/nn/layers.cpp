#include "frontend/nn/layers.h"

#include "frontend/ops/ops.h"

#include <algorithm>
#include <cmath>

namespace ballast::nn {

Dense::Dense(int64_t in_channels, int64_t out_channels, bool has_bias,
             const Initializer& weight_init, const Initializer& bias_init, Where where) {
  if (in_channels < 1 || out_channels < 1) {
    fail(BALLAST_INVALID_ARGUMENT, "[Dense] {} to {} channels: expected at least 1 (at {})",
         in_channels, out_channels, to_string(where));
  }
  const Shape shape = {out_channels, in_channels};
  weight_ = add("weight", (weight_init ? weight_init : HeUniform(std::sqrt(5.0)))(shape));
  if (has_bias) {
    const double bound = 1 / std::sqrt(static_cast<double>(in_channels));
    bias_ = add("bias", (bias_init ? bias_init : Uniform(bound))({out_channels}));
  }
}

Tensor Dense::construct(const Tensor& x) {
  Tensor y = ops::matmul(x, weight_, /*transpose_a=*/false, /*transpose_b=*/true);
  return bias_.defined() ? y + bias_ : y;
}

Embedding::Embedding(int64_t vocab_size, int64_t embedding_size, const Initializer& table_init,
                     std::optional<int64_t> padding_idx, Where where)
    : padding_idx_(padding_idx) {
  if (vocab_size < 1 || embedding_size < 1 || padding_idx.value_or(0) < 0 ||
      padding_idx.value_or(0) >= vocab_size) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[Embedding] {} rows of {}, padding_idx {}: expected at least 1, and a row's number (at "
         "{})",
         vocab_size, embedding_size, padding_idx.value_or(-1), to_string(where));
  }
  Tensor table = table_init({vocab_size, embedding_size});
  if (padding_idx) {
    std::vector<float> values = table.to_host<float>();
    std::fill_n(values.begin() + *padding_idx * embedding_size, embedding_size, 0.0f);
    table = Tensor::from_host(values, table.shape());
  }
  embedding_table_ = add("embedding_table", table);
}

Tensor Embedding::construct(const Tensor& indices) {
  return ops::embedding(embedding_table_, indices, padding_idx_);
}

Dropout::Dropout(double p, Where where) : p_(p) {
  if (!(p >= 0 && p < 1)) {
    fail(BALLAST_INVALID_ARGUMENT, "[Dropout] p is {}, expected 0 up to but not 1 (at {})", p,
         to_string(where));
  }
}

Tensor Dropout::construct(const Tensor& x) {
  return is_training() && p_ > 0 ? ops::dropout(x, p_) : x;
}

Tensor Upsample::construct(const Tensor& x) {
  std::vector<int64_t> size;
  for (size_t d = 2; d < x.shape().size(); ++d) size.push_back(x.shape()[d] * scale_factor_);
  return ops::interpolate(x, size, mode_, align_corners_);
}

Tensor Flatten::construct(const Tensor& x) { return ops::flatten(x); }

}  // namespace ballast::nn
