#include "frontend/nn/conv.h"

#include "frontend/ops/ops.h"

#include <cmath>

namespace ballast::nn {

Convolution::Convolution(const char* name, const Channels& channels,
                         const std::vector<int64_t>& kernel, bool has_bias,
                         const Initializer& weight_init, const Initializer& bias_init, Where where)
    : group_(channels.group) {
  const auto [in, out, group, is_transposed] = channels;
  if (in < 1 || out < 1 || group < 1 || in % group != 0 || out % group != 0) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[{}] {} to {} channels in {} groups: expected multiples of the groups (at {})", name, in,
         out, group, to_string(where));
  }
  Shape shape = is_transposed ? Shape{in, out / group} : Shape{out, in / group};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  weight_ = add("weight", (weight_init ? weight_init : HeUniform(std::sqrt(5.0)))(shape));
  if (has_bias) {
    const int64_t fan_in = weight_.type().elements() / shape[0];
    const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
    bias_ = add("bias", (bias_init ? bias_init : Uniform(bound))({out}));
  }
}

namespace {

// One number stands for both extents.
std::vector<int64_t> checked_kernel(const char* name, const std::vector<int64_t>& kernel,
                                    const Where& where) {
  if (kernel.empty() || kernel.size() > 2 || kernel.front() < 1 || kernel.back() < 1) {
    fail(BALLAST_INVALID_ARGUMENT, "[{}] kernel_size is {}, expected one or two extents (at {})",
         name, to_string(kernel), to_string(where));
  }
  return {kernel.front(), kernel.back()};
}

}  // namespace

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, const Extents& kernel_size,
               const Extents& stride, const std::string& pad_mode, const Extents& padding,
               const Extents& dilation, int64_t group, bool has_bias,
               const Initializer& weight_init, const Initializer& bias_init, Where where)
    : Convolution("Conv2d", {in_channels, out_channels, group},
                  checked_kernel("Conv2d", kernel_size, where), has_bias, weight_init, bias_init,
                  where),
      window_{stride, pad_mode, padding, dilation} {}

Tensor Conv2d::construct(const Tensor& x) {
  if (!bias().defined()) return ops::conv2d(x, weight(), window_, group());
  return ops::conv2d(x, weight(), bias(), window_, group());
}

Conv2dTranspose::Conv2dTranspose(int64_t in_channels, int64_t out_channels,
                                 const Extents& kernel_size, const Extents& stride,
                                 const std::string& pad_mode, const Extents& padding,
                                 const Extents& output_padding, const Extents& dilation,
                                 int64_t group, bool has_bias, const Initializer& weight_init,
                                 const Initializer& bias_init, Where where)
    : Convolution("Conv2dTranspose", {in_channels, out_channels, group, /*is_transposed=*/true},
                  checked_kernel("Conv2dTranspose", kernel_size, where), has_bias, weight_init,
                  bias_init, where),
      window_{stride, pad_mode, padding, dilation},
      output_padding_(output_padding) {}

Tensor Conv2dTranspose::construct(const Tensor& x) {
  if (!bias().defined()) {
    return ops::conv2d_transpose(x, weight(), window_, group(), output_padding_);
  }
  return ops::conv2d_transpose(x, weight(), bias(), window_, group(), output_padding_);
}

Conv1d::Conv1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size, int64_t stride,
               const std::string& pad_mode, const Extents& padding, int64_t dilation, int64_t group,
               bool has_bias, const Initializer& weight_init, const Initializer& bias_init,
               Where where)
    : Convolution("Conv1d", {in_channels, out_channels, group},
                  {checked_kernel("Conv1d", {kernel_size}, where)[0]}, has_bias, weight_init,
                  bias_init, where),
      window_{stride, pad_mode, padding, dilation} {}

Tensor Conv1d::construct(const Tensor& x) {
  if (!bias().defined()) return ops::conv1d(x, weight(), window_, group());
  return ops::conv1d(x, weight(), bias(), window_, group());
}

Tensor MaxPool2d::construct(const Tensor& x) { return ops::max_pool2d(x, kernel_size_, window_); }

Tensor AvgPool2d::construct(const Tensor& x) {
  return ops::avg_pool2d(x, kernel_size_, window_, count_include_pad_);
}

Tensor MaxPool1d::construct(const Tensor& x) { return ops::max_pool1d(x, kernel_size_, window_); }

Tensor AvgPool1d::construct(const Tensor& x) {
  return ops::avg_pool1d(x, kernel_size_, window_, count_include_pad_);
}

}  // namespace ballast::nn
