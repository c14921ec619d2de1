// Reductions of what a chain of pointwise steps gives, compiled at run time for its operands.
// Private to this folder. Needs Halide.
#pragma once

#include "kernels/pointwise/pointwise.h"
#include "kernels/recipe/jit_kernel.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// The operands of reduce_rows or reduce_columns, as the kernel takes them.
struct FusedReduceOperands {
  Operand in;                     // what the chain gives, which is nowhere: its extents count
  std::vector<Operand> of_chain;  // the inputs, over the same dimensions
  std::vector<HostArg> scalars;   // chunk, divisor, what a work-group takes
  Operand out;
};

// Appends the launch; the chain's last step is what is reduced. The same bits as one by one. Only
// which operands repeat is compiled, so shapes share their kernels.
void record_fused_reduce(Recorder& recorder, DeviceClass device_class, const std::string& kind,
                         const FusedPointwise& chain, const FusedReduceOperands& operands);

}  // namespace ballast::kernels
