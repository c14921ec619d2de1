// Moving elements without computing, and making tensors from nothing. All element types.
#pragma once

#include "kernels/plan/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// A dense copy of a strided view: output.shape indexes the input with these strides (elements;
// 0 repeats). Serves broadcast_to and transpose. Not in place.
Plan plan_copy(DeviceClass device_class, DType dtype, const Shape& shape,
               const std::vector<int64_t>& input_strides);

// Every steps[d]-th index from begin[d] on, as many as the result is long. All of the result's
// rank.
struct Slice {
  std::vector<int64_t> begin, steps;
};
// output[i] = input[begin + i * steps].
Plan plan_slice(DeviceClass device_class, const TensorType& input, const Slice& slice,
                const TensorType& output);
// output[begin + i * steps] = input[i], `value` elsewhere: padding, and the gradient of plan_slice.
Plan plan_embed(DeviceClass device_class, const TensorType& input, const Slice& slice, double value,
                const TensorType& output);
// The inputs one after another along `axis`.
Plan plan_concat(DeviceClass device_class, const std::vector<TensorType>& inputs, size_t axis,
                 const TensorType& output);
// The other way.
Plan plan_split(DeviceClass device_class, const TensorType& input, size_t axis,
                const std::vector<TensorType>& outputs);

// No inputs. Every element is `value` as `output`'s type has it.
Plan plan_fill(DeviceClass device_class, const TensorType& output, double value);
// No inputs. output[i] = start + i * step, computed in the output's type: f32, i32 or i64, rank 1.
Plan plan_arange(DeviceClass device_class, const TensorType& output, double start, double step);

}  // namespace ballast::kernels
