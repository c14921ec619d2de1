#include "kernels/shape/shape.h"

#include "kernels/plan/merge_launches.h"
#include "kernels/shape/region.h"

namespace ballast::kernels {

Plan plan_copy(DeviceClass device_class, DType dtype, const Shape& shape,
               const std::vector<int64_t>& input_strides) {
  Recorder recorder;
  record_copy(recorder, device_class, size_of(dtype), shape, {0, 0, input_strides},
              dense_view(1, shape));
  return recorder.finish();
}

namespace {

// Of a dense buffer of shape `whole`, the part that `slice` takes.
View view_of(uint32_t slot, const Shape& whole, const Slice& slice) {
  View view = dense_view(slot, whole);
  for (size_t d = 0; d < whole.size(); ++d) {
    view.offset += slice.begin[d] * view.strides[d];
    view.strides[d] *= slice.steps[d];
  }
  return view;
}

// Of a dense buffer of shape `whole`, the part that begins at `begin` along `axis`.
View view_from(uint32_t slot, const Shape& whole, size_t axis, int64_t begin) {
  View view = dense_view(slot, whole);
  view.offset = begin * view.strides[axis];
  return view;
}

}  // namespace

Plan plan_slice(DeviceClass device_class, const TensorType& input, const Slice& slice,
                const TensorType& output) {
  Recorder recorder;
  record_copy(recorder, device_class, size_of(output.dtype), output.shape,
              view_of(0, input.shape, slice), dense_view(1, output.shape));
  return recorder.finish();
}

Plan plan_embed(DeviceClass device_class, const TensorType& input, const Slice& slice, double value,
                const TensorType& output) {
  const uint64_t bytes = size_of(output.dtype);
  Recorder recorder;
  // The whole is filled and the part written over it: two launches for any rank and any steps,
  // where filling the border alone would take two for each axis.
  if (input.shape != output.shape) {
    record_fill(recorder, device_class, bytes, output.shape, bits_of(value, output.dtype),
                dense_view(1, output.shape));
  }
  record_copy(recorder, device_class, bytes, input.shape, dense_view(0, input.shape),
              view_of(1, output.shape, slice));
  return recorder.finish();
}

namespace {

// Parts do not overlap: their launches may be one. Most joins and splits are of few.
Plan merged(Plan plan) {
  constexpr size_t kFew = 4;
  const size_t width = plan.launches.size() <= kFew ? kFew : kMergedLaunches;
  plan.launches = merge_launches(plan.launches, GroupOrder::kInTurn, width);
  return plan;
}

}  // namespace

Plan plan_concat(DeviceClass device_class, const std::vector<TensorType>& inputs, size_t axis,
                 const TensorType& output) {
  Recorder recorder;
  int64_t begin = 0;
  for (uint32_t slot = 0; slot < inputs.size(); ++slot) {
    const Shape& shape = inputs[slot].shape;
    record_copy(recorder, device_class, size_of(output.dtype), shape, dense_view(slot, shape),
                view_from(static_cast<uint32_t>(inputs.size()), output.shape, axis, begin));
    begin += shape[axis];
  }
  return merged(recorder.finish());
}

Plan plan_split(DeviceClass device_class, const TensorType& input, size_t axis,
                const std::vector<TensorType>& outputs) {
  Recorder recorder;
  int64_t begin = 0;
  for (uint32_t slot = 0; slot < outputs.size(); ++slot) {
    const Shape& shape = outputs[slot].shape;
    record_copy(recorder, device_class, size_of(input.dtype), shape,
                view_from(0, input.shape, axis, begin), dense_view(slot + 1, shape));
    begin += shape[axis];
  }
  return merged(recorder.finish());
}

Plan plan_fill(DeviceClass device_class, const TensorType& output, double value) {
  Recorder recorder;
  record_fill(recorder, device_class, size_of(output.dtype), output.shape,
              bits_of(value, output.dtype), dense_view(0, output.shape));
  return recorder.finish();
}

Plan plan_arange(DeviceClass device_class, const TensorType& output, double start, double step) {
  const int64_t count = output.elements();
  if (count == 0) return {};
  const std::string kernel = std::string("arange_") + name_of(output.dtype);
  std::vector<HostArg> args;
  for (double number : {start, step}) {
    if (output.dtype == DType::kF32) {
      args.emplace_back(static_cast<float>(number));
    } else {
      const Bits bits = bits_of(number, DType::kI64);
      args.insert(args.end(), {bits.low, bits.high});
    }
  }
  args.emplace_back(dense_operand(0, output.dtype, output.shape));
  Recorder recorder;
  recorder.call(kernel, device_class, args);
  return recorder.finish();
}

}  // namespace ballast::kernels
