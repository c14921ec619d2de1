// Convolution and pooling over [N, C, H, W] as cells. Windows: ops/conv.h; defaults: mindspore.nn
// (2.10).
#pragma once

#include "frontend/nn/cell.h"
#include "frontend/nn/initializer.h"
#include "frontend/ops/conv.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace ballast::nn {

// One number for all, or {down, across} (paddings: {top, bottom, left, right}).
struct Extents : std::vector<int64_t> {
  Extents(int64_t all) : std::vector<int64_t>{all} {}
  Extents(std::initializer_list<int64_t> list) : std::vector<int64_t>(list) {}
};

// weight [out, in / group, kernel]: HeUniform(sqrt(5)), bias [out]: uniform in +-1/sqrt(fan_in).
class Conv2d : public Cell {
 public:
  Conv2d(int64_t in_channels, int64_t out_channels, const Extents& kernel_size,
         const Extents& stride = 1, const std::string& pad_mode = "same",
         const Extents& padding = 0, const Extents& dilation = 1, int64_t group = 1,
         bool has_bias = false, const Initializer& weight_init = {},
         const Initializer& bias_init = {}, Where where = Where::here());
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

  const Parameter& weight() const { return weight_; }
  const Parameter& bias() const { return bias_; }  // undefined without one

 private:
  ops::Window2d window_;
  int64_t group_;
  Parameter weight_, bias_;
};

class MaxPool2d : public Cell {
 public:
  explicit MaxPool2d(const Extents& kernel_size = 1, const Extents& stride = 1,
                     const std::string& pad_mode = "valid", const Extents& padding = 0,
                     const Extents& dilation = 1)
      : kernel_size_(kernel_size), window_{stride, pad_mode, padding, dilation} {}
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
                     bool count_include_pad = true)
      : kernel_size_(kernel_size),
        window_{stride, pad_mode, padding, {1, 1}},
        count_include_pad_(count_include_pad) {}
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  std::vector<int64_t> kernel_size_;
  ops::Window2d window_;
  bool count_include_pad_;
};

}  // namespace ballast::nn
