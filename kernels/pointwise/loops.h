// Shapes to loops: what the elementwise kernels iterate over.
//
// Dimensions of size 1 are dropped and neighbours merged wherever every operand allows it; then the
// innermost dimension is split into whole vectors where all operands are dense or repeated along
// it. Plain values; any thread.
#pragma once

#include "device/device.h"
#include "kernels/plan/chunks.h"
#include "kernels/plan/halide_runtime.h"

#include <functional>
#include <optional>
#include <vector>

namespace ballast::kernels {

// extents[d] and strides[operand][d], innermost first. Dimension 0 is the lane: 16 or 1.
struct Loops {
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> strides;

  Operand operand(size_t index, uint32_t slot, DType dtype) const;
  int64_t elements() const;
};

// Row-major strides of a tensor of `shape`, seen as `target` by numpy's broadcasting; outermost
// first, 0 where it repeats. `op` is named where the shape does not broadcast.
std::vector<int64_t> broadcast_strides(const std::string& op, const Shape& shape,
                                       const Shape& target);

// Elements between neighbours where dimensions [begin, end) of `shape` are seen as one, given those
// of each dimension; none where they do not lie a constant apart. 0 where all are of size 1.
std::optional<int64_t> merged_stride(const Shape& shape, const std::vector<int64_t>& strides,
                                     size_t begin, size_t end);

// `strides[operand]` are outermost first, like `shape`. At least four dimensions come back.
Loops make_loops(device::DeviceClass device_class, const Shape& shape,
                 const std::vector<std::vector<int64_t>>& strides);

Chunks choose_chunks(device::DeviceClass device_class, const Loops& loops);

// Appends the launch of an elementwise kernel that writes dense results. `call` records it for the
// loops it is given: these ones or, where long lines are no whole vectors, first those of the
// vectors and then those of what is left of the lines.
using ElementwiseCall = std::function<void(const Loops& loops, const Chunks& chunks)>;
void record_elementwise(Recorder& recorder, device::DeviceClass device_class, const Loops& loops,
                        const ElementwiseCall& call);

}  // namespace ballast::kernels
