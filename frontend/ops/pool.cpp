#include "frontend/ops/pool.h"

#include "frontend/ops/call.h"
#include "frontend/ops/in_f32.h"
#include "frontend/ops/index.h"
#include "frontend/ops/reduce.h"
#include "frontend/ops/shape.h"

#include <algorithm>
#include <array>

namespace ballast::ops {

namespace {

using Extents = std::vector<int64_t>;

Attrs pool_attrs(const char* op, const Tensor& x, Extents kernel, const Window2d& window,
                 const Where& where) {
  if (kernel.size() == 1) kernel.push_back(kernel[0]);
  if (kernel.size() != 2) {
    refuse(where, "[{}] kernel_size is {}, expected one or two numbers", op,
           ballast::to_string(kernel));
  }
  Attrs attrs = window_attrs(op, window, x.shape(), kernel[0], kernel[1], where);
  attrs.emplace_back("kernel_size", kernel);
  return attrs;
}

void set_padding(Attrs& attrs, Extents padding) {
  const auto at = std::find_if(attrs.begin(), attrs.end(),
                               [](const auto& attr) { return attr.first == "padding"; });
  at->second = std::move(padding);
}

// How far ceil_mode's last window reaches beyond the padding of an axis: as many windows as it
// takes to see all of the padded axis, less those that would begin in the padding behind x.
int64_t overhang(int64_t extent, int64_t before, int64_t after, int64_t covered, int64_t stride) {
  const int64_t padded = before + extent + after, room = padded - covered;
  if (extent < 1 || stride < 1 || room <= -stride) return 0;  // for the op to refuse
  const int64_t steps = std::min((room + stride - 1) / stride, (before + extent - 1) / stride);
  return std::max<int64_t>(0, steps * stride + covered - padded);
}

// Down and across.
std::array<int64_t, 2> overhangs(const Attrs& attrs, const Shape& shape) {
  const Extents &kernel = ints_attr(attrs, "kernel_size"), &stride = ints_attr(attrs, "stride"),
                &padding = ints_attr(attrs, "padding"), &dilation = ints_attr(attrs, "dilation");
  std::array<int64_t, 2> beyond = {0, 0};
  const bool is_whole =
      shape.size() == 4 && stride.size() == 2 && padding.size() == 4 && dilation.size() == 2;
  for (size_t axis = 0; is_whole && axis < 2; ++axis) {
    const int64_t covered = (kernel[axis] - 1) * dilation[axis] + 1;
    beyond[axis] =
        overhang(shape[2 + axis], padding[2 * axis], padding[2 * axis + 1], covered, stride[axis]);
  }
  return beyond;
}

struct Span {
  int64_t begin, end;
};

// Of adaptive pooling along one axis.
std::vector<Span> adaptive_spans(int64_t extent, int64_t count) {
  std::vector<Span> spans;
  for (int64_t i = 0; i < count; ++i) {
    spans.push_back({i * extent / count, ((i + 1) * extent + count - 1) / count});
  }
  return spans;
}

int64_t longest_of(const std::vector<Span>& spans) {
  int64_t longest = 0;
  for (const Span& span : spans) longest = std::max(longest, span.end - span.begin);
  return longest;
}

// The elements of each span one after another; behind those of a shorter one stands filler(span).
template <class Filler>
std::vector<int32_t> picks_of(const std::vector<Span>& spans, const Filler& filler) {
  const int64_t longest = longest_of(spans);
  std::vector<int32_t> picks;
  for (const Span& span : spans) {
    for (int64_t at = span.begin; at < span.begin + longest; ++at) {
      picks.push_back(static_cast<int32_t>(at < span.end ? at : filler(span)));
    }
  }
  return picks;
}

Tensor window_means(const Tensor& x, int64_t axis, int64_t count) {
  const int64_t extent = x.shape()[static_cast<size_t>(axis)];
  const std::vector<Span> spans = adaptive_spans(extent, count);
  std::vector<float> lengths;
  for (const Span& span : spans) lengths.push_back(static_cast<float>(span.end - span.begin));
  Shape over_count(x.shape().size() - static_cast<size_t>(axis), 1);
  over_count[0] = count;
  // An index of `extent` reads as 0.
  const Tensor picks = Tensor::on_host(picks_of(spans, [=](const Span&) { return extent; }),
                                       {count, longest_of(spans)});
  return reduce_sum(gather(x, picks, axis), {axis + 1}) / Tensor::on_host(lengths, over_count);
}

// Every window's elements next to each other along an axis, a shorter one's last as often as need
// be: it wins no maximum that it would not win by itself. `length` becomes that of the windows.
Tensor windows_side_by_side(const Tensor& x, int64_t axis, int64_t count, int64_t& length) {
  const int64_t extent = x.shape()[static_cast<size_t>(axis)];
  const std::vector<Span> spans = adaptive_spans(extent, count);
  length = longest_of(spans);
  if (extent % count == 0) return x;
  const Tensor picks = Tensor::on_host(
      picks_of(spans, [](const Span& span) { return span.end - 1; }), {count * length});
  return gather(x, picks, axis);
}

// The result's planes.
std::array<int64_t, 2> adaptive_extents(const char* op, const Tensor& x, const Extents& output_size,
                                        const Where& where) {
  const Shape& shape = x.shape();
  if (shape.size() == 4 && output_size.size() == 2 && shape[2] >= 1 && shape[3] >= 1) {
    const int64_t h = output_size[0] == -1 ? shape[2] : output_size[0],
                  w = output_size[1] == -1 ? shape[3] : output_size[1];
    if (h >= 1 && w >= 1) return {h, w};
  }
  refuse(where,
         "[{}] input is {}, output_size {}; expected planes with elements and two extents of at "
         "least 1, or -1 for the input's",
         op, ballast::to_string(x.type()), ballast::to_string(output_size));
}

}  // namespace

Tensor max_pool2d(const Operand& x, const std::vector<int64_t>& kernel_size,
                  const Window2d& window) {
  Tensor tensor = x.tensor();
  Attrs attrs = pool_attrs("max_pool2d", tensor, kernel_size, window, x.where());
  if (window.ceil_mode) {
    const auto [down, across] = overhangs(attrs, tensor.shape());
    Extents padding = ints_attr(attrs, "padding");
    padding[1] += down, padding[3] += across;
    set_padding(attrs, padding);
  }
  return apply_primitive("max_pool2d", {tensor}, attrs, x.where())[0];
}

Tensor avg_pool2d(const Operand& x, const std::vector<int64_t>& kernel_size, const Window2d& window,
                  bool count_include_pad) {
  CallScope scope(x.where());
  Tensor tensor = x.tensor();
  Attrs attrs = pool_attrs("avg_pool2d", tensor, kernel_size, window, x.where());
  const auto [down, across] =
      window.ceil_mode ? overhangs(attrs, tensor.shape()) : std::array<int64_t, 2>{0, 0};
  if (down + across > 0) {
    Extents padding = ints_attr(attrs, "padding");
    if (count_include_pad) {
      // The padding that counts becomes elements, so that the op's own is what does not.
      tensor = pad(tensor, {{0, 0}, {0, 0}, {padding[0], padding[1]}, {padding[2], padding[3]}});
      padding = {0, 0, 0, 0};
      count_include_pad = false;
    }
    padding[1] += down, padding[3] += across;
    set_padding(attrs, padding);
  }
  attrs.emplace_back("count_include_pad", int64_t{count_include_pad});
  return apply_primitive("avg_pool2d", {tensor}, attrs, x.where())[0];
}

Tensor adaptive_avg_pool2d(const Operand& x, const std::vector<int64_t>& output_size) {
  CallScope scope(x.where());
  Tensor tensor = x.tensor();
  const auto [down, across] =
      adaptive_extents("adaptive_avg_pool2d", tensor, output_size, x.where());
  const Shape& shape = tensor.shape();
  const int64_t h = down, w = across;  // a part of a pair cannot be captured
  if (h == 1 && w == 1) return reduce_mean(tensor, {2, 3}, true);
  if (shape[2] % h == 0 && shape[3] % w == 0) {
    Window2d window;
    window.stride = {shape[2] / h, shape[3] / w};
    return avg_pool2d(tensor, window.stride, window);
  }
  return in_f32(tensor,
                [&](const Tensor& wide) { return window_means(window_means(wide, 3, w), 2, h); });
}

Tensor adaptive_max_pool2d(const Operand& x, const std::vector<int64_t>& output_size) {
  CallScope scope(x.where());
  Tensor tensor = x.tensor();
  const std::array<int64_t, 2> extents =
      adaptive_extents("adaptive_max_pool2d", tensor, output_size, x.where());
  Window2d window;
  for (size_t axis : {0, 1}) {
    tensor = windows_side_by_side(tensor, static_cast<int64_t>(axis) + 2, extents[axis],
                                  window.stride[axis]);
  }
  return max_pool2d(tensor, window.stride, window);
}

Tensor max_pool1d(const Operand& x, int64_t kernel_size, const Window1d& window) {
  CallScope scope(x.where());
  return without_height(max_pool2d(as_planes("max_pool1d", x), {1, kernel_size},
                                   over_planes("max_pool1d", window, x.where())));
}

Tensor avg_pool1d(const Operand& x, int64_t kernel_size, const Window1d& window,
                  bool count_include_pad) {
  CallScope scope(x.where());
  return without_height(avg_pool2d(as_planes("avg_pool1d", x), {1, kernel_size},
                                   over_planes("avg_pool1d", window, x.where()),
                                   count_include_pad));
}

}  // namespace ballast::ops
