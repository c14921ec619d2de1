// The layers: this header gives all of them. Defaults are those of mindspore.nn (2.10). See cell.h
// for what a Cell is.
#pragma once

#include "frontend/nn/activation.h"
#include "frontend/nn/attention.h"
#include "frontend/nn/cell.h"
#include "frontend/nn/container.h"
#include "frontend/nn/conv.h"
#include "frontend/nn/initializer.h"
#include "frontend/nn/lstm.h"
#include "frontend/nn/norm.h"

#include <optional>
#include <string>

namespace ballast::nn {

// x W^T + b; weight [out, in]: HeUniform(sqrt(5)), bias [out]: uniform in +-1/sqrt(in).
class Dense : public Cell {
 public:
  Dense(int64_t in_channels, int64_t out_channels, bool has_bias = true,
        const Initializer& weight_init = {}, const Initializer& bias_init = {},
        Where where = Where::here());
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

  const Parameter& weight() const { return weight_; }
  const Parameter& bias() const { return bias_; }  // undefined without one

 private:
  Parameter weight_, bias_;
};

// The rows of embedding_table [vocab_size, embedding_size] by index. Row padding_idx begins as
// zeros and gets no gradient.
class Embedding : public Cell {
 public:
  Embedding(int64_t vocab_size, int64_t embedding_size, const Initializer& table_init = Normal(),
            std::optional<int64_t> padding_idx = std::nullopt, Where where = Where::here());
  using Cell::construct;
  Tensor construct(const Tensor& indices) override;

  const Parameter& embedding_table() const { return embedding_table_; }

 private:
  std::optional<int64_t> padding_idx_;
  Parameter embedding_table_;
};

// In training: zeroes with probability p and scales what stays by 1 / (1 - p); else the identity.
class Dropout : public Cell {
 public:
  explicit Dropout(double p = 0.5, Where where = Where::here());
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  double p_;
};

// x [N, C, ...] with its other extents times scale_factor; modes: ops/interpolate.h.
class Upsample : public Cell {
 public:
  explicit Upsample(int64_t scale_factor, const std::string& mode = "nearest",
                    bool align_corners = false)
      : scale_factor_(scale_factor), mode_(mode), align_corners_(align_corners) {}
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  int64_t scale_factor_;
  std::string mode_;
  bool align_corners_;
};

// [B, ...] -> [B, n].
class Flatten : public Cell {
 public:
  using Cell::construct;
  Tensor construct(const Tensor& x) override;
};

}  // namespace ballast::nn
