// What the gradients of all families (ops/<family>_vjp.cpp) are written with. What a rule returns
// and may assume is said at VjpArgs.
#pragma once

#include "frontend/program/primitive.h"

namespace ballast {

namespace vjp_rules {

inline const Tensor& g(const VjpArgs& args) { return args.cotangents[0]; }
inline const Tensor& y(const VjpArgs& args) { return args.outputs[0]; }
inline const Tensor& x(const VjpArgs& args) { return args.inputs[0]; }

std::vector<Tensor> zero(const VjpArgs& args);  // constant almost everywhere

// Sums `gradient` over what broadcasting a tensor of `shape` had repeated.
Tensor unbroadcast(const Tensor& gradient, const Shape& shape);

// Zero where an output's cotangent is absent.
Tensor or_zero(const Tensor& cotangent, const Tensor& like);

}  // namespace vjp_rules

// The rows of each family: every op with its gradient.
std::vector<Primitive> control_flow_primitives();
std::vector<Primitive> pointwise_primitives();
std::vector<Primitive> shape_primitives();
std::vector<Primitive> index_primitives();
std::vector<Primitive> reduce_primitives();
std::vector<Primitive> matmul_primitives();
std::vector<Primitive> conv_primitives();
std::vector<Primitive> pool_primitives();
std::vector<Primitive> norm_primitives();
std::vector<Primitive> softmax_primitives();
std::vector<Primitive> attention_primitives();
std::vector<Primitive> random_primitives();
std::vector<Primitive> optimizer_primitives();
std::vector<Primitive> custom_primitives();  // custom.cpp

}  // namespace ballast
