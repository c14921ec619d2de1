// What chains of steps share, whether plan_fused or plan_fused_rows compiles them. Everyone outside
// this library calls these two. Thread-safe.
#pragma once

#include "kernels/kernels.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// Per input, for each dimension of the outputs' shape (outermost first): elements between
// neighbours; 0 repeats.
using InputStrides = std::vector<std::vector<int64_t>>;

// As plan_fused, but the inputs' shapes are of no account. The chain has been checked.
Plan plan_fused_strided(DeviceClass device_class, const FusedPointwise& fused,
                        const InputStrides& strides);

// Whether the step's op is a row of pointwise_ops.inc that takes arguments of these dtypes.
bool is_pointwise_step(const FusedStep& step, const std::vector<DType>& args);
// Throws kInvalidArgument unless every step refers to what is before it and is_valid.
void check_steps(const FusedPointwise& fused,
                 bool (*is_valid)(const FusedStep& step, const std::vector<DType>& args));

// Whether the chain's one output is its last step.
bool gives_last_step(const FusedPointwise& fused);

// Steps and outputs as text, for the keys of caches; the name of a chain's kernel.
std::string text_of(const FusedPointwise& fused);
std::string typed_text_of(const FusedPointwise& fused);  // the inputs' types before it
std::string label_of(const FusedPointwise& fused);

}  // namespace ballast::kernels
