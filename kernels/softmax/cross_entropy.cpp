#include "kernels/kernels.h"
#include "kernels/reduce/axis.h"

namespace ballast::kernels {

Plan plan_softmax_cross_entropy(DeviceClass device_class, int64_t batch, int64_t classes,
                                float smoothing) {
  const std::string op = "softmax_cross_entropy";
  if (batch == 0) return {};
  if (classes < 1) device::fail(device::Code::kInvalidArgument, "[{}] there are no classes", op);
  const AxisView view(device_class, {batch, classes}, 1, NarrowRowsKernels::kSome);
  Recorder recorder(view.rules());
  recorder.call(
      op + "_" + view.layout(), device_class,
      view.args({view.tensor(0), view.per_line(1, DType::kI32), smoothing}, view.per_line(2)));
  return recorder.finish();
}

Plan plan_softmax_cross_entropy_grad(DeviceClass device_class, int64_t batch, int64_t classes,
                                     float smoothing) {
  const AxisView view(device_class, {batch, classes}, 1, NarrowRowsKernels::kSome);
  if (view.is_empty()) return {};
  Recorder recorder(view.rules());
  std::string kernel = std::string("softmax_cross_entropy_grad_") + view.layout();
  const bool is_cached =
      device_class == DeviceClass::kCpu && view.is_rows() && view.length() <= kLongestCachedRow;
  if (is_cached) kernel += view.rules().streams ? "_cached_streams" : "_cached";
  recorder.call(
      kernel, device_class,
      view.args({view.per_line(0), view.tensor(1), view.per_line(2, DType::kI32), smoothing},
                view.tensor(3)));
  return recorder.finish();
}

}  // namespace ballast::kernels
