// The gradients of shape ops. Names: g is the output's cotangent, y the output, x the first input.
#include "frontend/ops/call.h"
#include "frontend/ops/ops.h"
#include "frontend/transforms/jvp_rules.h"
#include "frontend/transforms/vjp_rules.h"
#include "frontend/transforms/vmap_rules.h"

namespace ballast {

using namespace vjp_rules;

namespace {

std::vector<Tensor> broadcast_to(const VjpArgs& args) {
  return {unbroadcast(g(args), x(args).shape())};
}

std::vector<Tensor> reshape(const VjpArgs& args) {
  return {ops::reshape(g(args), x(args).shape())};
}

std::vector<Tensor> transpose(const VjpArgs& args) {
  return {ops::transpose(g(args), ops::inverse_of(ints_attr(args.attrs, "perm")))};
}

std::vector<Tensor> slice(const VjpArgs& args) {
  return {ops::call("slice_grad", {g(args)},
                    {{"shape", x(args).shape()},
                     {"begin", ints_attr(args.attrs, "begin")},
                     {"strides", ints_attr(args.attrs, "strides")}})[0]};
}

std::vector<Tensor> slice_grad(const VjpArgs& args) {
  return {ops::call("slice", {g(args)},
                    {{"begin", ints_attr(args.attrs, "begin")},
                     {"size", x(args).shape()},
                     {"strides", ints_attr(args.attrs, "strides")}})[0]};
}

std::vector<Tensor> pad(const VjpArgs& args) {
  const std::vector<int64_t>& paddings = ints_attr(args.attrs, "paddings");
  std::vector<int64_t> begin;
  for (size_t i = 0; i < paddings.size(); i += 2) begin.push_back(paddings[i]);
  return {ops::slice(g(args), begin, x(args).shape())};
}

std::vector<Tensor> concat(const VjpArgs& args) {
  const int64_t axis = int_attr(args.attrs, "axis");
  std::vector<int64_t> sizes;
  for (const Tensor& part : args.inputs) sizes.push_back(part.shape()[static_cast<size_t>(axis)]);
  return ops::split(g(args), sizes, axis);
}

std::vector<Tensor> split(const VjpArgs& args) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < args.outputs.size(); ++i) {
    parts.push_back(or_zero(args.cotangents[i], args.outputs[i]));
  }
  return {ops::concat(parts, int_attr(args.attrs, "axis"))};
}

std::vector<Tensor> flip(const VjpArgs& args) { return ops::call("flip", {g(args)}, args.attrs); }

}  // namespace

std::vector<Primitive> shape_primitives() {
  return {
      {"arange", zero},
      {"broadcast_to", broadcast_to, jvp_rules::multilinear, vmap_rules::broadcast_to},
      {"concat", concat, jvp_rules::linear, vmap_rules::along_first},
      {"fill", zero},
      {"flip", flip, jvp_rules::multilinear, vmap_rules::flip},
      {"pad", pad, nullptr, vmap_rules::pad},
      {"slice", slice, jvp_rules::multilinear, vmap_rules::slice},
      {"slice_grad", slice_grad, jvp_rules::multilinear, vmap_rules::slice_grad},
      {"split", split, jvp_rules::multilinear, vmap_rules::along_first},
      {"reshape", reshape, jvp_rules::multilinear, vmap_rules::reshape, /*is_identity=*/false,
       /*is_view=*/true},
      {"transpose", transpose, jvp_rules::multilinear, vmap_rules::transpose},
  };
}

}  // namespace ballast
