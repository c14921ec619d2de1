// Products with a chain of pointwise steps behind them, compiled at run time for their operands.
// Private to this folder. Needs Halide.
#pragma once

#include "kernels/matmul/matmul_choice.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/recipe/jit_kernel.h"

#include <vector>

namespace ballast::kernels {

// The operands of matmul_tiles, a kernel of parts or matmul_general, as the kernel takes them.
struct FusedMatmulOperands {
  Operand a, b;
  // panel_step, last_panel, first_panel, panels, tiles_per_group, panels_per_group, where there are
  // any
  std::vector<int32_t> panels;
  std::vector<Operand> of_chain;  // its inputs but the first, over C's dimensions
  Operand out;
};

// The kernel of `tile`, nullptr: the general one, with all extents and strides fixed. The chain's
// first input is the sum; its last step is the result. The same bits as one by one.
JitKernel build_fused_matmul(DeviceClass device_class, const MatmulTile* tile,
                             const FusedMatmulOperands& operands, const FusedPointwise& chain);

}  // namespace ballast::kernels
