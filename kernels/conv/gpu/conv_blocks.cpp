#include "kernels/conv/gpu/conv_blocks.h"

#include "kernels/conv/conv_arguments.h"
#include "kernels/conv/products/conv_products.h"
#include "kernels/kernels.h"
#include "kernels/plan/blocks.h"
#include "kernels/plan/workspace.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

constexpr DeviceClass kGpu = DeviceClass::kGpu;

int64_t taps(const ConvConfig& c) { return c.kernel_h * c.kernel_w; }
int64_t chunks_of(int64_t steps) { return ceil_div(steps, kBlockSteps); }
bool are_whole_chunks(int64_t steps) { return steps % kBlockSteps == 0; }

// With dimensions for what a kernel tells apart: parts, of whole tensors.
Operand tensor(uint32_t slot, const Shape& shape, int64_t parts = 1) {
  Operand operand = dense_operand(slot, DType::kF32, shape);
  operand.extents.push_back(parts);
  operand.strides.push_back(elements_of(shape));
  return operand;
}
Operand without_parts(Operand operand) {
  operand.extents.pop_back();
  operand.strides.pop_back();
  return operand;
}
Operand x_operand(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32, x_shape(c));
}
Operand y_operand(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32, y_shape(c));
}
Operand w_operand(uint32_t slot, const ConvConfig& c) {
  return dense_operand(slot, DType::kF32, w_shape(c));
}

// How a product is shared out: its blocks, and parts of its steps, which are added afterwards.
struct Shares {
  const Block& block;
  int64_t parts;
};

// Groups of 64 rows that fill a unit, more or less: 3x3 convolutions on an H100 take 0.8 us a chunk
// with one a unit, 1.2 with two and 1.7 with three.
constexpr int64_t kFillingGroups = 3 * kBlockUnits;
constexpr int64_t kLeastChunks = 8;  // of a part

// Of operands that are gathered: of 128 rows there are too few groups.
const Block& choose_gathering_block(const BlockedProduct& product) {
  return kBlocks[product.rows > kBlocks[2].rows ? 1 : 2];
}

// `chunks` of steps, of which parts have equally many. Parts cost a launch and their way through
// memory, which they are worth where there is not a group for each unit.
Shares choose_shares(const BlockedProduct& product, int64_t chunks, bool may_split = true) {
  constexpr int64_t kMostParts = 16;
  Shares shares{choose_gathering_block(product), 1};
  const int64_t groups = product.groups(shares.block);
  if (!may_split || groups >= kBlockUnits) return shares;
  for (int64_t parts = 2; parts <= kMostParts && parts * groups <= kFillingGroups; ++parts) {
    if (chunks % parts == 0 && chunks / parts >= kLeastChunks) shares.parts = parts;
  }
  return shares;
}

void call(Recorder& recorder, const std::string& kernel, const std::vector<HostArg>& args) {
  recorder.call(aot_kernel(kernel, kGpu), kernel, args);
}

std::string of_rows(const std::string& name, const Block& block) {
  return fmt::format("{}_{}", name, block.rows);
}

// The sum of `parts` of results of `shape` (pixels innermost), and what comes after it.
void add_parts(Recorder& recorder, const Operand& parts, const EpilogueOperands& terms,
               const Operand& out) {
  std::vector<HostArg> args = {parts};
  terms.append_to(args, out);
  args.emplace_back(out);
  call(recorder, "conv_parts", args);
}
void add_parts(Recorder& recorder, uint32_t slot, int64_t parts, int64_t results) {
  EpilogueOperands terms({}, {1});
  terms.out = 2;
  add_parts(recorder, tensor(slot, {1, 1, results}, parts), terms,
            dense_operand(2, DType::kF32, {1, 1, results}));
}

// What the kernel towards x knows of an axis: taps of a phase, of dy before it, and of the window.
struct PhaseTaps {
  int64_t count, first, tap;
  PhaseTaps(int64_t padding, int64_t kernel, int64_t stride) {
    if (stride == 1) {
      count = kernel, first = padding, tap = 0;
      return;
    }
    // Row i stride + phase of x sees tap phase + padding - stride e of dy's row i + e.
    const int64_t last = (stride - 1 + padding) / stride,
                  least = -((kernel - 1 - padding) / stride);
    first = last;
    tap = padding - stride * last;
    count = last - least + 1;
  }
};

}  // namespace

bool is_blocked(const ConvConfig& c) {
  constexpr int64_t kLeastOutputs = 8, kLeastInputs = 2;
  constexpr int64_t kMost = 1 << 20;  // what kernels divide exactly (quick_over)
  const int64_t pixels = c.out_h() * c.out_w();
  return c.batch * pixels > 0 && group_outputs(c) >= kLeastOutputs &&
         group_inputs(c) >= kLeastInputs && pixels <= kMost &&
         c.batch * chunks_of(pixels) <= kMost && c.in_channels * taps(c) <= kMost &&
         c.out_channels * taps(c) <= kMost;
}

bool is_blocked_input_grad(const ConvConfig& c) {
  // A block multiplies zeros in rows that it has no channels for and taps that a phase does not
  // have; a work-item per element visits hits alone, at some tenth of a block's speed.
  constexpr int64_t kMostWaste = 10;
  if (!is_blocked(c) || (has_strides(c) && (c.dilation_h > 1 || c.dilation_w > 1))) return false;
  const PhaseTaps h(c.top, c.kernel_h, c.stride_h), w(c.left, c.kernel_w, c.stride_w);
  const int64_t block = kBlocks.back().rows, inputs = group_inputs(c),
                rows = ceil_div(inputs * c.stride_h * c.stride_w, block) * block;
  return rows * h.count * w.count <= kMostWaste * inputs * taps(c);
}

bool is_blocked_product(const ConvConfig& c, const ConvEpilogue& e) {
  return is_product(DeviceClass::kGpu, c, e) && c.groups == 1 && c.height * c.width % 4 == 0 &&
         c.in_channels % 4 == 0 && c.out_channels % 4 == 0;
}

Plan plan_conv2d_blocks(const ConvConfig& c, const ConvEpilogue& e) {
  const EpilogueOperands terms(e, {c.out_channels});
  const int64_t by_channels = chunks_of(group_inputs(c)) * taps(c),
                by_taps = chunks_of(group_inputs(c) * taps(c));
  const bool has_few_channels = by_channels >= 2 * by_taps;  // finding a tap takes divisions
  const int64_t columns = c.batch * c.out_h() * c.out_w();
  // An epilogue that the product does not know changes no sum.
  const bool may_split = !is_blocked_product(c);
  const Shares shares = choose_shares({group_outputs(c), columns, c.groups, 0},
                                      has_few_channels ? by_taps : by_channels, may_split);
  std::string kernel = "conv_blocks";
  if (has_few_channels) {
    kernel += "_by_taps";
  } else if (are_whole_chunks(group_inputs(c))) {
    kernel += "_whole";
  }
  Recorder recorder(kNoAliases);
  Workspace workspace(terms.out + 1);
  const bool is_split = shares.parts > 1;
  const uint32_t slot =
      is_split ? workspace.add_floats(shares.parts * elements_of(y_shape(c))) : terms.out;
  const Operand sums = tensor(slot, y_shape(c), shares.parts);
  std::vector<HostArg> args = conv_geometry(c);
  args.insert(args.end(), {x_operand(0, c), w_operand(1, c)});
  const EpilogueOperands none({}, {c.out_channels});
  (is_split ? none : terms).append_to(args, without_parts(sums));
  args.insert(args.end(), {number(group_outputs(c)), sums});
  call(recorder, of_rows(kernel, shares.block), args);
  if (is_split) {
    const Shape shape = {c.batch, c.out_channels, c.out_h() * c.out_w()};
    add_parts(recorder, tensor(slot, shape, shares.parts), terms,
              dense_operand(terms.out, DType::kF32, shape));
  }
  return recorder.finish(workspace);
}

Plan plan_conv2d_input_grad_blocks(const ConvConfig& c) {
  const PhaseTaps h(c.top, c.kernel_h, c.stride_h), w(c.left, c.kernel_w, c.stride_w);
  const int64_t rows = group_inputs(c) * c.stride_h * c.stride_w,
                columns = c.batch * ceil_div(c.height, c.stride_h) * ceil_div(c.width, c.stride_w);
  const Shares shares =
      choose_shares({rows, columns, c.groups, 0}, chunks_of(group_outputs(c)) * h.count * w.count);
  Recorder recorder(kNoAliases);
  Workspace workspace(3);
  const bool is_split = shares.parts > 1;
  const int64_t results = elements_of(x_shape(c));
  const uint32_t slot = is_split ? workspace.add_floats(shares.parts * results) : 2;
  std::vector<HostArg> args = conv_geometry(c);
  args.insert(args.end(), {y_operand(0, c), w_operand(1, c)});
  for (const int64_t value : {group_outputs(c), h.count, w.count, h.first, w.first, h.tap, w.tap}) {
    args.emplace_back(number(value));
  }
  args.emplace_back(tensor(slot, x_shape(c), shares.parts));
  std::string kernel = "conv_input_grad_blocks";
  if (are_whole_chunks(group_outputs(c))) kernel += "_whole";
  call(recorder, of_rows(kernel, shares.block), args);
  if (is_split) add_parts(recorder, slot, shares.parts, results);
  return recorder.finish(workspace);
}

// Weights are few results of many steps: parts of the steps, which groups share out, are added
// afterwards.
Plan plan_conv2d_weight_grad_blocks(const ConvConfig& c) {
  const int64_t chunks = c.batch * chunks_of(c.out_h() * c.out_w());
  const BlockedProduct product = {group_outputs(c), group_inputs(c) * taps(c), c.groups, 0};
  const Block& block = choose_gathering_block(product);
  const int64_t wanted = ceil_div(kFillingGroups, product.groups(block));
  const int64_t of_part = std::max(ceil_div(chunks, wanted), kLeastChunks);
  const int64_t parts = std::max<int64_t>(ceil_div(chunks, of_part), 1);
  const int64_t results = elements_of(w_shape(c));
  Recorder recorder(kNoAliases);
  Workspace workspace(3);
  const uint32_t slot = parts > 1 ? workspace.add_floats(parts * results) : 2;
  std::vector<HostArg> args = conv_geometry(c);
  args.insert(args.end(),
              {dense_operand(0, DType::kF32, {c.batch, c.out_channels, c.out_h() * c.out_w()}),
               dense_operand(1, DType::kF32, {c.batch, c.in_channels, c.height * c.width}),
               number(c.out_w()), number(c.width), number(group_outputs(c)), number(of_part),
               tensor(slot, w_shape(c), parts)});
  call(recorder, of_rows("conv_weight_grad_blocks", block), args);
  if (parts > 1) add_parts(recorder, slot, parts, results);
  return recorder.finish(workspace);
}

}  // namespace ballast::kernels
