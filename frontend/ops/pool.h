// Pooling over [N, C, H, W] and [N, C, L].
#pragma once

#include "frontend/ops/conv.h"
#include "frontend/tensor/operand.h"

#include <vector>

namespace ballast::ops {

// Windows of `kernel_size` (down, across; one number stands for both). The first maximum of a
// window wins; NaN wins over numbers.
Tensor max_pool2d(const Operand& x, const std::vector<int64_t>& kernel_size,
                  const Window2d& window = {});
// With count_include_pad padding counts as zeros, else it is left out of the average; what lies
// beyond it (in ceil_mode) is always left out.
Tensor avg_pool2d(const Operand& x, const std::vector<int64_t>& kernel_size,
                  const Window2d& window = {}, bool count_include_pad = true);
// Windows [floor(i H / h), ceil((i + 1) H / h)) and likewise across, for a result of output_size =
// {h, w}; -1 stands for x's own extent.
Tensor adaptive_avg_pool2d(const Operand& x, const std::vector<int64_t>& output_size);
Tensor adaptive_max_pool2d(const Operand& x, const std::vector<int64_t>& output_size);

// Along the last axis of [N, C, L].
Tensor max_pool1d(const Operand& x, int64_t kernel_size, const Window1d& window = {});
Tensor avg_pool1d(const Operand& x, int64_t kernel_size, const Window1d& window = {},
                  bool count_include_pad = true);

}  // namespace ballast::ops
