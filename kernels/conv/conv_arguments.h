// What plans of convolutions hand to kernels beside their operands: numbers, and the epilogue's
// operands, which a kernel knows as EpilogueInputs (conv_recipe.h).
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/plan/halide_runtime.h"

#include <vector>

namespace ballast::kernels {

inline HostArg number(int64_t value) { return checked_int32(value); }

// Of x, or dx, of y, or dy, and of the weights, or dw.
inline Shape x_shape(const ConvConfig& c) { return {c.batch, c.in_channels, c.height, c.width}; }
inline Shape y_shape(const ConvConfig& c) {
  return {c.batch, c.out_channels, c.out_h(), c.out_w()};
}
inline Shape w_shape(const ConvConfig& c) {
  return {c.out_channels, c.in_channels / c.groups, c.kernel_h, c.kernel_w};
}

// Channels of a group.
inline int64_t group_inputs(const ConvConfig& c) { return c.in_channels / c.groups; }
inline int64_t group_outputs(const ConvConfig& c) { return c.out_channels / c.groups; }

inline bool has_strides(const ConvConfig& c) { return c.stride_h > 1 || c.stride_w > 1; }

// stride_h, stride_w, top, left, dilation_h, dilation_w.
std::vector<HostArg> conv_geometry(const ConvConfig& config);

// They lie behind x and w, in slots 0 and 1, in the order of ConvEpilogue; then comes the result.
// What an epilogue does not have is bound to w, at strides of 0, and not used.
class EpilogueOperands {
 public:
  // `channels`: of the result, as the kernel counts them: {channels of a group, groups}, or {all}.
  EpilogueOperands(const ConvEpilogue& epilogue, const Shape& channels);

  // Laid out as the result.
  Operand residual(const Operand& result) const;
  // What EpilogueInputs declares, in its order.
  void append_to(std::vector<HostArg>& args, const Operand& result) const;

  ConvEpilogue parts;
  Operand bias, scale, shift;
  uint32_t residual_slot, out;
};

}  // namespace ballast::kernels
