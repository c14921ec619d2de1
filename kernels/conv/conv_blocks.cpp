#include "kernels/conv/conv_blocks.h"

#include "kernels/blocks.h"
#include "kernels/conv/conv_arguments.h"
#include "kernels/kernels.h"
#include "kernels/reduce/parts.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

constexpr DeviceClass kGpu = DeviceClass::kGpu;

int64_t group_inputs(const ConvConfig& c) { return c.in_channels / c.groups; }
int64_t group_outputs(const ConvConfig& c) { return c.out_channels / c.groups; }
int64_t taps(const ConvConfig& c) { return c.kernel_h * c.kernel_w; }
// With those that fill up the last chunk.
int64_t steps_of(int64_t count) { return ceil_div(count, kBlockSteps) * kBlockSteps; }

Operand x_operand(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32, {c.batch, c.in_channels, c.height, c.width});
}
Operand y_operand(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32, {c.batch, c.out_channels, c.out_h(), c.out_w()});
}
Operand w_operand(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32,
                       {c.out_channels, group_inputs(c), c.kernel_h, c.kernel_w});
}

Plan plan(const char* name, const Block& block, const ConvConfig& c,
          std::vector<HostArg> operands) {
  std::vector<HostArg> args = conv_geometry(c);
  args.insert(args.end(), operands.begin(), operands.end());
  const std::string kernel = fmt::format("{}_{}", name, block.rows);
  Recorder recorder(kNoAliases);
  recorder.call(aot_kernel(kernel, kGpu), kernel, args);
  return recorder.finish();
}

}  // namespace

bool is_blocked(const ConvConfig& c) {
  constexpr int64_t kLeastOutputs = 8, kLeastInputs = 2;
  return c.batch * c.out_h() * c.out_w() > 0 && group_outputs(c) >= kLeastOutputs &&
         group_inputs(c) >= kLeastInputs;
}

bool is_blocked_input_grad(const ConvConfig& c) {
  // A block multiplies zeros in rows that it has no channels for and between the strides; a
  // work-item per element visits hits alone, at some tenth of a block's speed.
  constexpr int64_t kMostWaste = 10;
  const int64_t rows = kBlocks.back().rows, inputs = group_inputs(c);
  return is_blocked(c) &&
         ceil_div(inputs, rows) * rows * c.stride_h * c.stride_w <= kMostWaste * inputs;
}

Plan plan_conv2d_blocks(const ConvConfig& c, const ConvEpilogue& e) {
  const EpilogueOperands terms(e, {c.out_channels});
  const Operand out = y_operand(terms.out, c);
  std::vector<HostArg> operands = {x_operand(0, c), w_operand(1, c)};
  terms.append_to(operands, out);
  operands.insert(operands.end(), {number(group_outputs(c)), out});
  const int64_t by_channels = steps_of(group_inputs(c)) * taps(c),
                by_taps = steps_of(group_inputs(c) * taps(c));
  // Finding a tap takes divisions.
  const bool has_few_channels = by_channels >= 2 * by_taps;
  const BlockedProduct product = {group_outputs(c), c.batch * c.out_h() * c.out_w(), c.groups,
                                  has_few_channels ? by_taps : by_channels};
  return plan(has_few_channels ? "conv_blocks_by_taps" : "conv_blocks", choose_block(product), c,
              operands);
}

Plan plan_conv2d_input_grad_blocks(const ConvConfig& c) {
  const int64_t steps = steps_of(group_outputs(c)) * taps(c);
  const BlockedProduct product = {group_inputs(c), c.batch * c.height * c.width, c.groups, steps};
  return plan("conv_input_grad_blocks", choose_block(product), c,
              {y_operand(0, c), w_operand(1, c), number(group_outputs(c)), x_operand(2, c)});
}

// Weights are few results of many steps: parts of the steps, which groups share out, are added
// afterwards.
Plan plan_conv2d_weight_grad_blocks(const ConvConfig& c) {
  constexpr int64_t kLeastChunks = 8;  // of a part
  const int64_t chunks = c.batch * ceil_div(c.out_h() * c.out_w(), kBlockSteps);
  BlockedProduct product = {group_outputs(c), group_inputs(c) * taps(c), c.groups, 0};
  const Block& block = product.rows >= kBlocks[1].rows ? kBlocks[1] : kBlocks[2];
  const int64_t wanted = ceil_div(2 * kBlockUnits, product.groups(block));
  const int64_t of_part = std::max(ceil_div(chunks, wanted), kLeastChunks);
  const int64_t parts = std::max<int64_t>(ceil_div(chunks, of_part), 1);
  Operand dw = w_operand(2, c);
  dw.strides.push_back(c.out_channels * product.columns);
  dw.extents.push_back(parts);
  const Plan sums =
      plan("conv_weight_grad_blocks", block, c,
           {y_operand(0, c), x_operand(1, c), number(group_outputs(c)), number(of_part), dw});
  return plan_sum_of_parts(kGpu, sums, parts, c.out_channels * product.columns);
}

}  // namespace ballast::kernels
