#include "kernels/halide_runtime.h"
#include "kernels/kernels.h"
#include "kernels/pointwise/pointwise_ops.h"

namespace ballast::kernels {
namespace {

// Rows of the batch in lanes of 16 where they fill them.
struct Batch {
  int64_t lanes, x, classes;

  Batch(DeviceClass device_class, int64_t batch, int64_t classes_)
      : lanes(device_class == DeviceClass::kCpu && batch % kLanes == 0 ? kLanes : 1),
        x(batch / lanes),
        classes(classes_) {}
  Operand per_row(uint32_t slot, DType dtype) const {
    return {slot, dtype, {lanes, x}, {1, lanes}, {}};
  }
  Operand per_class(uint32_t slot) const {
    return {slot, DType::kF32, {classes, lanes, x}, {1, classes, classes * lanes}, {}};
  }
};

void check_classes(const std::string& op, int64_t classes) {
  if (classes < 1) device::fail(device::Code::kInvalidArgument, "[{}] there are no classes", op);
}

}  // namespace

Plan plan_softmax_cross_entropy(DeviceClass device_class, int64_t batch, int64_t classes) {
  const std::string kernel = "softmax_cross_entropy";
  if (batch == 0) return {};
  check_classes(kernel, classes);
  const Batch rows(device_class, batch, classes);
  Recorder recorder;
  recorder.call(aot_kernel(kernel, device_class), kernel,
                {rows.per_class(0), rows.per_row(1, DType::kI32), rows.per_row(2, DType::kF32)});
  return recorder.finish();
}

Plan plan_softmax_cross_entropy_grad(DeviceClass device_class, int64_t batch, int64_t classes) {
  const std::string kernel = "softmax_cross_entropy_grad";
  if (batch == 0 || classes == 0) return {};
  const Batch rows(device_class, batch, classes);
  Recorder recorder;
  recorder.call(aot_kernel(kernel, device_class), kernel,
                {rows.per_row(0, DType::kF32), rows.per_class(1), rows.per_row(2, DType::kI32),
                 rows.per_class(3)});
  return recorder.finish();
}

}  // namespace ballast::kernels
