// Attributes of ops that slide a window over planes: stride, padding, dilation.
#pragma once

#include "graph/op.h"

namespace ballast::graph {

struct Window {
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1;
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  int64_t dilation_h = 1, dilation_w = 1;
};

// stride [1, 1], padding [0, 0, 0, 0] (top, bottom, left, right), dilation [1, 1].
std::vector<AttrSpec> window_attrs();
// Checks their lengths and signs; the kernel's extents must be at least 1.
Window window_of(const Attrs& attrs, int64_t kernel_h, int64_t kernel_w);
// Throws where the window does not fit into the padded plane.
void check_fits(const Window& window, int64_t height, int64_t width);

// The attribute `name` as four extents that are not negative.
Shape shape_attr(const Attrs& attrs, const char* name);

template <class Config>
void put_window(const Window& window, Config& config) {
  config.kernel_h = window.kernel_h, config.kernel_w = window.kernel_w;
  config.stride_h = window.stride_h, config.stride_w = window.stride_w;
  config.top = window.top, config.bottom = window.bottom;
  config.left = window.left, config.right = window.right;
  config.dilation_h = window.dilation_h, config.dilation_w = window.dilation_w;
}

}  // namespace ballast::graph
