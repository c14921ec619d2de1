#include "kernels/index/index.h"

#include "kernels/plan/chunks.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/plan/streaming.h"
#include "kernels/recipe/lanes.h"
#include "kernels/shape/region.h"

#include <algorithm>
#include <numeric>

namespace ballast::kernels {
namespace {

constexpr int64_t kGroupSteps = 4096;  // of a CPU's work-group

// `count` rows in place of the axis.
Operand rows_of(const AxisSplit& split, uint32_t slot, DType dtype, int64_t count) {
  const int64_t inner = split.inner;
  return {slot, dtype, {inner, count, split.outer}, {1, inner, inner * count}, {}};
}

// Indices as 32-bit words: [word][x][i][o].
Operand numbers_of(uint32_t slot, const TensorType& indices, Picks picks, const AxisSplit& split) {
  const int64_t words = indices.dtype == DType::kI64 ? 2 : 1;
  if (picks == Picks::kRows) {
    return {slot, DType::kI32, {words, 1, indices.elements(), 1}, {1, 0, words, 0}, {}};
  }
  const int64_t count = indices.elements() / (split.outer * split.inner);
  return {slot,
          DType::kI32,
          {words, split.inner, count, split.outer},
          {1, words, words * split.inner, words * split.inner * count},
          {}};
}

// Rows of one element, picked by the same numbers everywhere.
void record_gather_lanes(Recorder& recorder, const AxisSplit& split, const Operand& numbers) {
  // A group: some rows of the table at a time, which stay in the first cache, and 16 numbers at a
  // time for all of them.
  const int64_t count = numbers.extents[2], chunk_o = std::min<int64_t>(split.outer, 8);
  const int64_t steps = ceil_div(count, kLanes);
  const int64_t chunk_i = std::min(steps, 256 / chunk_o);
  const auto operand = [&](uint32_t slot, int64_t extent) -> Operand {
    return {slot, DType::kI32, {extent, split.outer}, {1, extent}, {}};
  };
  recorder.call("gather_lanes_4", DeviceClass::kCpu,
                {operand(0, split.axis), numbers, checked_int32(chunk_i), checked_int32(chunk_o),
                 operand(2, count)});
}

// How wide the vectors are that move a row; 1: elements, one by one.
int64_t lanes_of_row(bool are_rows, uint64_t bytes, int64_t inner) {
  if (!are_rows) return 1;
  if (inner >= kLanes) return kLanes;
  for (const int64_t lanes : {8, 4, 2}) {
    if (bytes == 4 && inner >= lanes) return lanes;
  }
  return 1;
}

}  // namespace

Plan plan_gather(DeviceClass device_class, Picks picks, const TensorType& table,
                 const TensorType& indices, size_t axis, const TensorType& output) {
  if (output.elements() == 0) return {};
  Recorder recorder;
  AxisSplit split = split_around(table.shape, axis);
  uint64_t bytes = size_of(output.dtype);
  if (split.axis == 0) {  // every index lies outside
    record_fill(recorder, device_class, bytes, output.shape, {}, dense_view(2, output.shape));
    return recorder.finish();
  }
  while (picks == Picks::kRows && bytes < 4 && split.inner % 2 == 0) {
    bytes *= 2;
    split.inner /= 2;
  }
  const bool are_rows = device_class == DeviceClass::kCpu && picks == Picks::kRows;
  if (are_rows && bytes == 8 && split.inner < kLanes) {
    bytes /= 2;
    split.inner *= 2;
  }
  const int64_t lanes = lanes_of_row(are_rows, bytes, split.inner);
  const Operand numbers = numbers_of(1, indices, picks, split);
  if (are_rows && bytes == 4 && split.inner == 1 && numbers.extents[2] >= kLanes) {
    record_gather_lanes(recorder, split, numbers);
    return recorder.finish();
  }
  std::vector<HostArg> args{rows_of(split, 0, raw_type(bytes), split.axis), numbers};
  const std::vector<HostArg> chunks =
      move_chunks(device_class, lanes, {split.inner, numbers.extents[2], split.outer}, kGroupSteps);
  args.insert(args.end(), chunks.begin() + 1, chunks.end());  // the lanes are known
  args.emplace_back(rows_of(split, 2, raw_type(bytes), numbers.extents[2]));
  const bool streams = lanes == kLanes && bytes == 4 && split.inner % kLanes == 0 &&
                       output.bytes() >= static_cast<uint64_t>(streamed_move_bytes());
  const std::string width = lanes < kLanes ? fmt::format("_by_{}", lanes) : "";
  const std::string kernel =
      lanes == 1 ? fmt::format("gather_{}", bytes)
                 : fmt::format("gather_rows_{}{}{}", bytes, width, streams ? "_streams" : "");
  recorder.call(kernel, device_class, args);
  return recorder.finish();
}

namespace {

struct Scatter {
  DeviceClass device_class;
  std::string kernel;
  Operand numbers, updates, output;

  // Columns [begin, begin + count).
  void record(Recorder& recorder, int64_t lanes, int64_t begin, int64_t count) const {
    if (count == 0) return;
    const int64_t steps = count / lanes, rows = output.extents[1], outer = output.extents[2];
    const int64_t work = count * updates.extents[1] * outer;
    int64_t chunk_x = 1, chunk_z = 1, parts = 1;
    if (device_class == DeviceClass::kGpu) {
      while (chunk_x < steps && chunk_x < 128) chunk_x *= 2;
      parts = std::clamp<int64_t>(1024 / (outer * ceil_div(steps, chunk_x)), 1, count);
    } else {
      // Some ten microseconds of work for a group; reading indices costs about as much per part as
      // adding one element.
      const int64_t groups = std::clamp<int64_t>(work >> 14, 1, 16);
      chunk_z = ceil_div(outer, groups);
      const int64_t columns = std::min(steps, ceil_div(groups * chunk_z, outer));
      chunk_x = ceil_div(steps, columns);
      parts = std::min(count, ceil_div(groups * chunk_z, outer * columns));
    }
    parts = std::min(parts, rows);
    const int64_t part_rows = ceil_div(rows, parts);
    recorder.call(kernel, device_class,
                  {numbers, updates, checked_int32(lanes), checked_int32(begin),
                   checked_int32(count), checked_int32(chunk_x), checked_int32(chunk_z),
                   checked_int32(ceil_div(rows, part_rows)), checked_int32(part_rows), output});
  }
};

// Whether a GPU adds rows along links between numbers that pick the same one. They are found by
// looking at all pairs of numbers, which is quick up to some number of them.
bool is_linked(const Scatter& scatter, Picks picks) {
  constexpr int64_t kMost = 1 << 18;
  return scatter.device_class == DeviceClass::kGpu && picks == Picks::kRows &&
         scatter.numbers.extents[2] <= kMost;
}

// Numbers, updates and the result in slots 0 to 2 of the plan, links in the next one.
Plan plan_linked_add(const Scatter& scatter) {
  const auto at_slot = [](Operand operand, uint32_t slot) {
    operand.slot = slot;
    return operand;
  };
  const Operand numbers = at_slot(scatter.numbers, 0), output = at_slot(scatter.output, 2);
  const int64_t count = numbers.extents[2];
  const Operand links{3, DType::kI32, {2, count}, {1, 2}, {}};
  const Chunks items = group_items(output.extents[0], count);
  Recorder recorder;
  recorder.call("scatter_links", DeviceClass::kGpu,
                {numbers, checked_int32(output.extents[1]), links});
  recorder.call(std::string("scatter_add_linked_") + name_of(output.dtype), DeviceClass::kGpu,
                {numbers, links, at_slot(scatter.updates, 1), output, items.x, items.y, output});
  return recorder.finish();
}

}  // namespace

Plan plan_scatter_add(DeviceClass device_class, Picks picks, bool has_table,
                      const TensorType& indices, const TensorType& updates, size_t axis,
                      const TensorType& output) {
  if (output.elements() == 0) return {};
  const uint64_t bytes = size_of(output.dtype);
  const uint32_t first = has_table ? 1 : 0;
  Recorder recorder;
  const View target = dense_view(first + 2, output.shape);
  if (has_table) {
    record_copy(recorder, device_class, bytes, output.shape, dense_view(0, output.shape), target);
  } else {
    record_fill(recorder, device_class, bytes, output.shape, {}, target);
  }
  if (updates.elements() == 0) return recorder.finish();
  const AxisSplit split = split_around(output.shape, axis);
  const Operand numbers = numbers_of(first, indices, picks, split);
  const Scatter scatter{device_class, std::string("scatter_add_") + name_of(output.dtype), numbers,
                        rows_of(split, first + 1, output.dtype, numbers.extents[2]),
                        rows_of(split, first + 2, output.dtype, split.axis)};
  if (is_linked(scatter, picks)) {
    PlanBuilder builder(first + 3);
    std::vector<uint32_t> slots(first + 3);
    std::iota(slots.begin(), slots.end(), 0);
    builder.append(recorder.finish(), slots);
    const uint32_t links = builder.add_region(2 * sizeof(int32_t) * numbers.extents[2]);
    builder.append(plan_linked_add(scatter), {first, first + 1, first + 2, links});
    return builder.finish();
  }
  const bool has_vectors = device_class == DeviceClass::kCpu && picks == Picks::kRows;
  const int64_t whole = has_vectors ? split.inner / kLanes * kLanes : 0;
  scatter.record(recorder, kLanes, 0, whole);
  scatter.record(recorder, 1, whole, split.inner - whole);
  return recorder.finish();
}

Plan plan_one_hot(DeviceClass device_class, const TensorType& indices, size_t axis, double on,
                  double off, const TensorType& output) {
  if (output.elements() == 0) return {};
  const AxisSplit split = split_around(output.shape, axis);
  const uint64_t bytes = size_of(output.dtype);
  const int64_t words = indices.dtype == DType::kI64 ? 2 : 1;
  const Bits on_bits = bits_of(on, output.dtype), off_bits = bits_of(off, output.dtype);
  std::vector<HostArg> args{Operand{0,
                                    DType::kI32,
                                    {words, 1, split.inner, split.outer},
                                    {1, 0, words, words * split.inner},
                                    {}},
                            on_bits.low, on_bits.high, off_bits.low, off_bits.high};
  const bool has_vectors =
      device_class == DeviceClass::kCpu && split.inner == 1 && split.axis >= kLanes;
  const std::vector<HostArg> chunks = move_chunks(
      device_class, has_vectors ? kLanes : 1, {split.axis, split.inner, split.outer}, kGroupSteps);
  args.insert(args.end(), chunks.begin(), chunks.end());
  args.emplace_back(Operand{1,
                            raw_type(bytes),
                            {split.axis, split.inner, split.outer},
                            {split.inner, 1, split.inner * split.axis},
                            {}});
  const std::string kernel = "one_hot_" + std::to_string(bytes);
  Recorder recorder;
  recorder.call(kernel, device_class, args);
  return recorder.finish();
}

}  // namespace ballast::kernels
