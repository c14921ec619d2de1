#include "tests/op_table.h"
#include "tests/samples.h"

#include <algorithm>
#include <string>

namespace ballast::tests {

namespace {

// A convolution with all its attributes spelled out.
struct Conv {
  Shape x, w;
  std::vector<int64_t> stride, padding, dilation;
  int64_t group;

  int64_t out(size_t axis) const {  // 0: down, 1: across
    int64_t room = x[2 + axis] + padding[2 * axis] + padding[2 * axis + 1] -
                   (w[2 + axis] - 1) * dilation[axis] - 1;
    return room / stride[axis] + 1;
  }
  Shape y() const { return {x[0], w[0], out(0), out(1)}; }
  Attrs attrs() const {
    return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"group", group}};
  }
};

Conv conv_of(const Attrs& attrs, const Shape& x, const Shape& w) {
  return {x,
          w,
          ints_attr(attrs, "stride"),
          ints_attr(attrs, "padding"),
          ints_attr(attrs, "dilation"),
          int_attr(attrs, "group")};
}

// Calls f(at x, at w, at y) for every product of the convolution; at x is -1 on padding.
template <class F>
void for_each_product(const Conv& c, const F& f) {
  Shape y = c.y();
  for (size_t at_y = 0; at_y < static_cast<size_t>(TensorType{DType::kF32, y}.elements()); ++at_y) {
    Index out = index_of(at_y, y);
    int64_t group = out[1] / (c.w[0] / c.group);
    for (int64_t in = 0; in < c.w[1]; ++in) {
      const int64_t plane = out[0] * c.x[1] + group * c.w[1] + in;
      for (int64_t tap = 0; tap < c.w[2] * c.w[3]; ++tap) {
        int64_t row = out[2] * c.stride[0] + tap / c.w[3] * c.dilation[0] - c.padding[0];
        int64_t column = out[3] * c.stride[1] + tap % c.w[3] * c.dilation[1] - c.padding[2];
        if (row < 0 || row >= c.x[2] || column < 0 || column >= c.x[3]) continue;
        f(static_cast<size_t>((plane * c.x[2] + row) * c.x[3] + column),
          static_cast<size_t>((out[1] * c.w[1] + in) * c.w[2] * c.w[3] + tap), at_y);
      }
    }
  }
}

bool is_set(const Attrs& attrs, const std::string& name) {
  return std::find(attrs.begin(), attrs.end(), Attrs::value_type(name, int64_t{1})) != attrs.end();
}

void conv2d(const std::vector<HostArray>& inputs, const Attrs& attrs,
            std::vector<HostArray>& outputs) {
  Conv c = conv_of(attrs, inputs[0].type.shape, inputs[1].type.shape);
  std::vector<double>& y = outputs[0].values;
  std::fill(y.begin(), y.end(), 0.0);
  for_each_product(c, [&](size_t at_x, size_t at_w, size_t at_y) {
    y[at_y] += inputs[0].values[at_x] * inputs[1].values[at_w];
  });
  bool has_relu = std::find(attrs.begin(), attrs.end(),
                            Attrs::value_type("activation", std::string("relu"))) != attrs.end();
  for (size_t i = 0; i < y.size(); ++i) {
    auto channel = static_cast<size_t>(index_of(i, outputs[0].type.shape)[1]);
    size_t next = 2;
    if (is_set(attrs, "has_bias")) y[i] += inputs[next++].values[channel];
    if (is_set(attrs, "has_scale")) {
      y[i] = y[i] * inputs[next].values[channel] + inputs[next + 1].values[channel];
      next += 2;
    }
    if (is_set(attrs, "has_residual")) y[i] += inputs[next].values[i];
    if (has_relu && y[i] <= 0) y[i] = 0;
  }
}

void conv2d_input_grad(const std::vector<HostArray>& inputs, const Attrs& attrs,
                       std::vector<HostArray>& outputs) {
  Conv c = conv_of(attrs, outputs[0].type.shape, inputs[1].type.shape);
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), 0.0);
  for_each_product(c, [&](size_t at_x, size_t at_w, size_t at_y) {
    outputs[0].values[at_x] += inputs[0].values[at_y] * inputs[1].values[at_w];
  });
}

void conv2d_weight_grad(const std::vector<HostArray>& inputs, const Attrs& attrs,
                        std::vector<HostArray>& outputs) {
  Conv c = conv_of(attrs, inputs[1].type.shape, outputs[0].type.shape);
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), 0.0);
  for_each_product(c, [&](size_t at_x, size_t at_w, size_t at_y) {
    outputs[0].values[at_w] += inputs[0].values[at_y] * inputs[1].values[at_x];
  });
}

void add_three(OpFamilies& table, const Conv& c, bool is_small) {
  HostArray x = real(c.x, -1, 1), w = real(c.w, -1, 1), dy = real(c.y(), -1, 1);
  Attrs with_x = c.attrs(), with_w = c.attrs();
  with_x.emplace_back("input_size", c.x);
  with_w.emplace_back("weight_size", c.w);
  double terms = static_cast<double>(c.w[1] * c.w[2] * c.w[3]);
  double pixels = static_cast<double>(c.x[0] * c.out(0) * c.out(1));
  double outputs = static_cast<double>(c.w[0] / c.group * c.w[2] * c.w[3]);
  constexpr double kRounding = 1.2e-7;  // of one product of numbers below 1
  table.add("conv2d", {x, w}, c.attrs(), is_small).atol = 1e-6 + kRounding * terms;
  table.add("conv2d_input_grad", {dy, w}, with_x, is_small).atol = 1e-6 + kRounding * outputs;
  table.add("conv2d_weight_grad", {dy, x}, with_w, is_small).atol = 1e-6 + kRounding * pixels;
}

struct Epilogue {
  int64_t bias, scale, residual;
  const char* activation;
};

OpCase& add_epilogue(OpFamilies& table, const Conv& c, const Epilogue& e) {
  const int64_t channels = c.w[0];
  Attrs attrs = c.attrs();
  attrs.insert(attrs.end(), {{"has_bias", e.bias},
                             {"has_scale", e.scale},
                             {"has_residual", e.residual},
                             {"activation", std::string(e.activation)}});
  std::vector<HostArray> inputs = {real(c.x, -1, 1), real(c.w, -1, 1)};
  if (e.bias) inputs.push_back(real({channels}, -1, 1));
  if (e.scale) inputs.insert(inputs.end(), {real({channels}, 0.5, 1), real({channels}, -1, 1)});
  if (e.residual) inputs.push_back(real(c.y(), -1, 1));
  return table.add("conv2d", inputs, attrs, e.activation == std::string("none"));
}

void add_epilogues(OpFamilies& table) {
  for (const Epilogue& e :
       {Epilogue{1, 0, 0, "none"}, Epilogue{0, 1, 0, "none"}, Epilogue{1, 1, 1, "none"},
        Epilogue{0, 0, 0, "relu"}, Epilogue{1, 1, 1, "relu"}}) {
    add_epilogue(table, {{1, 2, 3, 3}, {2, 2, 2, 2}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1}, e);
  }
}

}  // namespace

void add_conv(OpFamilies& table) {
  table.references.insert({
      {"conv2d", conv2d},
      {"conv2d_input_grad", conv2d_input_grad},
      {"conv2d_weight_grad", conv2d_weight_grad},
  });
  table.types.insert({
      {"conv2d",
       [](const Types& in, const Attrs& attrs) {
         return Types{{in[0].dtype, conv_of(attrs, in[0].shape, in[1].shape).y()}};
       }},
      {"conv2d_input_grad", of_shape("input_size")},
      {"conv2d_weight_grad", of_shape("weight_size")},
  });
  const std::vector<int64_t> one = {1, 1}, two = {2, 2}, none = {0, 0, 0, 0}, all = {1, 1, 1, 1};
  // Small ones: finite differences of first and second order.
  add_three(table, {{1, 1, 1, 1}, {1, 1, 1, 1}, one, none, one, 1}, true);
  add_three(table, {{1, 2, 3, 3}, {2, 2, 2, 2}, one, all, one, 1}, true);
  add_three(table, {{2, 1, 4, 3}, {1, 1, 3, 2}, two, {1, 0, 0, 1}, one, 1}, true);
  add_three(table, {{1, 2, 4, 4}, {2, 1, 2, 2}, one, none, two, 2}, true);
  // Odd, prime, empty and larger ones.
  for (const Conv& c :
       std::vector<Conv>{{{0, 3, 5, 5}, {2, 3, 3, 3}, one, all, one, 1},
                         {{2, 0, 5, 5}, {2, 0, 3, 3}, one, all, one, 1},
                         {{2, 3, 7, 11}, {5, 3, 3, 3}, one, all, one, 1},
                         {{1, 5, 13, 7}, {7, 5, 5, 3}, {2, 3}, {2, 1, 0, 3}, one, 1},
                         {{3, 4, 9, 9}, {6, 2, 3, 3}, {1, 2}, all, two, 2},
                         {{1, 16, 6, 6}, {17, 16, 1, 1}, one, none, one, 1},
                         {{2, 8, 6, 5}, {9, 8, 1, 1}, two, none, one, 1},
                         {{1, 7, 10, 18}, {7, 1, 3, 3}, one, all, one, 7},
                         {{1, 6, 11, 9}, {12, 1, 3, 3}, two, all, one, 6},
                         {{1, 3, 16, 16}, {20, 3, 8, 8}, {8, 8}, none, one, 1},
                         {{1, 20, 8, 8}, {33, 20, 3, 3}, one, all, one, 1},
                         {{1, 2, 4, 5}, {3, 2, 4, 5}, one, none, one, 1},
                         {{1, 1, 3, 3}, {1, 1, 2, 2}, {5, 5}, none, one, 1},
                         {{1, 2, 2, 2}, {2, 2, 3, 3}, one, {4, 4, 4, 4}, two, 1}}) {
    add_three(table, c, false);
  }
  add_epilogues(table);
}

void draw_conv(OpFamilies& table, Draw& draw) {
  const int64_t kind = draw.below(4);  // one group twice as often, groups, every channel its own
  int64_t group = kind < 2 ? 1 : draw.extent(kind == 2 ? 16 : 130);
  int64_t in = kind == 3 ? 1 : draw.extent(kind == 2 ? 40 : 300);
  int64_t out = kind == 3 ? draw.pick<int64_t>({1, 1, 2}) : draw.extent(kind == 2 ? 40 : 300);
  const int64_t tap = draw.pick<int64_t>({1, 1, 2, 3, 3, 3, 3, 5, 7, 11});
  Conv c{{}, {}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1};
  c.w = {0, 0, tap, draw.one_in(4) ? draw.extent(5) : tap};
  if (draw.one_in(3)) c.stride = {2, 2};
  const bool is_tiny = draw.one_in(6);  // planes as small as strides and windows
  if (draw.one_in(is_tiny ? 2 : 10)) c.stride = {1 + draw.below(5), 1 + draw.below(5)};
  if (draw.one_in(10)) c.dilation = {1 + draw.below(3), 1 + draw.below(3)};
  for (size_t side = 0; side < 4; ++side) {
    c.padding[side] = c.w[2 + side / 2] / 2;
    if (draw.one_in(6)) c.padding[side] = draw.below(c.w[2 + side / 2] + 1);
    if (draw.one_in(2)) c.padding[side] *= c.dilation[side / 2];
  }
  int64_t extents[2];
  // Squares that networks have, some of which have kernels of their own, and others.
  const bool is_usual = draw.one_in(3);
  const int64_t usual = draw.pick<int64_t>({6, 7, 8, 10, 12, 13, 14, 16, 28, 32, 56});
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t window = (c.w[2 + axis] - 1) * c.dilation[axis] + 1;
    const int64_t least = window - c.padding[2 * axis] - c.padding[2 * axis + 1];
    const int64_t any = is_tiny ? 1 + draw.below(6) : is_usual ? usual : draw.extent(60);
    extents[axis] = std::max<int64_t>({1, least, any});
  }
  if (!is_tiny && draw.one_in(2)) extents[1] = std::max(extents[1], extents[0]);
  // What it multiplies is bounded by halving what can be.
  const auto products = [&] {
    return group * in * out * c.w[2] * c.w[3] * extents[0] * extents[1] / c.stride[0] / c.stride[1];
  };
  for (; products() > 12000000 && in > 1; in = (in + 1) / 2) out = (out + 1) / 2;
  for (; products() > 12000000 && group > 1;) group = (group + 1) / 2;
  const int64_t images = draw.one_in(40) ? 0 : 1 + draw.below(products() > 3000000 ? 2 : 5);
  c.group = group;
  c.x = {images, group * in, extents[0], extents[1]};
  c.w[0] = group * out;
  c.w[1] = in;
  add_three(table, c, false);
  const Epilogue e{draw.below(2), draw.below(2), draw.below(2),
                   draw.pick<const char*>({"none", "relu"})};
  add_epilogue(table, c, e).atol = 1e-6 + 2e-7 * static_cast<double>(in * c.w[2] * c.w[3]);
}

}  // namespace ballast::tests
