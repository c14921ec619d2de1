// Moving and filling strided regions: what copies, concatenation, slices, padding and transposes
// are made of. For the kernels of this library only; plain values, any thread.
#pragma once

#include "kernels/plan/halide_runtime.h"
#include "kernels/shape/bits.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// Where the elements of a shape lie in a buffer: strides in elements, outermost first like the
// shape; 0 repeats, negative runs backwards.
struct View {
  uint32_t slot = 0;
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

std::vector<int64_t> dense_strides(const Shape& shape);
View dense_view(uint32_t slot, const Shape& shape);
// As what elements of 1, 2, 4 or 8 bytes are moved.
DType raw_type(uint64_t bytes);

// Appends the launches that move `shape` elements of `bytes` (1, 2, 4 or 8) bytes each.
// O(elements); usually one launch. `to` must not repeat elements.
void record_copy(Recorder& recorder, DeviceClass device_class, uint64_t bytes, const Shape& shape,
                 const View& from, const View& to);

void record_fill(Recorder& recorder, DeviceClass device_class, uint64_t bytes, const Shape& shape,
                 Bits value, const View& to);

}  // namespace ballast::kernels
