#include "frontend/ops/pool.h"

#include "frontend/ops/call.h"
#include "frontend/ops/in_f32.h"
#include "frontend/ops/index.h"
#include "frontend/ops/reduce.h"

#include <algorithm>

namespace ballast::ops {

namespace {

Attrs pool_attrs(const char* op, const Tensor& x, std::vector<int64_t> kernel,
                 const Window2d& window, const Where& where) {
  if (kernel.size() == 1) kernel.push_back(kernel[0]);
  if (kernel.size() != 2) {
    refuse(where, "[{}] kernel_size is {}, expected one or two numbers", op,
           ballast::to_string(kernel));
  }
  Attrs attrs = window_attrs(op, window, x.shape(), kernel[0], kernel[1], where);
  attrs.emplace_back("kernel_size", kernel);
  return attrs;
}

// The means over the windows of adaptive pooling along one axis.
Tensor window_means(const Tensor& x, int64_t axis, int64_t count) {
  const int64_t extent = x.shape()[static_cast<size_t>(axis)];
  const auto begin = [&](int64_t i) { return i * extent / count; };
  const auto end = [&](int64_t i) { return ((i + 1) * extent + count - 1) / count; };
  int64_t longest = 0;
  for (int64_t i = 0; i < count; ++i) longest = std::max(longest, end(i) - begin(i));
  std::vector<int32_t> picks;
  std::vector<float> lengths;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < longest; ++k) {
      // Behind a shorter window: an index that reads as 0.
      const int64_t at = begin(i) + k < end(i) ? begin(i) + k : extent;
      picks.push_back(static_cast<int32_t>(at));
    }
    lengths.push_back(static_cast<float>(end(i) - begin(i)));
  }
  Shape over_count(x.shape().size() - static_cast<size_t>(axis), 1);
  over_count[0] = count;
  const Tensor windows = gather(x, Tensor::on_host(picks, {count, longest}), axis);
  return reduce_sum(windows, {axis + 1}) / Tensor::on_host(lengths, over_count);
}

}  // namespace

Tensor max_pool2d(const Operand& x, const std::vector<int64_t>& kernel_size,
                  const Window2d& window) {
  Tensor tensor = x.tensor();
  return apply_primitive("max_pool2d", {tensor},
                         pool_attrs("max_pool2d", tensor, kernel_size, window, x.where()),
                         x.where())[0];
}

Tensor avg_pool2d(const Operand& x, const std::vector<int64_t>& kernel_size, const Window2d& window,
                  bool count_include_pad) {
  Tensor tensor = x.tensor();
  Attrs attrs = pool_attrs("avg_pool2d", tensor, kernel_size, window, x.where());
  attrs.emplace_back("count_include_pad", int64_t{count_include_pad});
  return apply_primitive("avg_pool2d", {tensor}, attrs, x.where())[0];
}

Tensor adaptive_avg_pool2d(const Operand& x, const std::vector<int64_t>& output_size) {
  CallScope scope(x.where());
  Tensor tensor = x.tensor();
  const Shape& shape = tensor.shape();
  if (shape.size() != 4 || output_size.size() != 2 || output_size[0] < 1 || output_size[1] < 1 ||
      shape[2] < 1 || shape[3] < 1) {
    refuse(x.where(),
           "[adaptive_avg_pool2d] input is {}, output_size {}; expected planes with elements and "
           "two extents of at least 1",
           ballast::to_string(tensor.type()), ballast::to_string(output_size));
  }
  int64_t h = output_size[0], w = output_size[1];
  if (h == 1 && w == 1) return reduce_mean(tensor, {2, 3}, true);
  if (shape[2] % h == 0 && shape[3] % w == 0) {
    Window2d window;
    window.stride = {shape[2] / h, shape[3] / w};
    return avg_pool2d(tensor, window.stride, window);
  }
  return in_f32(tensor,
                [&](const Tensor& wide) { return window_means(window_means(wide, 3, w), 2, h); });
}

}  // namespace ballast::ops
