// Reductions over any axes, in as few launches as their order of additions allows.
#include "kernels/kernels.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/pointwise/fuse.h"
#include "kernels/pointwise/loops.h"
#include "kernels/pointwise/pointwise_ops.h"
#include "kernels/reduce/axis.h"
#include "kernels/reduce/reduce_fused.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ballast::kernels {
namespace {

using device::Code;
using device::fail;

// Neighbouring axes that are all reduced or all kept, as one; outermost first, sizes of 1 dropped.
struct Group {
  int64_t extent;
  bool is_reduced;
  size_t begin, end;  // axes
};

std::vector<Group> group_axes(const Shape& shape, const std::vector<int64_t>& axes) {
  std::vector<Group> groups;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool is_reduced = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(d));
    if (shape[d] == 1) continue;
    if (groups.empty() || groups.back().is_reduced != is_reduced) {
      groups.push_back({1, is_reduced, d, d});
    }
    groups.back().extent *= shape[d];
    groups.back().end = d + 1;
  }
  return groups;
}

int64_t product(const std::vector<Group>& groups, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t i = begin; i < end; ++i) n *= groups[i].extent;
  return n;
}

// The tensor seen around one reduced group.
AxisSplit view_around(const std::vector<Group>& groups, size_t axis) {
  return {product(groups, 0, axis), groups[axis].extent, product(groups, axis + 1, groups.size())};
}

// What is reduced where that is a chain's result.
struct Prologue {
  const FusedPointwise& chain;
  std::vector<std::vector<int64_t>> strides;  // by input: inner, axis, outer of the first view
};

struct Reduction {
  DeviceClass device_class;
  std::string kind;  // of the kernels: "mean" is a divided "sum"
  DType dtype;
  const Prologue* prologue = nullptr;  // of the launch that reads the inputs

  uint32_t inputs() const {
    return prologue == nullptr ? 1 : static_cast<uint32_t>(prologue->chain.inputs.size());
  }
};

// How many chunks of the axis are reduced on their own, so that few long reductions keep all cores
// busy. `parts`: the independent pieces of work there are anyway.
int64_t chunk_count(DeviceClass device_class, const AxisSplit& view, int64_t parts) {
  const bool is_cpu = device_class == DeviceClass::kCpu;
  const int64_t elements_per_chunk = is_cpu ? 16384 : 2048;
  const int64_t enough = is_cpu ? 4 : 1024;
  if (parts >= enough) return 1;
  const int64_t wanted = std::min(enough / parts, view.elements() / (parts * elements_per_chunk));
  return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(view.axis, 1));
}

// How many columns a CPU's work-group takes.
int64_t columns_per_group(const AxisSplit& view) {
  return are_wide_columns(view.inner) ? kWideColumns : kColumns;
}

// How many of `rows` a work-group takes: enough elements to hide its start, enough groups to share
// between cores.
int64_t rows_per_group(int64_t length, int64_t rows) {
  constexpr int64_t kElements = 32768, kGroups = 16;
  return std::max<int64_t>(std::min(kElements / std::max<int64_t>(length, 1), rows / kGroups), 1);
}

// One launch: `view` in slot `from` (or of the chain's inputs) to [outer, chunks, inner] in slot
// `to` (to [outer, chunks] for rows: the chunks of a row side by side).
void reduce_once(Recorder& recorder, const Reduction& reduction, const AxisSplit& view,
                 uint32_t from, uint32_t to, int64_t chunks, int64_t chunk, float divisor) {
  const bool is_rows = view.inner == 1;
  const size_t first = is_rows ? 1 : 0;  // without `inner`
  const auto operand = [&](uint32_t slot, DType dtype, std::vector<int64_t> extents,
                           std::vector<int64_t> strides) {
    extents.erase(extents.begin(), extents.begin() + first);
    strides.erase(strides.begin(), strides.begin() + first);
    return Operand{slot, dtype, std::move(extents), std::move(strides), {}};
  };
  const auto dense = [&](uint32_t slot, int64_t axis) {
    return operand(slot, reduction.dtype, {view.inner, axis, view.outer},
                   {1, view.inner, view.inner * axis});
  };
  const int64_t lines = is_rows ? 1 : std::min(view.inner, columns_per_group(view));
  const std::vector<HostArg> scalars = {
      checked_int32(chunk), divisor,
      checked_int32(rows_per_group(chunk * lines, chunks * view.outer))};
  const Operand in = dense(from, view.axis), out = dense(to, chunks);
  if (const Prologue* prologue = reduction.prologue) {
    std::vector<Operand> of_chain;
    for (const TensorType& input : prologue->chain.inputs) {
      const size_t i = of_chain.size();
      of_chain.push_back(operand(static_cast<uint32_t>(i), input.dtype,
                                 {view.inner, view.axis, view.outer}, prologue->strides[i]));
    }
    return record_fused_reduce(recorder, reduction.device_class, reduction.kind, prologue->chain,
                               {in, of_chain, scalars, out});
  }
  const bool is_short = is_rows && reduction.device_class == DeviceClass::kCpu &&
                        reduction.dtype == DType::kF32 && view.axis >= kLanes &&
                        view.axis < kRowStep;
  const char* shape = is_short ? "short_rows" : is_rows ? "rows" : "columns";
  const std::string kernel =
      fmt::format("reduce_{}_{}_{}", shape, reduction.kind, name_of(reduction.dtype));
  std::vector<HostArg> args = {in};
  args.insert(args.end(), scalars.begin(), scalars.end());
  args.emplace_back(out);
  recorder.call(kernel, reduction.device_class, args);
}

// Whether rows lie in the lanes of vectors, as they are shorter than one, where the bits are the
// same; or a GPU's work-item takes each.
bool are_rows_lanes(const Reduction& reduction, const AxisSplit& view) {
  return reduction.prologue == nullptr && view.inner == 1 && view.axis > 0 && view.axis < kLanes &&
         view.outer >= kLanes;
}

Plan plan_rows_by_item(const Reduction& reduction, const AxisSplit& view, float divisor) {
  const std::string kernel =
      fmt::format("reduce_columns_{}_{}", reduction.kind, name_of(reduction.dtype));
  const auto [outer, axis, inner] = view;
  Recorder recorder;
  recorder.call(kernel, reduction.device_class,
                {Operand{0, reduction.dtype, {outer, axis, 1}, {axis, 1, outer * axis}, {}},
                 checked_int32(axis), divisor, int32_t{1},
                 Operand{1, reduction.dtype, {outer, 1, 1}, {1, outer, outer}, {}}});
  return recorder.finish();
}

Plan plan_rows_by_lane(const Reduction& reduction, const AxisSplit& view, float divisor) {
  const std::string kernel =
      fmt::format("reduce_rows_by_lane_{}_{}", reduction.kind, name_of(reduction.dtype));
  const int64_t vectors = rows_per_group(view.axis * kLanes, ceil_div(view.outer, kLanes));
  SourceRules rules;
  rules.hides_strides = true;
  Recorder recorder(rules);
  recorder.call(
      kernel, reduction.device_class,
      {dense_operand(0, reduction.dtype, {view.elements()}), checked_int32(vectors), divisor,
       checked_int32(view.axis), dense_operand(1, reduction.dtype, {view.outer})});
  return recorder.finish();
}

struct Chunking {
  int64_t count, size;
};

// A sum's error grows with the additions that follow each other. Where there would be more than
// kLongestChain, the axis is cut into pieces of kChain, whose totals are summed in their turn.
constexpr int64_t kLongestChain = 4096, kChain = 2048;

// `is_of_totals`: of what an earlier launch left, which is little.
Chunking choose_chunking(const Reduction& reduction, const AxisSplit& view, bool is_of_totals) {
  const DeviceClass device_class = reduction.device_class;
  const bool is_rows = view.inner == 1;
  const int64_t by_group = device_class == DeviceClass::kCpu ? columns_per_group(view) : 64;
  const int64_t parts = is_rows ? view.outer : view.outer * ceil_div(view.inner, by_group);
  const int64_t unit = is_rows ? kRowStep : 1;
  // A row that a fused kernel may take whole is taken whole here too: the same bits.
  const bool is_short = is_rows && view.axis <= kLongestCachedRow;
  const int64_t wanted = is_short || is_of_totals ? 1 : chunk_count(device_class, view, parts);
  int64_t size = ceil_div(ceil_div(view.axis, wanted), unit) * unit;
  const bool rounds = reduction.kind == "sum" && reduction.dtype == DType::kF32;
  const int64_t longest = is_of_totals ? kChain : kLongestChain;
  if (rounds && size > longest * unit) size = kChain * unit;
  if (size == 0) return {1, unit};
  return {std::max<int64_t>(1, ceil_div(view.axis, size)), size};
}

// One reduced group; long ones in several launches through the workspace.
Plan plan_single(const Reduction& reduction, const AxisSplit& view, float divisor,
                 bool is_of_totals = false) {
  if (are_rows_lanes(reduction, view)) {
    const bool is_cpu = reduction.device_class == DeviceClass::kCpu;
    return (is_cpu ? plan_rows_by_lane : plan_rows_by_item)(reduction, view, divisor);
  }
  Recorder recorder;
  const Chunking chunking = choose_chunking(reduction, view, is_of_totals);
  const uint32_t output = reduction.inputs();
  const bool is_last = chunking.count == 1;
  reduce_once(recorder, reduction, view, 0, output, chunking.count, chunking.size,
              is_last ? divisor : 1);
  if (is_last) return recorder.finish();
  const AxisSplit totals{view.outer, chunking.count, view.inner};
  Reduction of_totals = reduction;
  of_totals.prologue = nullptr;
  PlanBuilder builder(output + 1);
  std::vector<uint32_t> slots(output + 1);
  std::iota(slots.begin(), slots.end(), 0);
  slots.back() =
      builder.add_region(static_cast<uint64_t>(totals.elements()) * size_of(reduction.dtype));
  builder.append(recorder.finish(), slots);
  builder.append(plan_single(of_totals, totals, divisor, true), {slots.back(), output});
  return builder.finish();
}

// Several reduced groups: one after the other, the innermost first, each into a part of the
// workspace; the last into the output. What a stage leaves is smaller by its extent.
Plan plan_staged(Reduction reduction, std::vector<Group> groups, const std::vector<size_t>& reduced,
                 float divisor) {
  const uint32_t output = reduction.inputs();
  PlanBuilder builder(output + 1);
  std::vector<uint32_t> slots(output + 1);
  std::iota(slots.begin(), slots.end(), 0);
  for (size_t i = reduced.size(); i-- > 0;) {
    const AxisSplit view = view_around(groups, reduced[i]);
    const bool is_last = i == 0;
    const auto bytes = static_cast<uint64_t>(view.outer * view.inner) * size_of(reduction.dtype);
    slots.back() = is_last ? output : builder.add_region(bytes);
    builder.append(plan_single(reduction, view, is_last ? divisor : 1), slots);
    groups[reduced[i]].extent = 1;
    reduction.prologue = nullptr;
    slots = {slots.back(), 0};
  }
  return builder.finish();
}

std::vector<size_t> reduced_groups(const std::vector<Group>& groups) {
  std::vector<size_t> reduced;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].is_reduced) reduced.push_back(i);
  }
  return reduced;
}

Plan plan_groups(Reduction reduction, const std::vector<Group>& groups) {
  const std::vector<size_t> reduced = reduced_groups(groups);
  int64_t count = 1, elements = 1;
  for (const Group& group : groups) {
    elements *= group.extent;
    if (group.is_reduced) count *= group.extent;
  }
  const bool is_mean = reduction.kind == "mean";
  const float divisor = is_mean ? static_cast<float>(count) : 1.0f;
  if (is_mean) reduction.kind = "sum";
  if (reduced.empty()) {  // nothing but axes of size 1: every element is its own reduction
    return plan_single(reduction, {1, 1, elements}, divisor);
  }
  if (reduced.size() == 1) return plan_single(reduction, view_around(groups, reduced[0]), divisor);
  return plan_staged(reduction, groups, reduced, divisor);
}

// How an input lies in the view of the first launch: inner, axis, outer. Empty where it does not.
std::vector<int64_t> strides_in_view(const Shape& input, const Shape& whole,
                                     const std::vector<int64_t>& axes) {
  const std::vector<Group> groups = group_axes(whole, axes);
  const std::vector<size_t> reduced = reduced_groups(groups);
  if (reduced.empty() || elements_of(whole) == 0) return {};
  const Group& axis = groups[reduced.back()];
  // Less than a vector is reduced element by element, which no chain should be computed for.
  const AxisSplit view = view_around(groups, reduced.back());
  if ((view.inner == 1 ? view.axis : view.inner) < kLanes) return {};
  const std::vector<int64_t> strides = broadcast_strides("fused_reduce", input, whole);
  std::vector<int64_t> merged;
  for (const auto& [begin, end] :
       {std::pair(axis.end, whole.size()), std::pair(axis.begin, axis.end),
        std::pair(size_t{0}, axis.begin)}) {
    const auto stride = merged_stride(whole, strides, begin, end);
    if (!stride) return {};
    merged.push_back(*stride);
  }
  return merged;
}

void check_mean(const std::string& kind, DType dtype) {
  if (kind == "mean" && dtype != DType::kF32) {
    fail(Code::kUnimplemented, "[mean] no kernel takes {}", name_of(dtype));
  }
}

}  // namespace

Plan plan_reduce(DeviceClass device_class, const std::string& kind, const TensorType& input,
                 const std::vector<int64_t>& axes, const TensorType& output) {
  if (output.elements() == 0) return {};
  check_mean(kind, input.dtype);
  return plan_groups({device_class, kind, input.dtype}, group_axes(input.shape, axes));
}

bool is_fusable_before_reduction(const Shape& input, const Shape& whole,
                                 const std::vector<int64_t>& axes) {
  return !strides_in_view(input, whole, axes).empty();
}

Plan plan_fused_reduce(DeviceClass device_class, const std::string& kind,
                       const FusedPointwise& chain, const std::vector<int64_t>& axes,
                       const TensorType& output) {
  check_steps(chain, is_pointwise_step);
  if (!gives_last_step(chain)) {
    fail(Code::kInvalidArgument, "[fused_reduce] the output is not the last step");
  }
  const TensorType& whole = chain.steps.back().type;
  check_mean(kind, whole.dtype);
  if (is_narrow_float(whole.dtype) || kind == "argmax" || kind == "argmin") {
    fail(Code::kUnimplemented, "[fused_reduce] no {} of {}", kind, name_of(whole.dtype));
  }
  Prologue prologue{chain, {}};
  for (const TensorType& input : chain.inputs) {
    prologue.strides.push_back(strides_in_view(input.shape, whole.shape, axes));
    if (!prologue.strides.back().empty()) continue;
    fail(Code::kInvalidArgument, "[fused_reduce] {} does not lie along axes {} of {}",
         to_string(input.shape), to_string(axes), to_string(whole.shape));
  }
  if (output.elements() == 0) return {};
  const std::string key = device_class == DeviceClass::kCpu ? "cpu " : "gpu ";
  return cached_jit_plan(key + kind + to_string(axes) + typed_text_of(chain), [&] {
    return plan_groups({device_class, kind, whole.dtype, &prologue}, group_axes(whole.shape, axes));
  });
}

}  // namespace ballast::kernels
