// Normalisations as cells. Formulas: ops/norm.h; defaults and parameter names: mindspore.nn (2.10).
#pragma once

#include "frontend/nn/cell.h"
#include "frontend/nn/initializer.h"

#include <optional>

namespace ballast::nn {

// x by channel, axis 1. In training by the batch's statistics, which move the running ones:
// moving' = momentum moving + (1 - momentum) batch; otherwise by the running ones, which are
// parameters that are not trained. use_batch_statistics decides regardless of training.
class BatchNorm : public Cell {
 public:
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

  const Parameter& gamma() const { return gamma_; }
  const Parameter& beta() const { return beta_; }
  const Parameter& moving_mean() const { return moving_mean_; }
  const Parameter& moving_variance() const { return moving_variance_; }

 protected:
  BatchNorm(int64_t dims, int64_t num_features, double eps, double momentum, bool affine,
            const Initializer& gamma_init, const Initializer& beta_init,
            std::optional<bool> use_batch_statistics, Where where);

 private:
  int64_t dims_;
  double eps_, momentum_;
  std::optional<bool> use_batch_statistics_;
  Parameter gamma_, beta_, moving_mean_, moving_variance_;
};

// kDims: axes behind the channels. For 1 there may also be none.
template <int64_t kDims>
class BatchNormOf : public BatchNorm {
 public:
  explicit BatchNormOf(int64_t num_features, double eps = 1e-5, double momentum = 0.9,
                       bool affine = true, const Initializer& gamma_init = One(),
                       const Initializer& beta_init = Zero(),
                       std::optional<bool> use_batch_statistics = std::nullopt,
                       Where where = Where::here())
      : BatchNorm(kDims, num_features, eps, momentum, affine, gamma_init, beta_init,
                  use_batch_statistics, where) {}
};
// Classes, and not other names of one, as messages name a cell by its class.
class BatchNorm1d : public BatchNormOf<1> {
  using BatchNormOf::BatchNormOf;
};
class BatchNorm2d : public BatchNormOf<2> {
  using BatchNormOf::BatchNormOf;
};
class BatchNorm3d : public BatchNormOf<3> {
  using BatchNormOf::BatchNormOf;
};

// Over the dimensions from begin_norm_axis on, whose extents are normalized_shape.
class LayerNorm : public Cell {
 public:
  explicit LayerNorm(const Shape& normalized_shape, int64_t begin_norm_axis = -1,
                     double epsilon = 1e-7, const Initializer& gamma_init = One(),
                     const Initializer& beta_init = Zero(), bool affine = true);
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

  const Parameter& gamma() const { return gamma_; }
  const Parameter& beta() const { return beta_; }

 private:
  int64_t begin_norm_axis_;
  double epsilon_;
  Parameter gamma_, beta_;
};

// Over as many last dimensions as normalized_shape has (ops.rms_norm).
class RMSNorm : public Cell {
 public:
  explicit RMSNorm(const Shape& normalized_shape, double epsilon = 1e-6,
                   const Initializer& gamma_init = One());
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

  const Parameter& gamma() const { return gamma_; }

 private:
  int64_t axes_;
  double epsilon_;
  Parameter gamma_;
};

// x [N, C, ...] by sample and group of neighbouring channels.
class GroupNorm : public Cell {
 public:
  GroupNorm(int64_t num_groups, int64_t num_channels, double eps = 1e-5, bool affine = true,
            const Initializer& gamma_init = One(), const Initializer& beta_init = Zero(),
            Where where = Where::here());
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

  const Parameter& gamma() const { return gamma_; }
  const Parameter& beta() const { return beta_; }

 private:
  int64_t num_groups_;
  double eps_;
  Parameter gamma_, beta_;
};

// x [N, C, ...] by sample and channel: as many groups as channels.
class InstanceNorm : public GroupNorm {
 public:
  explicit InstanceNorm(int64_t num_features, double eps = 1e-5, bool affine = true,
                        const Initializer& gamma_init = One(),
                        const Initializer& beta_init = Zero(), Where where = Where::here())
      : GroupNorm(num_features, num_features, eps, affine, gamma_init, beta_init, where) {}
};
using InstanceNorm1d = InstanceNorm;
using InstanceNorm2d = InstanceNorm;
using InstanceNorm3d = InstanceNorm;

}  // namespace ballast::nn
