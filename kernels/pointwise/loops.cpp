#include "kernels/pointwise/loops.h"

#include "kernels/plan/streaming.h"
#include "kernels/pointwise/pointwise_ops.h"

#include <algorithm>
#include <numeric>

namespace ballast::kernels {

using device::DeviceClass;

Operand Loops::operand(size_t index, uint32_t slot, DType dtype) const {
  return {slot, dtype, extents, strides[index], {}};
}

int64_t Loops::elements() const {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

std::vector<int64_t> broadcast_strides(const std::string& op, const Shape& shape,
                                       const Shape& target) {
  std::vector<int64_t> strides(target.size(), 0);
  int64_t stride = 1;
  bool fits = shape.size() <= target.size();
  for (size_t i = 1; fits && i <= shape.size(); ++i) {
    const int64_t extent = shape[shape.size() - i];
    const size_t at = target.size() - i;
    if (extent != 1) strides[at] = stride;
    fits = extent == 1 || extent == target[at];
    stride *= extent;
  }
  if (!fits) {
    device::fail(device::Code::kInvalidArgument, "[{}] shape {} does not broadcast to {}", op,
                 to_string(shape), to_string(target));
  }
  return strides;
}

std::optional<int64_t> merged_stride(const Shape& shape, const std::vector<int64_t>& strides,
                                     size_t begin, size_t end) {
  std::optional<int64_t> stride;
  int64_t next = 0;  // what the dimension outside needs to continue it
  for (size_t d = end; d-- > begin;) {
    if (shape[d] == 1) continue;
    if (stride && strides[d] != next) return std::nullopt;
    if (!stride) stride = strides[d];
    next = strides[d] * shape[d];
  }
  return stride.value_or(0);
}

namespace {

// Innermost first, sizes of 1 dropped, mergeable neighbours merged.
Loops collapse(const Shape& shape, const std::vector<std::vector<int64_t>>& strides) {
  Loops loops;
  loops.strides.resize(strides.size());
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    bool merges = !loops.extents.empty();
    for (size_t i = 0; merges && i < strides.size(); ++i) {
      merges = strides[i][d] == loops.strides[i].back() * loops.extents.back();
    }
    if (merges) {
      loops.extents.back() *= shape[d];
      continue;
    }
    loops.extents.push_back(shape[d]);
    for (size_t i = 0; i < strides.size(); ++i) loops.strides[i].push_back(strides[i][d]);
  }
  return loops;
}

// Whether lines of single lanes may become vectors: every operand is dense or repeats along them.
bool may_be_vectors(DeviceClass device_class, const Loops& loops) {
  return device_class == DeviceClass::kCpu && loops.extents.size() > 1 && loops.extents[0] == 1 &&
         std::all_of(loops.strides.begin(), loops.strides.end(),
                     [](const auto& s) { return s[1] == 0 || s[1] == 1; });
}

// The whole vectors of lines of single lanes.
Loops whole_vectors(Loops loops) {
  loops.extents[0] = kLanes;
  loops.extents[1] /= kLanes;
  for (auto& s : loops.strides) {
    s[0] = s[1];
    s[1] *= kLanes;
  }
  return loops;
}

}  // namespace

Loops make_loops(DeviceClass device_class, const Shape& shape,
                 const std::vector<std::vector<int64_t>>& strides) {
  Loops loops = collapse(shape, strides);
  loops.extents.insert(loops.extents.begin(), 1);
  for (auto& s : loops.strides) s.insert(s.begin(), 1);  // of no account for a single lane
  if (may_be_vectors(device_class, loops) && loops.extents[1] % kLanes == 0) {
    loops = whole_vectors(std::move(loops));
  }
  while (loops.extents.size() < 4) {
    for (auto& s : loops.strides) s.push_back(loops.extents.back() * s.back());
    loops.extents.push_back(1);
  }
  return loops;
}

Chunks choose_chunks(DeviceClass device_class, const Loops& loops) {
  const int64_t lanes = loops.extents[0], width = loops.extents[1], height = loops.extents[2];
  if (device_class == DeviceClass::kCpu) {
    const bool is_strided = std::any_of(loops.strides.begin(), loops.strides.end(),
                                        [&](const auto& s) { return s[1] > lanes; });
    if (is_strided) {
      // A transpose. Eight source lines at a time stay in one cache set even where the stride is a
      // power of two; measured 6x faster than 64 x 64 on 1024 x 1024.
      return {checked_int32(std::min<int64_t>(width, 8)),
              checked_int32(std::min<int64_t>(height, 256))};
    }
    // Enough per group to hide its start and PoCL's time between groups, few enough that two cores
    // share a mid-sized tensor.
    constexpr int64_t kLeast = 16384, kMost = 32768, kGroups = 16;
    const int64_t all = lanes * width * height * loops.extents[3];
    const int64_t elements = std::clamp(all / kGroups, kLeast, kMost);
    const int64_t x = std::min(width, elements / lanes);
    const int64_t y = std::min(height, std::max<int64_t>(1, elements / (x * lanes)));
    return {checked_int32(x), checked_int32(y)};
  }
  return group_items(width, height);
}

namespace {

// Lines of one lane as vectors and what is left of each, `begins[operand]` elements further on.
struct SplitLines {
  Loops vectors, rest;
  std::vector<int64_t> begins;
};

// None where there is little to win: few elements, or lines so short that two work-groups would
// often write the same cache line.
std::optional<SplitLines> split_lines(DeviceClass device_class, const Loops& loops) {
  constexpr int64_t kLeastElements = 4096, kLeastLine = 128;
  const int64_t line = loops.extents[1];
  if (!may_be_vectors(device_class, loops) || line < kLeastLine ||
      loops.elements() < kLeastElements) {
    return std::nullopt;
  }
  SplitLines split{whole_vectors(loops), loops, {}};
  split.rest.extents[1] = line % kLanes;
  for (const auto& s : loops.strides) split.begins.push_back((line - line % kLanes) * s[1]);
  return split;
}

bool streams_result(DeviceClass device_class, const Loops& loops) {
  const std::vector<int64_t>& result = loops.strides.back();
  const bool is_aligned = std::all_of(result.begin() + 1, result.end(),
                                      [](int64_t stride) { return stride % kLanes == 0; });
  return loops.extents[0] == kLanes && is_aligned &&
         should_stream(device_class, loops.elements() / kLanes, kLanes, kStreamedRowsBytes);
}

}  // namespace

void record_elementwise(Recorder& recorder, DeviceClass device_class, const Loops& loops,
                        const ElementwiseCall& call) {
  const std::optional<SplitLines> split = split_lines(device_class, loops);
  const Loops& most = split ? split->vectors : loops;
  const Chunks chunks = choose_chunks(device_class, most);
  recorder.set_streams(streams_result(device_class, most));
  call(most, chunks);
  if (!split) return;
  recorder.set_streams(false);
  call(split->rest, {checked_int32(split->rest.extents[1]), chunks.y});
  recorder.join_beside(split->begins);
}

}  // namespace ballast::kernels
