#include "kernels/conv/conv_arguments.h"

namespace ballast::kernels {

std::vector<HostArg> conv_geometry(const ConvConfig& c) {
  std::vector<HostArg> args;
  for (int64_t value : {c.stride_h, c.stride_w, c.top, c.left, c.dilation_h, c.dilation_w}) {
    args.emplace_back(number(value));
  }
  return args;
}
namespace {

constexpr uint32_t kAnySlot = 1;

}  // namespace

EpilogueOperands::EpilogueOperands(const ConvEpilogue& epilogue, const Shape& channels)
    : parts(epilogue) {
  uint32_t slot = 2;
  const auto place = [&](bool is_given) { return is_given ? slot++ : kAnySlot; };
  const auto per_channel = [&](bool is_given) {
    Operand operand{place(is_given), DType::kF32, channels, Shape(channels.size()), {}};
    int64_t step = is_given ? 1 : 0;
    for (size_t d = 0; d < channels.size(); step *= channels[d++]) operand.strides[d] = step;
    return operand;
  };
  bias = per_channel(parts.has_bias);
  scale = per_channel(parts.has_scale);
  shift = per_channel(parts.has_scale);
  residual_slot = place(parts.has_residual);
  out = slot;
}

Operand EpilogueOperands::residual(const Operand& result) const {
  Operand operand = result;
  operand.slot = residual_slot;
  if (!parts.has_residual) operand.strides.assign(operand.strides.size(), 0);
  return operand;
}

void EpilogueOperands::append_to(std::vector<HostArg>& args, const Operand& result) const {
  args.insert(args.end(),
              {bias, scale, shift, residual(result), int32_t{parts.has_bias},
               int32_t{parts.has_scale}, int32_t{parts.has_residual}, int32_t{parts.has_relu}});
}

}  // namespace ballast::kernels
