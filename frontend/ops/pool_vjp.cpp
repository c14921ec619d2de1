// The gradients of pooling. Which element wins a window is constant almost everywhere, so max
// pooling is linear in all but its choice. Names: g is the output's cotangent, x the first input.
#include "frontend/ops/ops.h"
#include "frontend/transforms/jvp_rules.h"
#include "frontend/transforms/vjp_rules.h"
#include "frontend/transforms/vmap_rules.h"

#include <algorithm>

namespace ballast {

using namespace vjp_rules;

namespace {

std::vector<Tensor> max_pool2d(const VjpArgs& args) {
  return ops::call("max_pool2d_grad", {g(args), x(args)}, args.attrs);
}

std::vector<Tensor> max_pool2d_grad(const VjpArgs& args) {
  return {ops::call("max_pool2d_grad_grad", {g(args), args.inputs[1]}, args.attrs)[0], {}};
}

std::vector<Tensor> max_pool2d_grad_grad(const VjpArgs& args) {
  return {ops::call("max_pool2d_grad", {g(args), args.inputs[1]}, args.attrs)[0], {}};
}

std::vector<Tensor> avg_pool2d(const VjpArgs& args) {
  Attrs attrs = args.attrs;
  attrs.emplace_back("input_size", x(args).shape());
  return ops::call("avg_pool2d_grad", {g(args)}, attrs);
}

std::vector<Tensor> avg_pool2d_grad(const VjpArgs& args) {
  Attrs attrs = args.attrs;
  attrs.erase(std::remove_if(attrs.begin(), attrs.end(),
                             [](const auto& attr) { return attr.first == "input_size"; }),
              attrs.end());
  return ops::call("avg_pool2d", {g(args)}, attrs);
}

}  // namespace

std::vector<Primitive> pool_primitives() {
  return {
      {"avg_pool2d", avg_pool2d, jvp_rules::multilinear, vmap_rules::samples},
      {"avg_pool2d_grad", avg_pool2d_grad, jvp_rules::multilinear, vmap_rules::samples},
      {"max_pool2d", max_pool2d, nullptr, vmap_rules::samples},
      {"max_pool2d_grad", max_pool2d_grad, nullptr, vmap_rules::samples},
      {"max_pool2d_grad_grad", max_pool2d_grad_grad, nullptr, vmap_rules::samples},
  };
}

}  // namespace ballast
