// Convolution and pooling over [N, C, H, W] and [N, C, L] as cells. Windows: ops/conv.h; defaults:
// mindspore.nn (2.10).
#pragma once

#include "frontend/nn/cell.h"
#include "frontend/nn/initializer.h"
#include "frontend/ops/conv.h"
#include "frontend/ops/pool.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace ballast::nn {

// One number for all, or {down, across} (paddings: {top, bottom, left, right}).
struct Extents : std::vector<int64_t> {
  Extents(int64_t all) : std::vector<int64_t>{all} {}
  Extents(std::initializer_list<int64_t> list) : std::vector<int64_t>(list) {}
};

// What convolutions share: weight [out, in / group, kernel...] (of a transposed one [in, out /
// group, kernel...]): HeUniform(sqrt(5)), bias [out]: uniform in +-1/sqrt(fan_in).
class Convolution : public Cell {
 public:
  const Parameter& weight() const { return weight_; }
  const Parameter& bias() const { return bias_; }  // undefined without one

 protected:
  struct Channels {
    int64_t in, out, group;
    bool is_transposed = false;
  };
  Convolution(const char* name, const Channels& channels, const std::vector<int64_t>& kernel,
              bool has_bias, const Initializer& weight_init, const Initializer& bias_init,
              Where where);
  int64_t group() const { return group_; }

 private:
  int64_t group_;
  Parameter weight_, bias_;
};

class Conv2d : public Convolution {
 public:
  Conv2d(int64_t in_channels, int64_t out_channels, const Extents& kernel_size,
         const Extents& stride = 1, const std::string& pad_mode = "same",
         const Extents& padding = 0, const Extents& dilation = 1, int64_t group = 1,
         bool has_bias = false, const Initializer& weight_init = {},
         const Initializer& bias_init = {}, Where where = Where::here());
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  ops::Window2d window_;
};

class Conv2dTranspose : public Convolution {
 public:
  Conv2dTranspose(int64_t in_channels, int64_t out_channels, const Extents& kernel_size,
                  const Extents& stride = 1, const std::string& pad_mode = "same",
                  const Extents& padding = 0, const Extents& output_padding = 0,
                  const Extents& dilation = 1, int64_t group = 1, bool has_bias = false,
                  const Initializer& weight_init = {}, const Initializer& bias_init = {},
                  Where where = Where::here());
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  ops::Window2d window_;
  std::vector<int64_t> output_padding_;
};

class Conv1d : public Convolution {
 public:
  Conv1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size, int64_t stride = 1,
         const std::string& pad_mode = "same", const Extents& padding = 0, int64_t dilation = 1,
         int64_t group = 1, bool has_bias = false, const Initializer& weight_init = {},
         const Initializer& bias_init = {}, Where where = Where::here());
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  ops::Window1d window_;
};

class MaxPool2d : public Cell {
 public:
  explicit MaxPool2d(const Extents& kernel_size = 1, const Extents& stride = 1,
                     const std::string& pad_mode = "valid", const Extents& padding = 0,
                     const Extents& dilation = 1, bool ceil_mode = false)
      : kernel_size_(kernel_size), window_{stride, pad_mode, padding, dilation, ceil_mode} {}
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  std::vector<int64_t> kernel_size_;
  ops::Window2d window_;
};

class AvgPool2d : public Cell {
 public:
  explicit AvgPool2d(const Extents& kernel_size = 1, const Extents& stride = 1,
                     const std::string& pad_mode = "valid", const Extents& padding = 0,
                     bool count_include_pad = true, bool ceil_mode = false)
      : kernel_size_(kernel_size),
        window_{stride, pad_mode, padding, {1, 1}, ceil_mode},
        count_include_pad_(count_include_pad) {}
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  std::vector<int64_t> kernel_size_;
  ops::Window2d window_;
  bool count_include_pad_;
};

class MaxPool1d : public Cell {
 public:
  explicit MaxPool1d(int64_t kernel_size = 1, int64_t stride = 1,
                     const std::string& pad_mode = "valid", const Extents& padding = 0,
                     int64_t dilation = 1, bool ceil_mode = false)
      : kernel_size_(kernel_size), window_{stride, pad_mode, padding, dilation, ceil_mode} {}
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  int64_t kernel_size_;
  ops::Window1d window_;
};

class AvgPool1d : public Cell {
 public:
  explicit AvgPool1d(int64_t kernel_size = 1, int64_t stride = 1,
                     const std::string& pad_mode = "valid", const Extents& padding = 0,
                     bool count_include_pad = true, bool ceil_mode = false)
      : kernel_size_(kernel_size),
        window_{stride, pad_mode, padding, 1, ceil_mode},
        count_include_pad_(count_include_pad) {}
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  int64_t kernel_size_;
  ops::Window1d window_;
  bool count_include_pad_;
};

// output_size {h, w}.
template <Tensor (*kOp)(const Operand&, const std::vector<int64_t>&)>
class AdaptivePool : public Cell {
 public:
  explicit AdaptivePool(const Extents& output_size) : output_size_(output_size) {}
  using Cell::construct;
  Tensor construct(const Tensor& x) override { return kOp(x, output_size_); }

 private:
  std::vector<int64_t> output_size_;
};
using AdaptiveAvgPool2d = AdaptivePool<ops::adaptive_avg_pool2d>;
using AdaptiveMaxPool2d = AdaptivePool<ops::adaptive_max_pool2d>;

}  // namespace ballast::nn
