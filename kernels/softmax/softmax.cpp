#include "kernels/kernels.h"
#include "kernels/reduce/axis.h"

namespace ballast::kernels {

Plan plan_softmax(DeviceClass device_class, const std::string& op, const Shape& shape,
                  int64_t axis) {
  const AxisView view(device_class, shape, axis, NarrowRowsKernels::kSome);
  if (view.is_empty()) return {};
  Recorder recorder(view.rules());
  std::string kernel = op + "_" + view.short_layout();
  const bool is_cached = device_class == DeviceClass::kCpu && op == "softmax" && view.is_rows() &&
                         !view.is_short() && view.length() <= kLongestCachedRow;
  if (is_cached) kernel += view.rules().streams ? "_cached_streams" : "_cached";
  recorder.call(kernel, device_class, view.args({view.tensor(0)}, view.tensor(1)));
  return recorder.finish();
}

Plan plan_softmax_grad(DeviceClass device_class, const std::string& op, const Shape& shape,
                       int64_t axis) {
  const AxisView view(device_class, shape, axis, NarrowRowsKernels::kSome);
  if (view.is_empty()) return {};
  Recorder recorder(view.rules());
  const std::string kernel = op + "_grad_" + view.layout();
  recorder.call(kernel, device_class, view.args({view.tensor(0), view.tensor(1)}, view.tensor(2)));
  return recorder.finish();
}

}  // namespace ballast::kernels
