// The gradients of all primitives: what they return and may assume is said at VjpArgs.
#pragma once

#include "frontend/primitive.h"

namespace ballast::vjp_rules {

std::vector<Tensor> zero(const VjpArgs& args);  // constant almost everywhere

// pointwise (vjp_rules.cpp)
std::vector<Tensor> identity(const VjpArgs& args);
std::vector<Tensor> neg(const VjpArgs& args);
std::vector<Tensor> abs(const VjpArgs& args);
std::vector<Tensor> exp(const VjpArgs& args);
std::vector<Tensor> log(const VjpArgs& args);
std::vector<Tensor> sqrt(const VjpArgs& args);
std::vector<Tensor> rsqrt(const VjpArgs& args);
std::vector<Tensor> reciprocal(const VjpArgs& args);
std::vector<Tensor> tanh(const VjpArgs& args);
std::vector<Tensor> sigmoid(const VjpArgs& args);
std::vector<Tensor> relu(const VjpArgs& args);
std::vector<Tensor> square(const VjpArgs& args);
std::vector<Tensor> add(const VjpArgs& args);
std::vector<Tensor> sub(const VjpArgs& args);
std::vector<Tensor> mul(const VjpArgs& args);
std::vector<Tensor> div(const VjpArgs& args);
std::vector<Tensor> maximum(const VjpArgs& args);
std::vector<Tensor> minimum(const VjpArgs& args);
std::vector<Tensor> pow(const VjpArgs& args);
std::vector<Tensor> relu_grad(const VjpArgs& args);
std::vector<Tensor> select(const VjpArgs& args);
std::vector<Tensor> cast(const VjpArgs& args);

// everything else (vjp_rules_tensor.cpp)
std::vector<Tensor> depend(const VjpArgs& args);
std::vector<Tensor> broadcast_to(const VjpArgs& args);
std::vector<Tensor> reshape(const VjpArgs& args);
std::vector<Tensor> transpose(const VjpArgs& args);
std::vector<Tensor> reduce_sum(const VjpArgs& args);
std::vector<Tensor> reduce_mean(const VjpArgs& args);
std::vector<Tensor> reduce_extremum(const VjpArgs& args);
std::vector<Tensor> reduce_prod(const VjpArgs& args);
std::vector<Tensor> matmul(const VjpArgs& args);
std::vector<Tensor> softmax_cross_entropy(const VjpArgs& args);
std::vector<Tensor> softmax_cross_entropy_grad(const VjpArgs& args);
std::vector<Tensor> apply_gradient_descent(const VjpArgs& args);
std::vector<Tensor> apply_momentum(const VjpArgs& args);

// Sums `gradient` over what broadcasting a tensor of `shape` had repeated.
Tensor unbroadcast(const Tensor& gradient, const Shape& shape);

}  // namespace ballast::vjp_rules
