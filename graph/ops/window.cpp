#include "graph/ops/window.h"

namespace ballast::graph {

using device::Code;
using device::fail;

namespace {

const std::vector<int64_t>& checked(const Attrs& attrs, const char* name, size_t count,
                                    int64_t least) {
  const std::vector<int64_t>& values = ints_attr(attrs, name);
  bool is_valid = values.size() == count;
  for (int64_t value : values) is_valid = is_valid && value >= least && value < (1 << 30);
  if (!is_valid) {
    fail(Code::kInvalidArgument, "{} is {}, expected {} numbers of at least {}", name,
         to_string(values), count, least);
  }
  return values;
}

}  // namespace

std::vector<AttrSpec> window_attrs() {
  return {{"stride", std::vector<int64_t>{1, 1}},
          {"padding", std::vector<int64_t>{0, 0, 0, 0}},
          {"dilation", std::vector<int64_t>{1, 1}}};
}

Window window_of(const Attrs& attrs, int64_t kernel_h, int64_t kernel_w) {
  if (kernel_h < 1 || kernel_w < 1) {
    fail(Code::kInvalidArgument, "the kernel is {} by {}, expected at least 1 by 1", kernel_h,
         kernel_w);
  }
  const auto& stride = checked(attrs, "stride", 2, 1);
  const auto& padding = checked(attrs, "padding", 4, 0);
  const auto& dilation = checked(attrs, "dilation", 2, 1);
  Window window;
  window.kernel_h = kernel_h, window.kernel_w = kernel_w;
  window.stride_h = stride[0], window.stride_w = stride[1];
  window.top = padding[0], window.bottom = padding[1];
  window.left = padding[2], window.right = padding[3];
  window.dilation_h = dilation[0], window.dilation_w = dilation[1];
  return window;
}

void check_fits(const Window& w, int64_t height, int64_t width) {
  const int64_t padded_h = height + w.top + w.bottom, padded_w = width + w.left + w.right;
  const int64_t extent_h = (w.kernel_h - 1) * w.dilation_h + 1,
                extent_w = (w.kernel_w - 1) * w.dilation_w + 1;
  if (extent_h > padded_h || extent_w > padded_w) {
    fail(Code::kInvalidArgument,
         "the kernel covers {} by {} elements, but the padded input has {} by {}", extent_h,
         extent_w, padded_h, padded_w);
  }
}

Shape shape_attr(const Attrs& attrs, const char* name) { return checked(attrs, name, 4, 0); }

}  // namespace ballast::graph
