#include "frontend/ops/conv.h"

#include "frontend/ops/call.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/shape.h"

#include <algorithm>

namespace ballast::ops {

namespace {

// One number stands for all `count`.
std::vector<int64_t> repeated(std::vector<int64_t> values, size_t count) {
  if (values.size() == 1) values.resize(count, values[0]);
  return values;
}

// Before and after one axis, so that ceil(extent / stride) windows fit.
std::pair<int64_t, int64_t> same_padding(int64_t extent, int64_t kernel, int64_t stride,
                                         int64_t dilation) {
  int64_t windows = (extent + stride - 1) / stride;
  int64_t total =
      std::max<int64_t>(0, (windows - 1) * stride + (kernel - 1) * dilation + 1 - extent);
  return {total / 2, total - total / 2};
}

void check_floor_mode(const char* op, const Window2d& window, const Where& where) {
  if (window.ceil_mode) refuse(where, "[{}] ceil_mode is set, which only pooling has", op);
}

Tensor convolution(const std::vector<Tensor>& inputs, const Window2d& window, int64_t group,
                   const Where& where) {
  const Shape& weight = inputs[1].shape();
  if (weight.size() != 4) {
    refuse(where, "[conv2d] weight is {}, expected rank 4", ballast::to_string(inputs[1].type()));
  }
  check_floor_mode("conv2d", window, where);
  Attrs attrs = window_attrs("conv2d", window, inputs[0].shape(), weight[2], weight[3], where);
  attrs.emplace_back("group", group);
  attrs.emplace_back("has_bias", int64_t{inputs.size() > 2});
  return apply_primitive("conv2d", inputs, attrs, where)[0];
}

}  // namespace

Attrs window_attrs(const char* op, const Window2d& window, const Shape& input, int64_t kernel_h,
                   int64_t kernel_w, const Where& where) {
  std::vector<int64_t> stride = repeated(window.stride, 2), padding = repeated(window.padding, 4),
                       dilation = repeated(window.dilation, 2);
  bool is_none = std::all_of(padding.begin(), padding.end(), [](int64_t p) { return p == 0; });
  if (window.pad_mode != "pad" && !is_none) {
    refuse(where, "[{}] padding is {}, which needs pad_mode \"pad\", not \"{}\"", op,
           ballast::to_string(padding), window.pad_mode);
  }
  if (window.pad_mode == "same") {
    if (input.size() != 4 || stride.size() != 2 || dilation.size() != 2 || stride[0] < 1 ||
        stride[1] < 1) {
      refuse(
          where,
          "[{}] pad_mode \"same\" needs rank 4, two strides of at least 1 and two dilations, got "
          "shape {}, stride {}, dilation {}",
          op, ballast::to_string(input), ballast::to_string(stride), ballast::to_string(dilation));
    }
    auto [top, bottom] = same_padding(input[2], kernel_h, stride[0], dilation[0]);
    auto [left, right] = same_padding(input[3], kernel_w, stride[1], dilation[1]);
    padding = {top, bottom, left, right};
  } else if (window.pad_mode != "valid" && window.pad_mode != "pad") {
    refuse(where, "[{}] pad_mode is \"{}\", expected valid, same or pad", op, window.pad_mode);
  }
  return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}};
}

Tensor conv2d(const Operand& x, const Operand& weight, const Window2d& window, int64_t group) {
  return convolution({x.tensor(), weight.tensor()}, window, group, x.where());
}

Tensor conv2d(const Operand& x, const Operand& weight, const Operand& bias, const Window2d& window,
              int64_t group) {
  return convolution({x.tensor(), weight.tensor(), bias.tensor()}, window, group, x.where());
}

namespace {

Tensor line_convolution(const Operand& x, const Operand& weight, const Operand* bias,
                        const Window1d& window, int64_t group) {
  CallScope scope(x.where());
  const Tensor kernel = weight.tensor();
  if (kernel.rank() != 3) {
    refuse(x.where(), "[conv1d] weight is {}, expected rank 3", ballast::to_string(kernel.type()));
  }
  std::vector<Tensor> inputs = {as_planes("conv1d", x), expand_dims(kernel, 2)};
  if (bias) inputs.push_back(bias->tensor());
  return without_height(
      convolution(inputs, over_planes("conv1d", window, x.where()), group, x.where()));
}

}  // namespace

Tensor as_planes(const char* op, const Operand& x) {
  const Tensor lines = x.tensor();
  if (lines.rank() != 3) {
    refuse(x.where(), "[{}] input is {}, expected [N, C, L]", op, ballast::to_string(lines.type()));
  }
  return expand_dims(lines, 2);
}

Window2d over_planes(const char* op, const Window1d& window, const Where& where) {
  const std::vector<int64_t> padding = repeated(window.padding, 2);
  if (padding.size() != 2) {
    refuse(where, "[{}] padding is {}, expected one or two numbers", op,
           ballast::to_string(padding));
  }
  return {{1, window.stride},
          window.pad_mode,
          {0, 0, padding[0], padding[1]},
          {1, window.dilation},
          window.ceil_mode};
}

Tensor without_height(const Tensor& planes) { return squeeze(planes, {2}); }

Tensor conv1d(const Operand& x, const Operand& weight, const Window1d& window, int64_t group) {
  return line_convolution(x, weight, nullptr, window, group);
}

Tensor conv1d(const Operand& x, const Operand& weight, const Operand& bias, const Window1d& window,
              int64_t group) {
  return line_convolution(x, weight, &bias, window, group);
}

namespace {

// What conv2d_transpose makes of x, given the window's attributes but for "same".
Shape transposed_size(const Shape& x, const Shape& weight, const Window2d& window, int64_t group,
                      const std::vector<int64_t>& output_padding, const Where& where) {
  const std::vector<int64_t> stride = repeated(window.stride, 2),
                             padding = repeated(window.padding, 4),
                             dilation = repeated(window.dilation, 2),
                             more = repeated(output_padding, 2);
  if (x.size() != 4 || weight.size() != 4 || stride.size() != 2 || padding.size() != 4 ||
      dilation.size() != 2 || more.size() != 2) {
    refuse(where,
           "[conv2d_transpose] needs input and weight of rank 4, two strides, dilations and "
           "output_paddings and four paddings, got shapes {} and {}, stride {}, dilation {}, "
           "output_padding {}, padding {}",
           ballast::to_string(x), ballast::to_string(weight), ballast::to_string(stride),
           ballast::to_string(dilation), ballast::to_string(more), ballast::to_string(padding));
  }
  Shape size = {x[0], weight[1] * group, 0, 0};
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t covered = (weight[2 + axis] - 1) * dilation[axis] + 1;
    if (more[axis] < 0 || more[axis] >= stride[axis]) {
      refuse(where, "[conv2d_transpose] output_padding is {}, expected less than the stride {}",
             ballast::to_string(more), ballast::to_string(stride));
    }
    size[2 + axis] = window.pad_mode == "same"
                         ? x[2 + axis] * stride[axis]
                         : (x[2 + axis] - 1) * stride[axis] + covered - padding[2 * axis] -
                               padding[2 * axis + 1] + more[axis];
  }
  return size;
}

}  // namespace

Tensor conv2d_transpose(const Operand& x, const Operand& weight, const Window2d& window,
                        int64_t group, const std::vector<int64_t>& output_padding) {
  CallScope scope(x.where());
  check_floor_mode("conv2d_transpose", window, x.where());
  const Tensor given = x.tensor(), kernel = weight.tensor();
  const Shape size =
      transposed_size(given.shape(), kernel.shape(), window, group, output_padding, x.where());
  Attrs attrs = window_attrs("conv2d_transpose", window, size, kernel.shape()[2], kernel.shape()[3],
                             x.where());
  attrs.emplace_back("group", group);
  return conv2d_input_grad(given, kernel, size, attrs);
}

Tensor conv2d_transpose(const Operand& x, const Operand& weight, const Operand& bias,
                        const Window2d& window, int64_t group,
                        const std::vector<int64_t>& output_padding) {
  CallScope scope(x.where());
  const Tensor each = bias.tensor();
  return conv2d_transpose(x, weight, window, group, output_padding) +
         reshape(each, {each.elements(), 1, 1});
}

Tensor conv2d_input_grad(const Operand& dy, const Operand& weight, const Shape& input_size,
                         const Attrs& attrs) {
  Attrs all = attrs;
  all.emplace_back("input_size", input_size);
  return apply_primitive("conv2d_input_grad", {dy.tensor(), weight.tensor()}, all, dy.where())[0];
}

Tensor conv2d_weight_grad(const Operand& dy, const Operand& x, const Shape& weight_size,
                          const Attrs& attrs) {
  Attrs all = attrs;
  all.emplace_back("weight_size", weight_size);
  return apply_primitive("conv2d_weight_grad", {dy.tensor(), x.tensor()}, all, dy.where())[0];
}

}  // namespace ballast::ops
