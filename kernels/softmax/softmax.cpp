#include "kernels/kernels.h"
#include "kernels/reduce/axis.h"

namespace ballast::kernels {

Plan plan_softmax(DeviceClass device_class, const std::string& op, const Shape& shape,
                  int64_t axis) {
  const AxisView view(device_class, shape, axis);
  if (view.is_empty()) return {};
  Recorder recorder(view.rules());
  if (view.is_narrow()) {
    recorder.call(
        op + "_narrow_rows", device_class,
        {view.flat(0), view.rows_per_group(), checked_int32(view.length()), view.flat(1)});
    return recorder.finish();
  }
  std::string kernel = op + "_" + view.short_layout();
  const bool is_cached = device_class == DeviceClass::kCpu && op == "softmax" && view.is_rows() &&
                         !view.is_short() && view.length() <= kLongestCachedRow;
  if (is_cached) kernel += view.rules().streams ? "_cached_streams" : "_cached";
  recorder.call(kernel, device_class, {view.tensor(0), view.rows_per_group(), view.tensor(1)});
  return recorder.finish();
}

Plan plan_softmax_grad(DeviceClass device_class, const std::string& op, const Shape& shape,
                       int64_t axis) {
  const AxisView view(device_class, shape, axis);
  if (view.is_empty()) return {};
  Recorder recorder(view.rules());
  if (view.is_narrow()) {
    recorder.call(op + "_grad_narrow_rows", device_class,
                  {view.flat(0), view.flat(1), view.rows_per_group(), checked_int32(view.length()),
                   view.flat(2)});
    return recorder.finish();
  }
  const std::string kernel = op + "_grad_" + view.layout();
  recorder.call(kernel, device_class,
                {view.tensor(0), view.tensor(1), view.rows_per_group(), view.tensor(2)});
  return recorder.finish();
}

}  // namespace ballast::kernels
