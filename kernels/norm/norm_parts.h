// The launches that normalisations are put together from (norm_generator.cpp and
// norm_elementwise_generator.cpp). `kind` is "layer", "rms", "batch" or "inference".
#pragma once

#include "kernels/plan/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// A tensor, outermost dimension first, and the strides with which its statistics (mean, rstd) and
// parameters (gamma, beta) follow its dimensions.
struct NormView {
  Shape shape;
  std::vector<int64_t> statistic, parameter;
};

// The kernels of rows from this length on have more of a GPU's work-items for each.
constexpr int64_t kLongLine = 2048;

// Lines along the second axis of `lines`, [count, length] or [outer, length, inner]. Inputs x;
// outputs by line the mean and what `kind` wants.
Plan norm_moments(DeviceClass device_class, const std::string& kind, const Shape& lines,
                  float epsilon);
// Inputs x, gamma, beta, mean, rstd (rms: x, gamma, rstd; inference: a variance for rstd); output
// y.
Plan norm_apply(DeviceClass device_class, const std::string& kind, const NormView& view,
                float epsilon = 0);
// Lines as above. Inputs dy, x, rstd, gamma[length], mean (rms: no mean; batch: no gamma); outputs
// by line the sum of dy' x', and (not rms) that of dy'.
Plan norm_sums(DeviceClass device_class, const std::string& kind, const Shape& lines);
// GPUs: the same without gamma, where line l has the statistics l / each % count.
Plan norm_channel_sums(int64_t lines, int64_t length, int64_t each, int64_t count);
// Inputs dy, x, gamma, rstd, sums of dy' x', mean, sums of dy' (rms: neither of the last); output
// dx, where `count` elements share their moments.
Plan norm_dx(DeviceClass device_class, const std::string& kind, const NormView& view,
             int64_t count);

// Inputs lines[count, length]; output their sum.
Plan norm_sum_lines(DeviceClass device_class, int64_t count, int64_t length);
// GPUs: the same of two such inputs. Weighted: gamma[length] follows them, and the outputs are
// followed by both sums times gamma.
Plan norm_sum_two_lines(int64_t count, int64_t length, bool is_weighted = false);
// GPUs. Inputs two tensors[batch, groups, each], gamma[groups, each]; outputs by batch and group
// the sums of each tensor times gamma.
Plan norm_group_sums(int64_t batch, int64_t groups, int64_t each);

// Of a gradient's operands.
struct NormGradSlots {
  uint32_t dy, x, gamma, mean, rstd, dx, dgamma, dbeta;
};
// Where all are there, in this order.
constexpr NormGradSlots kNormGradSlots = {0, 1, 2, 3, 4, 5, 6, 7};

}  // namespace ballast::kernels
