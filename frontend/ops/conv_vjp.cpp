// The gradients of convolutions: each of the three ops is bilinear, and the other two are its
// gradients. Names: g is the output's cotangent, y the output, x the first input.
#include "frontend/ops/ops.h"
#include "frontend/transforms/jvp_rules.h"
#include "frontend/transforms/vjp_rules.h"
#include "frontend/transforms/vmap_rules.h"

#include <algorithm>

namespace ballast {

using namespace vjp_rules;

namespace {

// The attributes that the three ops share, as far as they are given.
Attrs shared(const Attrs& attrs) {
  Attrs result;
  for (const auto& attr : attrs) {
    for (const char* name : {"stride", "padding", "dilation", "group"}) {
      if (attr.first == name) result.push_back(attr);
    }
  }
  return result;
}

template <class Value>
bool has(const Attrs& attrs, const std::string& name, const Value& value) {
  return std::find(attrs.begin(), attrs.end(), Attrs::value_type(name, value)) != attrs.end();
}

// A vector over channels as [1, O, 1, 1].
Tensor over_channels(const Tensor& vector) {
  return ops::reshape(vector, {1, vector.shape()[0], 1, 1});
}

Tensor sum_per_channel(const Tensor& tensor) { return ops::reduce_sum(tensor, {0, 2, 3}); }

// y = relu(scale (conv + bias) + shift + residual), with the parts that the attributes name.
std::vector<Tensor> conv2d(const VjpArgs& args) {
  bool has_bias = has(args.attrs, "has_bias", int64_t{1});
  bool has_scale = has(args.attrs, "has_scale", int64_t{1});
  bool has_residual = has(args.attrs, "has_residual", int64_t{1});
  const Tensor& weight = args.inputs[1];
  Attrs attrs = shared(args.attrs);
  Tensor gradient = g(args);
  if (has(args.attrs, "activation", std::string("relu"))) {
    gradient = ops::call("relu_grad", {gradient, y(args)})[0];
  }
  Tensor residual_gradient = gradient;
  std::vector<Tensor> scale_gradients;
  if (has_scale) {
    Attrs plain = attrs;
    plain.emplace_back("has_bias", int64_t{has_bias});
    std::vector<Tensor> inputs(args.inputs.begin(), args.inputs.begin() + 2 + has_bias);
    Tensor scaled = ops::call("conv2d", inputs, plain)[0];
    scale_gradients = {sum_per_channel(gradient * scaled), sum_per_channel(gradient)};
    gradient = gradient * over_channels(args.inputs[2 + static_cast<size_t>(has_bias)]);
  }
  std::vector<Tensor> result = {ops::conv2d_input_grad(gradient, weight, x(args).shape(), attrs),
                                ops::conv2d_weight_grad(gradient, x(args), weight.shape(), attrs)};
  if (has_bias) result.push_back(sum_per_channel(gradient));
  result.insert(result.end(), scale_gradients.begin(), scale_gradients.end());
  if (has_residual) result.push_back(residual_gradient);
  return result;
}

std::vector<Tensor> conv2d_input_grad(const VjpArgs& args) {
  const Tensor &dy = args.inputs[0], &weight = args.inputs[1];
  Attrs attrs = shared(args.attrs);
  return {ops::call("conv2d", {g(args), weight}, attrs)[0],
          ops::conv2d_weight_grad(dy, g(args), weight.shape(), attrs)};
}

std::vector<Tensor> conv2d_weight_grad(const VjpArgs& args) {
  const Tensor &dy = args.inputs[0], &input = args.inputs[1];
  Attrs attrs = shared(args.attrs);
  return {ops::call("conv2d", {input, g(args)}, attrs)[0],
          ops::conv2d_input_grad(dy, g(args), input.shape(), attrs)};
}

}  // namespace

std::vector<Primitive> conv_primitives() {
  return {
      {"conv2d", conv2d, nullptr, vmap_rules::conv2d},
      {"conv2d_input_grad", conv2d_input_grad, jvp_rules::multilinear,
       vmap_rules::conv2d_input_grad},
      {"conv2d_weight_grad", conv2d_weight_grad, jvp_rules::multilinear,
       vmap_rules::conv2d_weight_grad},
  };
}

}  // namespace ballast
