#include "tests/op_table.h"
#include "tests/samples.h"

#include <algorithm>
#include <cmath>

namespace ballast::tests {

namespace {

struct Pool {
  Shape x;
  std::vector<int64_t> kernel, stride, padding, dilation;

  int64_t out(size_t axis) const {  // 0: down, 1: across
    int64_t room = x[2 + axis] + padding[2 * axis] + padding[2 * axis + 1] -
                   (kernel[axis] - 1) * dilation[axis] - 1;
    return room / stride[axis] + 1;
  }
  Shape y() const { return {x[0], x[1], out(0), out(1)}; }
  Attrs attrs() const {
    return {
        {"kernel_size", kernel}, {"stride", stride}, {"padding", padding}, {"dilation", dilation}};
  }
};

Pool pool_of(const Attrs& attrs, const Shape& x) {
  return {x, ints_attr(attrs, "kernel_size"), ints_attr(attrs, "stride"),
          ints_attr(attrs, "padding"), ints_attr(attrs, "dilation")};
}

// The elements of x in the window of y's element `at`, in row-major order.
std::vector<size_t> window_at(const Pool& pool, size_t at) {
  Index out = index_of(at, pool.y());
  std::vector<size_t> elements;
  for (int64_t ky = 0; ky < pool.kernel[0]; ++ky) {
    for (int64_t kx = 0; kx < pool.kernel[1]; ++kx) {
      int64_t row = out[2] * pool.stride[0] + ky * pool.dilation[0] - pool.padding[0];
      int64_t column = out[3] * pool.stride[1] + kx * pool.dilation[1] - pool.padding[2];
      if (row < 0 || row >= pool.x[2] || column < 0 || column >= pool.x[3]) continue;
      elements.push_back(flat_of({out[0], out[1], row, column}, pool.x));
    }
  }
  return elements;
}

// Of each window of `x` its winner, or -1: the first NaN, else the first maximum.
std::vector<int64_t> winners(const Pool& pool, const HostArray& x, size_t windows) {
  std::vector<int64_t> result;
  for (size_t at = 0; at < windows; ++at) {
    int64_t best = -1;
    for (size_t element : window_at(pool, at)) {
      double old = best < 0 ? 0 : x.values[static_cast<size_t>(best)], value = x.values[element];
      bool wins = best < 0 || value > old || (std::isnan(value) && !std::isnan(old));
      if (wins) best = static_cast<int64_t>(element);
    }
    result.push_back(best);
  }
  return result;
}

void max_pool2d(const std::vector<HostArray>& inputs, const Attrs& attrs,
                std::vector<HostArray>& outputs) {
  std::vector<double>& y = outputs[0].values;
  std::vector<int64_t> best = winners(pool_of(attrs, inputs[0].type.shape), inputs[0], y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = best[i] < 0 ? -std::numeric_limits<double>::infinity()
                       : inputs[0].values[static_cast<size_t>(best[i])];
  }
}

void max_pool2d_grad(const std::vector<HostArray>& inputs, const Attrs& attrs,
                     std::vector<HostArray>& outputs) {
  const std::vector<double>& dy = inputs[0].values;
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), 0.0);
  std::vector<int64_t> best = winners(pool_of(attrs, inputs[1].type.shape), inputs[1], dy.size());
  for (size_t i = 0; i < dy.size(); ++i) {
    if (best[i] >= 0) outputs[0].values[static_cast<size_t>(best[i])] += dy[i];
  }
}

void max_pool2d_grad_grad(const std::vector<HostArray>& inputs, const Attrs& attrs,
                          std::vector<HostArray>& outputs) {
  std::vector<double>& y = outputs[0].values;
  std::vector<int64_t> best = winners(pool_of(attrs, inputs[1].type.shape), inputs[1], y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = best[i] < 0 ? 0 : inputs[0].values[static_cast<size_t>(best[i])];
  }
}

// What the window of y's element `at` divides by.
double divisor(const Pool& pool, const Attrs& attrs, size_t at) {
  if (int_attr(attrs, "count_include_pad") == 0) {
    return static_cast<double>(window_at(pool, at).size());
  }
  Index out = index_of(at, pool.y());
  double count = 1;
  for (size_t axis = 0; axis < 2; ++axis) {
    int64_t begin = out[2 + axis] * pool.stride[axis];
    int64_t padded = pool.x[2 + axis] + pool.padding[2 * axis] + pool.padding[2 * axis + 1];
    count *= static_cast<double>(std::min(begin + pool.kernel[axis], padded) - begin);
  }
  return count;
}

void avg_pool2d(const std::vector<HostArray>& inputs, const Attrs& attrs,
                std::vector<HostArray>& outputs) {
  Pool pool = pool_of(attrs, inputs[0].type.shape);
  for (size_t i = 0; i < outputs[0].values.size(); ++i) {
    double total = 0;
    for (size_t element : window_at(pool, i)) total += inputs[0].values[element];
    outputs[0].values[i] = total / divisor(pool, attrs, i);
  }
}

void avg_pool2d_grad(const std::vector<HostArray>& inputs, const Attrs& attrs,
                     std::vector<HostArray>& outputs) {
  Pool pool = pool_of(attrs, outputs[0].type.shape);
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), 0.0);
  for (size_t i = 0; i < inputs[0].values.size(); ++i) {
    for (size_t element : window_at(pool, i)) {
      outputs[0].values[element] += inputs[0].values[i] / divisor(pool, attrs, i);
    }
  }
}

void add_max(OpFamilies& table, const Pool& pool, const HostArray& x, bool is_small) {
  table.add("max_pool2d", {x}, pool.attrs(), is_small);
  table.add("max_pool2d_grad", {real(pool.y(), -1, 1), x}, pool.attrs(), is_small);
  table.add("max_pool2d_grad_grad", {real(pool.x, -1, 1), x}, pool.attrs(), is_small);
}

void add_average(OpFamilies& table, const Pool& pool, bool is_small) {
  for (int64_t counts : {0, 1}) {
    Attrs attrs = pool.attrs();
    attrs.emplace_back("count_include_pad", counts);
    Attrs with_size = attrs;
    with_size.emplace_back("input_size", pool.x);
    table.add("avg_pool2d", {real(pool.x, -1, 1)}, attrs, is_small);
    table.add("avg_pool2d_grad", {real(pool.y(), -1, 1)}, with_size, is_small);
  }
}

}  // namespace

void add_pool(OpFamilies& table) {
  table.references.insert({
      {"max_pool2d", max_pool2d},
      {"max_pool2d_grad", max_pool2d_grad},
      {"max_pool2d_grad_grad", max_pool2d_grad_grad},
      {"avg_pool2d", avg_pool2d},
      {"avg_pool2d_grad", avg_pool2d_grad},
  });
  const TypeRule windows = [](const Types& in, const Attrs& attrs) {
    return Types{{in[0].dtype, pool_of(attrs, in.back().shape).y()}};
  };
  table.types.insert({
      {"max_pool2d", windows},
      {"max_pool2d_grad", like({1})},
      {"max_pool2d_grad_grad", windows},
      {"avg_pool2d", windows},
      {"avg_pool2d_grad", of_shape("input_size")},
  });
  const std::vector<int64_t> one = {1, 1}, two = {2, 2}, three = {3, 3}, none = {0, 0, 0, 0},
                             all = {1, 1, 1, 1};
  const std::vector<Pool> pools = {
      {{1, 1, 1, 1}, one, one, none, one},    {{1, 2, 4, 4}, two, two, none, one},
      {{1, 1, 4, 5}, three, two, all, one},   {{1, 2, 3, 4}, {2, 3}, one, {1, 0, 2, 1}, one},
      {{2, 3, 17, 13}, three, two, all, one}, {{1, 2, 19, 40}, {2, 5}, {1, 3}, {0, 1, 2, 4}, one},
      {{3, 1, 7, 7}, {7, 7}, one, none, one}, {{0, 3, 4, 4}, two, two, none, one},
      {{2, 2, 8, 33}, two, three, none, one}, {{1, 64, 6, 6}, three, one, all, one},
  };
  for (const Pool& pool : pools) {
    bool is_small = TensorType{DType::kF32, pool.x}.elements() < 40 && pool.x[0] > 0;
    add_max(table, pool, real(pool.x, -1, 1), is_small);
    add_average(table, pool, is_small);
  }
  for (const Pool& pool :
       {Pool{{1, 2, 7, 8}, two, one, all, two}, Pool{{1, 1, 1, 4}, two, one, all, two}}) {
    add_max(table, pool, real(pool.x, -1, 1), false);
  }
  Pool over_special{{1, 1, 2, 0}, two, one, all, one};
  HostArray numbers = special();
  over_special.x[3] = numbers.type.elements() / 2;
  numbers.values.resize(static_cast<size_t>(2 * over_special.x[3]));
  numbers.type.shape = over_special.x;
  add_max(table, over_special, numbers, false);
}

void draw_pool(OpFamilies& table, Draw& draw) {
  const int64_t tap = draw.pick<int64_t>({1, 2, 2, 3, 3, 5, 7});
  Pool pool{{}, {tap, draw.one_in(4) ? draw.extent(7) : tap}, {tap, tap}, {0, 0, 0, 0}, {1, 1}};
  if (draw.one_in(2)) pool.stride = {2, 2};
  if (draw.one_in(4)) pool.stride = {1, 1};
  if (draw.one_in(10)) pool.stride = {1 + draw.below(5), 1 + draw.below(5)};
  const int64_t dilation = draw.one_in(10) ? 2 : 1;
  int64_t extents[2];
  for (size_t axis = 0; axis < 2; ++axis) {
    for (size_t side = 0; side < 2; ++side) {
      pool.padding[2 * axis + side] = draw.one_in(2) ? 0 : draw.below(pool.kernel[axis] / 2 + 1);
    }
    const int64_t window = (pool.kernel[axis] - 1) * dilation + 1;
    extents[axis] = std::max(window, draw.extent(70));
  }
  pool.x = {draw.extent_or_none(4), draw.extent(600), extents[0], extents[1]};
  while (pool.x[1] > 1 && pool.x[0] * pool.x[1] * extents[0] * extents[1] > 60000) pool.x[1] /= 2;
  add_average(table, pool, false);
  pool.dilation = {dilation, dilation};
  const HostArray values = draw.one_in(2) ? real(pool.x, -1, 1) : whole(pool.x, 5, DType::kI32);
  add_max(table, pool, {{DType::kF32, pool.x}, values.values}, false);
}

}  // namespace ballast::tests
