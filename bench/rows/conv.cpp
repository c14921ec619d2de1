#include "bench/rows.h"

namespace ballast::bench {
namespace {

struct Window {
  int64_t stride = 1, padding = 0, dilation = 1, group = 1;
};

Attrs attrs_of(const Window& w) {
  const auto pair = [](int64_t v) { return std::vector<int64_t>{v, v}; };
  return {{"stride", pair(w.stride)},
          {"padding", std::vector<int64_t>(4, w.padding)},
          {"dilation", pair(w.dilation)},
          {"group", w.group}};
}

// Forward, and both gradients of it.
void add_three(std::vector<Case>& rows, const std::string& name, const Operand& x, const Operand& w,
               const Window& window) {
  Operand y = f32({x.shape[0], w.shape[0]});
  for (size_t i = 2; i < 4; ++i) {
    const int64_t extent = window.dilation * (w.shape[i] - 1) + 1;
    y.shape.push_back((x.shape[i] + 2 * window.padding - extent) / window.stride + 1);
  }
  Attrs to_x = attrs_of(window), to_w = attrs_of(window);
  to_x["input_size"] = x.shape;
  to_w["weight_size"] = w.shape;
  rows.push_back({"conv_" + name, "conv2d", attrs_of(window), {x, w}});
  rows.push_back({"conv_" + name + "_dx", "conv2d_input_grad", to_x, {y, w}});
  rows.push_back({"conv_" + name + "_dw", "conv2d_weight_grad", to_w, {y, x}});
}

Attrs with(Attrs attrs, const Attrs& more) {
  attrs.insert(more.begin(), more.end());
  return attrs;
}

Attrs pool(int64_t kernel, int64_t stride, int64_t padding) {
  const auto pair = [](int64_t v) { return std::vector<int64_t>{v, v}; };
  return {{"kernel_size", pair(kernel)},
          {"stride", pair(stride)},
          {"padding", std::vector<int64_t>(4, padding)}};
}

}  // namespace

std::vector<Case> conv_rows() {
  const Operand image = f32({8, 64, 56, 56}), channel = f32({64});
  const Attrs batch_norm_relu = {{"has_scale", int64_t{1}}, {"activation", std::string("relu")}};
  std::vector<Case> rows = {
      {"conv_3x3_bn_relu",
       "conv2d",
       with(attrs_of({1, 1}), batch_norm_relu),
       {image, f32({64, 64, 3, 3}), channel, channel}},
      {"conv_patch16_bias",
       "conv2d",
       with(attrs_of({16}), {{"has_bias", int64_t{1}}}),
       {f32({8, 3, 224, 224}), f32({256, 3, 16, 16}), f32({256})}},
      {"conv_1x1_128_128_bn_relu",
       "conv2d",
       with(attrs_of({1}), batch_norm_relu),
       {f32({8, 128, 28, 28}), f32({128, 128, 1, 1}), f32({128}), f32({128})}},
      {"conv_1x1_256_256_bias",
       "conv2d",
       with(attrs_of({1}), {{"has_bias", int64_t{1}}}),
       {f32({8, 256, 14, 14}), f32({256, 256, 1, 1}), f32({256})}},
  };
  add_three(rows, "3x3_64_64", image, f32({64, 64, 3, 3}), {1, 1});
  add_three(rows, "3x3_128_128", f32({8, 128, 28, 28}), f32({128, 128, 3, 3}), {1, 1});
  add_three(rows, "3x3_256_256", f32({8, 256, 14, 14}), f32({256, 256, 3, 3}), {1, 1});
  add_three(rows, "3x3_512_512", f32({8, 512, 7, 7}), f32({512, 512, 3, 3}), {1, 1});
  add_three(rows, "patch16", f32({8, 3, 224, 224}), f32({256, 3, 16, 16}), {16});
  add_three(rows, "1x1_64_256", image, f32({256, 64, 1, 1}), {});
  add_three(rows, "depthwise_3x3", image, f32({64, 1, 3, 3}), {1, 1, 1, 64});
  add_three(rows, "7x7_stride2", f32({4, 3, 224, 224}), f32({64, 3, 7, 7}), {2, 3});
  add_three(rows, "3x3_64_3", f32({1, 64, 128, 128}), f32({3, 64, 3, 3}), {1, 1});
  // Of mobile networks, LeNet and ResNeXt; where a residual network halves its planes.
  add_three(rows, "depthwise_3x3_14", f32({8, 512, 14, 14}), f32({512, 1, 3, 3}), {1, 1, 1, 512});
  add_three(rows, "depthwise_3x3_7", f32({8, 1024, 7, 7}), f32({1024, 1, 3, 3}), {1, 1, 1, 1024});
  add_three(rows, "depthwise_3x3_stride2", f32({8, 64, 112, 112}), f32({64, 1, 3, 3}),
            {2, 1, 1, 64});
  add_three(rows, "depthwise_3x3_stride2_14", f32({8, 512, 14, 14}), f32({512, 1, 3, 3}),
            {2, 1, 1, 512});
  add_three(rows, "depthwise_5x5_stride2_28", f32({8, 240, 28, 28}), f32({240, 1, 5, 5}),
            {2, 2, 1, 240});
  add_three(rows, "depthwise_5x5_stride2_56", f32({4, 144, 56, 56}), f32({144, 1, 5, 5}),
            {2, 2, 1, 144});
  add_three(rows, "depthwise_5x5_28", f32({8, 128, 28, 28}), f32({128, 1, 5, 5}), {1, 2, 1, 128});
  add_three(rows, "depthwise_5x5_14", f32({8, 512, 14, 14}), f32({512, 1, 5, 5}), {1, 2, 1, 512});
  add_three(rows, "depthwise_7x7_14", f32({8, 384, 14, 14}), f32({384, 1, 7, 7}), {1, 3, 1, 384});
  add_three(rows, "depthwise_5x5_7", f32({8, 1152, 7, 7}), f32({1152, 1, 5, 5}), {1, 2, 1, 1152});
  add_three(rows, "depthwise_7x7_56", f32({8, 96, 56, 56}), f32({96, 1, 7, 7}), {1, 3, 1, 96});
  add_three(rows, "depthwise_7x7_7", f32({8, 768, 7, 7}), f32({768, 1, 7, 7}), {1, 3, 1, 768});
  add_three(rows, "groups32_128_128", f32({8, 128, 56, 56}), f32({128, 4, 3, 3}), {1, 1, 1, 32});
  add_three(rows, "5x5_1_6", f32({64, 1, 28, 28}), f32({6, 1, 5, 5}), {1, 2});
  add_three(rows, "5x5_6_16", f32({64, 6, 14, 14}), f32({16, 6, 5, 5}), {});
  add_three(rows, "3x3_stride2_128_128", f32({8, 128, 56, 56}), f32({128, 128, 3, 3}), {2, 1});
  add_three(rows, "3x3_stride2_odd", f32({2, 128, 35, 35}), f32({192, 128, 3, 3}), {2});
  add_three(rows, "11x11_stride4", f32({4, 3, 227, 227}), f32({64, 3, 11, 11}), {4});
  add_three(rows, "3x3_stride2_3_32", f32({8, 3, 224, 224}), f32({32, 3, 3, 3}), {2, 1});
  add_three(rows, "3x3_dilated_64_64", f32({8, 64, 28, 28}), f32({64, 64, 3, 3}), {1, 2, 2});
  add_three(rows, "4x4_stride2_64_128", f32({16, 64, 32, 32}), f32({128, 64, 4, 4}), {2, 1});
  add_three(rows, "5x5_64_192", f32({4, 64, 27, 27}), f32({192, 64, 5, 5}), {1, 2});
  add_three(rows, "5x5_64_64", f32({8, 64, 14, 14}), f32({64, 64, 5, 5}), {1, 2});
  add_three(rows, "1x1_2048_512", f32({8, 2048, 7, 7}), f32({512, 2048, 1, 1}), {});
  add_three(rows, "1x1_128_128", f32({8, 128, 28, 28}), f32({128, 128, 1, 1}), {});
  add_three(rows, "1x1_576_96", f32({8, 576, 14, 14}), f32({96, 576, 1, 1}), {});
  add_three(rows, "1x1_160_960", f32({8, 160, 7, 7}), f32({960, 160, 1, 1}), {});
  add_three(rows, "1x1_stride2_256_512", f32({8, 256, 56, 56}), f32({512, 256, 1, 1}), {2});
  add_three(rows, "1x1_stride2_128_256", f32({8, 128, 28, 28}), f32({256, 128, 1, 1}), {2});
  // What an image transformer begins with where windows are small, and downsamples by; channels
  // made more of large planes.
  add_three(rows, "patch4_3_96", f32({8, 3, 224, 224}), f32({96, 3, 4, 4}), {4});
  add_three(rows, "2x2_stride2_96_192", f32({8, 96, 56, 56}), f32({192, 96, 2, 2}), {2});
  add_three(rows, "1x1_16_96", f32({8, 16, 112, 112}), f32({96, 16, 1, 1}), {});
  add_three(rows, "odd_5x5_dilated", f32({3, 13, 37, 41}), f32({17, 13, 5, 5}), {1, 2, 2});
  const Operand large = f32({8, 64, 112, 112}), small = f32({8, 512, 14, 14});
  Attrs average_grad = pool(2, 2, 0), average_3x3_grad = pool(3, 2, 1), mean_grad = pool(7, 1, 0);
  mean_grad["input_size"] = std::vector<int64_t>{8, 2048, 7, 7};
  for (Attrs* attrs : {&average_grad, &average_3x3_grad}) (*attrs)["input_size"] = image.shape;
  rows.insert(
      rows.end(),
      {{"max_pool_3x3_stride2", "max_pool2d", pool(3, 2, 1), {image}},
       {"max_pool_3x3_stride2_112", "max_pool2d", pool(3, 2, 1), {large}},
       {"max_pool_3x3_stride2_112_grad",
        "max_pool2d_grad",
        pool(3, 2, 1),
        {f32({8, 64, 56, 56}), large}},
       {"max_pool_5x5_13", "max_pool2d", pool(5, 1, 2), {f32({8, 512, 13, 13})}},
       {"max_pool_5x5_52", "max_pool2d", pool(5, 1, 2), {f32({8, 64, 52, 52})}},
       {"max_pool_2x2_14", "max_pool2d", pool(2, 2, 0), {small}},
       {"max_pool_2x2_14_grad", "max_pool2d_grad", pool(2, 2, 0), {f32({8, 512, 7, 7}), small}},
       // Of odd extents, the last row and column belong to no window.
       {"max_pool_2x2_7", "max_pool2d", pool(2, 2, 0), {f32({8, 512, 7, 7})}},
       {"max_pool_2x2_7_grad",
        "max_pool2d_grad",
        pool(2, 2, 0),
        {f32({8, 512, 3, 3}), f32({8, 512, 7, 7})}},
       {"avg_pool_7x7_2048_grad", "avg_pool2d_grad", mean_grad, {f32({8, 2048, 1, 1})}},
       {"max_pool_2x2", "max_pool2d", pool(2, 2, 0), {image}},
       {"avg_pool_2x2", "avg_pool2d", pool(2, 2, 0), {image}},
       {"avg_pool_7x7", "avg_pool2d", pool(7, 7, 0), {f32({8, 512, 7, 7})}},
       {"max_pool_3x3_stride2_grad",
        "max_pool2d_grad",
        pool(3, 2, 1),
        {f32({8, 64, 28, 28}), image}},
       {"max_pool_2x2_grad", "max_pool2d_grad", pool(2, 2, 0), {f32({8, 64, 28, 28}), image}},
       {"avg_pool_2x2_grad", "avg_pool2d_grad", average_grad, {f32({8, 64, 28, 28})}},
       {"max_pool_3x3_grad", "max_pool2d_grad", pool(3, 1, 1), {image, image}},
       {"avg_pool_3x3_stride2_grad", "avg_pool2d_grad", average_3x3_grad, {f32({8, 64, 28, 28})}}});
  return rows;
}

}  // namespace ballast::bench
