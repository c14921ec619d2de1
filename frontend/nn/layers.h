// The layers. Defaults are MindSpore's. See cell.h for what a Cell is.
#pragma once

#include "frontend/nn/cell.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ballast::nn {

// x W^T + b; weight [out, in]: HeUniform(sqrt(5)), bias [out]: uniform in +-1/sqrt(in).
class Dense : public Cell {
 public:
  Dense(int64_t in_channels, int64_t out_channels, bool has_bias = true);
  Tensor construct(const Tensor& x) override;

  const Parameter& weight() const { return weight_; }
  const Parameter& bias() const { return bias_; }  // undefined without one

 private:
  Parameter weight_, bias_;
};

class ReLU : public Cell {
 public:
  Tensor construct(const Tensor& x) override;
};

class Tanh : public Cell {
 public:
  Tensor construct(const Tensor& x) override;
};

class Sigmoid : public Cell {
 public:
  Tensor construct(const Tensor& x) override;
};

class GELU : public Cell {
 public:
  Tensor construct(const Tensor& x) override;
};

class Softmax : public Cell {
 public:
  explicit Softmax(int64_t axis = -1) : axis_(axis) {}
  Tensor construct(const Tensor& x) override;

 private:
  int64_t axis_;
};

// In training: zeroes with probability p and scales what stays by 1 / (1 - p); else the identity.
class Dropout : public Cell {
 public:
  explicit Dropout(double p = 0.5) : p_(p) {}
  Tensor construct(const Tensor& x) override;

 private:
  double p_;
};

// [B, ...] -> [B, n].
class Flatten : public Cell {
 public:
  Tensor construct(const Tensor& x) override;
};

// Cells in a row: SequentialCell net(Flatten(), Dense(784, 10)). Parameters are named by position.
class SequentialCell : public Cell {
 public:
  template <class... Cells, class = std::enable_if_t<(std::is_base_of_v<Cell, Cells> && ...)>>
  explicit SequentialCell(Cells... cells) {
    (append(std::make_shared<Cells>(std::move(cells))), ...);
  }
  void append(std::shared_ptr<Cell> cell);
  Tensor construct(const Tensor& x) override;

 private:
  std::vector<std::shared_ptr<Cell>> cells_;
};

}  // namespace ballast::nn
