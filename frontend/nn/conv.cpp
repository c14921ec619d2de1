#include "frontend/nn/conv.h"

#include "frontend/ops/ops.h"

#include <cmath>

namespace ballast::nn {

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, const Extents& kernel_size,
               const Extents& stride, const std::string& pad_mode, const Extents& padding,
               const Extents& dilation, int64_t group, bool has_bias,
               const Initializer& weight_init, const Initializer& bias_init, Where where)
    : window_{stride, pad_mode, padding, dilation}, group_(group) {
  if (in_channels < 1 || out_channels < 1 || group < 1 || in_channels % group != 0 ||
      out_channels % group != 0) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[Conv2d] {} to {} channels in {} groups: expected multiples of the groups (at {})",
         in_channels, out_channels, group, to_string(where));
  }
  const int64_t down = kernel_size.front(), across = kernel_size.back();
  if (kernel_size.size() > 2 || down < 1 || across < 1) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[Conv2d] kernel_size is {}, expected one or two extents (at {})", to_string(kernel_size),
         to_string(where));
  }
  const Shape shape = {out_channels, in_channels / group, down, across};
  weight_ = add("weight", (weight_init ? weight_init : HeUniform(std::sqrt(5.0)))(shape));
  if (has_bias) {
    const double bound = 1 / std::sqrt(static_cast<double>(shape[1] * down * across));
    bias_ = add("bias", (bias_init ? bias_init : Uniform(bound))({out_channels}));
  }
}

Tensor Conv2d::construct(const Tensor& x) {
  if (!bias_.defined()) return ops::conv2d(x, weight_, window_, group_);
  return ops::conv2d(x, weight_, bias_, window_, group_);
}

Tensor MaxPool2d::construct(const Tensor& x) { return ops::max_pool2d(x, kernel_size_, window_); }

Tensor AvgPool2d::construct(const Tensor& x) {
  return ops::avg_pool2d(x, kernel_size_, window_, count_include_pad_);
}

}  // namespace ballast::nn
