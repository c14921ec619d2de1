// Convolutions over [N, C, H, W] and [N, C, L].
#pragma once

#include "frontend/tensor/operand.h"

#include <string>
#include <vector>

namespace ballast::ops {

// How a window slides over planes (MindSpore's Conv2d and pooling arguments).
struct Window2d {
  std::vector<int64_t> stride = {1, 1};         // down, across; one number stands for both
  std::string pad_mode = "valid";               // "valid": none; "same": ceil(extent / stride)
                                                // results, the odd element after; "pad": `padding`
  std::vector<int64_t> padding = {0, 0, 0, 0};  // top, bottom, left, right; one number: all
  std::vector<int64_t> dilation = {1, 1};
  // Pooling only: the last window may reach beyond the padding if it begins before what is behind
  // x.
  bool ceil_mode = false;
};

// The same along one axis.
struct Window1d {
  int64_t stride = 1;
  std::string pad_mode = "valid";
  std::vector<int64_t> padding = {0, 0};  // before, after; one number: both
  int64_t dilation = 1;
  bool ceil_mode = false;
};

// The ops' attributes stride, padding and dilation of a window of this kernel over [.., H, W].
Attrs window_attrs(const char* op, const Window2d& window, const Shape& input, int64_t kernel_h,
                   int64_t kernel_w, const Where& where);

// What runs along one axis runs on planes of height 1: [N, C, L] as [N, C, 1, L], a window as one
// of that height, and a result as [N, C, L] again.
Tensor as_planes(const char* op, const Operand& x);
Window2d over_planes(const char* op, const Window1d& window, const Where& where);
Tensor without_height(const Tensor& planes);

// x [N, C, H, W] with weight [O, C / group, KH, KW] and bias [O].
Tensor conv2d(const Operand& x, const Operand& weight, const Window2d& window = {},
              int64_t group = 1);
Tensor conv2d(const Operand& x, const Operand& weight, const Operand& bias,
              const Window2d& window = {}, int64_t group = 1);
// x [N, C, L] with weight [O, C / group, K] and bias [O].
Tensor conv1d(const Operand& x, const Operand& weight, const Window1d& window = {},
              int64_t group = 1);
Tensor conv1d(const Operand& x, const Operand& weight, const Operand& bias,
              const Window1d& window = {}, int64_t group = 1);

// The transpose of conv2d, with PyTorch's extents: x [N, C, H, W] with weight [C, O / group, KH,
// KW] gives (H - 1) stride + extent of the kernel - padding + output_padding, for "same" H stride.
// output_padding (down, across; less than the stride) tells apart what conv2d makes alike.
Tensor conv2d_transpose(const Operand& x, const Operand& weight, const Window2d& window = {},
                        int64_t group = 1, const std::vector<int64_t>& output_padding = {0, 0});
Tensor conv2d_transpose(const Operand& x, const Operand& weight, const Operand& bias,
                        const Window2d& window = {}, int64_t group = 1,
                        const std::vector<int64_t>& output_padding = {0, 0});

// The gradients of conv2d with respect to x and weight; `attrs` are stride, padding, dilation and
// group.
Tensor conv2d_input_grad(const Operand& dy, const Operand& weight, const Shape& input_size,
                         const Attrs& attrs);
Tensor conv2d_weight_grad(const Operand& dy, const Operand& x, const Shape& weight_size,
                          const Attrs& attrs);

}  // namespace ballast::ops
