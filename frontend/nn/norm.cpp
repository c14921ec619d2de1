#include "frontend/nn/norm.h"

#include "frontend/ops/ops.h"

namespace ballast::nn {

BatchNorm::BatchNorm(int64_t dims, int64_t num_features, double eps, double momentum, bool affine,
                     const Initializer& gamma_init, const Initializer& beta_init,
                     std::optional<bool> use_batch_statistics, Where where)
    : dims_(dims), eps_(eps), momentum_(momentum), use_batch_statistics_(use_batch_statistics) {
  if (num_features < 1 || !(momentum >= 0 && momentum <= 1)) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[BatchNorm{}d] {} features, momentum {}: expected at least 1, and 0 to 1 (at {})", dims,
         num_features, momentum, to_string(where));
  }
  gamma_ = add("gamma", gamma_init({num_features}), affine);
  beta_ = add("beta", beta_init({num_features}), affine);
  moving_mean_ = add("moving_mean", Tensor::zeros({num_features}), /*requires_grad=*/false);
  moving_variance_ = add("moving_variance", Tensor::ones({num_features}), /*requires_grad=*/false);
}

Tensor BatchNorm::construct(const Tensor& x) {
  constexpr const char* kTaken[] = {"[N, C] or [N, C, L]", "[N, C, H, W]", "[N, C, D, H, W]"};
  const int64_t lowest = dims_ == 1 ? 2 : dims_ + 2;
  if (x.rank() < lowest || x.rank() > dims_ + 2) {
    fail(BALLAST_INVALID_ARGUMENT, "[BatchNorm{}d] takes {}, got {}", dims_, kTaken[dims_ - 1],
         to_string(x.type()));
  }
  if (!use_batch_statistics_.value_or(is_training())) {
    return ops::batch_norm_inference(x, gamma_, beta_, moving_mean_, moving_variance_, eps_);
  }
  // The op's momentum is the part that is new.
  ops::BatchNormed normed = ops::batch_norm(x, gamma_, beta_, moving_mean_, moving_variance_, eps_,
                                            /*momentum=*/1 - momentum_);
  moving_mean_.assign(normed.running_mean);
  moving_variance_.assign(normed.running_variance);
  return normed.y;
}

LayerNorm::LayerNorm(const Shape& normalized_shape, int64_t begin_norm_axis, double epsilon,
                     const Initializer& gamma_init, const Initializer& beta_init, bool affine)
    : begin_norm_axis_(begin_norm_axis), epsilon_(epsilon) {
  gamma_ = add("gamma", gamma_init(normalized_shape), affine);
  beta_ = add("beta", beta_init(normalized_shape), affine);
}

Tensor LayerNorm::construct(const Tensor& x) {
  return ops::layer_norm(x, gamma_, beta_, begin_norm_axis_, epsilon_).y;
}

RMSNorm::RMSNorm(const Shape& normalized_shape, double epsilon, const Initializer& gamma_init)
    : axes_(static_cast<int64_t>(normalized_shape.size())), epsilon_(epsilon) {
  gamma_ = add("gamma", gamma_init(normalized_shape));
}

Tensor RMSNorm::construct(const Tensor& x) { return ops::rms_norm(x, gamma_, -axes_, epsilon_).y; }

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, double eps, bool affine,
                     const Initializer& gamma_init, const Initializer& beta_init, Where where)
    : num_groups_(num_groups), eps_(eps) {
  if (num_groups < 1 || num_channels < 1 || num_channels % num_groups != 0) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[GroupNorm] {} channels in {} groups: expected equal groups (at {})", num_channels,
         num_groups, to_string(where));
  }
  gamma_ = add("gamma", gamma_init({num_channels}), affine);
  beta_ = add("beta", beta_init({num_channels}), affine);
}

Tensor GroupNorm::construct(const Tensor& x) {
  return ops::group_norm(x, num_groups_, gamma_, beta_, eps_).y;
}

}  // namespace ballast::nn
