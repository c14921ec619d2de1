#include "kernels/conv/gpu/conv_strips.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/kernels.h"
#include "kernels/reduce/parts.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

constexpr int64_t kQuad = 4;  // channels of a group that an item takes together

// Whether there are kernels for the window and its stride.
bool has_kernels(const ConvConfig& c) {
  const bool is_square = c.kernel_h == c.kernel_w && c.stride_h == c.stride_w;
  const bool is_known = (c.stride_h <= 2 && (c.kernel_h == 3 || c.kernel_h == 5)) ||
                        (c.stride_h == 1 && c.kernel_h == 7);
  return is_square && is_known && c.dilation_h == 1 && c.dilation_w == 1 &&
         elements_of(x_shape(c)) > 0 && elements_of(y_shape(c)) > 0;
}

// Whether items take channels of the results by fours, of so many of a group.
bool is_quads(const ConvConfig& c, int64_t outputs) {
  return c.kernel_h == 3 && c.stride_h == 1 && outputs % kQuad == 0;
}
// Others know one input channel; these go over all of a group, which few items take long for.
bool suits_channels(const ConvConfig& c, int64_t inputs, int64_t outputs) {
  constexpr int64_t kMostInputs = 16;
  return inputs == 1 || (is_quads(c, outputs) && inputs <= kMostInputs);
}

std::string kernel_for(const std::string& name, const ConvConfig& c, int64_t outputs) {
  return fmt::format("{}_{}_{}{}", name, c.kernel_h, c.stride_h,
                     is_quads(c, outputs) ? "_quads" : "");
}

Operand floats(uint32_t slot, int64_t count) { return dense_operand(slot, DType::kF32, {count}); }

// Of `problem`, from slots 0 and 1.
Plan plan_strips(const std::string& kernel, const ConvProblem& p, const EpilogueOperands& terms) {
  const Operand out =
      dense_operand(terms.out, DType::kF32, {p.batch, p.groups * p.outputs, p.out_h, p.out_w});
  std::vector<HostArg> args = {number(p.top),
                               number(p.left),
                               number(p.in_w),
                               number(p.in_h),
                               floats(0, p.batch * p.groups * p.inputs * p.in_h * p.in_w),
                               floats(1, p.groups * p.outputs * p.inputs * p.window())};
  terms.append_to(args, out);
  for (const int64_t value : {p.inputs, p.outputs, p.in_step, p.out_step, p.group_step}) {
    args.emplace_back(number(value));
  }
  args.emplace_back(out);
  Recorder recorder(kNoAliases);
  recorder.call(kernel, DeviceClass::kGpu, args);
  return recorder.finish();
}

// What a work-group of the kernels towards the weights takes of dy at a time.
struct WeightStrip {
  int64_t rows, columns, items = 128;
  explicit WeightStrip(const ConvConfig& c)
      : rows(c.kernel_h == 5 && c.stride_h == 2 ? 4 : 7),
        columns(c.kernel_h > 3 && c.stride_h == 1 ? 2 : 1) {}
};

}  // namespace

bool is_strips(const ConvConfig& c) {
  return has_kernels(c) && suits_channels(c, group_inputs(c), group_outputs(c));
}
bool is_strips_input_grad(const ConvConfig& c) {
  return has_kernels(c) && suits_channels(c, group_outputs(c), group_inputs(c));
}
bool is_strips_weight_grad(const ConvConfig& c) { return has_kernels(c); }

Plan plan_conv2d_strips(const ConvConfig& c, const ConvEpilogue& e) {
  return plan_strips(kernel_for("conv_strips", c, group_outputs(c)), forward_problem(c),
                     EpilogueOperands(e, {c.out_channels}));
}

Plan plan_conv2d_input_grad_strips(const ConvConfig& c) {
  ConvProblem p = input_grad_problem(c);
  if (c.stride_h > 1) p.top = c.top, p.left = c.left;
  return plan_strips(kernel_for("conv_input_grad_strips", c, p.outputs), p,
                     EpilogueOperands({}, {c.in_channels}));
}

// As many parts of dy as keep a GPU busy, where an item would go over many strips otherwise: their
// sum is a launch of its own.
Plan plan_conv2d_weight_grad_strips(const ConvConfig& c) {
  constexpr int64_t kGroups = 528, kFewTurns = 4;
  const int64_t outputs = group_outputs(c), inputs = group_inputs(c),
                channels = is_quads(c, outputs) ? kQuad : 1, blocks = c.out_channels / channels,
                taps = c.kernel_h * c.kernel_w;
  const WeightStrip strip(c);
  const int64_t all =
                    c.batch * ceil_div(c.out_h(), strip.rows) * ceil_div(c.out_w(), strip.columns),
                all_turns = ceil_div(all, strip.items);
  int64_t parts = 1;
  if (all_turns > kFewTurns) parts = std::clamp<int64_t>(kGroups / (blocks * inputs), 1, all_turns);
  const int64_t turns = ceil_div(all_turns, parts);
  parts = ceil_div(all_turns, turns);
  const int64_t weights = elements_of(w_shape(c));
  const Operand dw{2,
                   DType::kF32,
                   {taps, channels, inputs, blocks, parts},
                   {1, inputs * taps, taps, channels * inputs * taps, weights},
                   {}};
  Recorder recorder(kNoAliases);
  recorder.call(
      kernel_for("conv_weight_strips", c, outputs), DeviceClass::kGpu,
      {number(c.top), number(c.left), number(c.out_w()), number(c.out_h()), number(c.width),
       number(c.height), number(c.batch), floats(0, elements_of(y_shape(c))),
       floats(1, elements_of(x_shape(c))), number(outputs), number(turns), dw});
  return plan_sum_of_parts(DeviceClass::kGpu, recorder.finish(), parts, weights);
}

}  // namespace ballast::kernels
