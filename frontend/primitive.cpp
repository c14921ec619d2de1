#include "frontend/primitive.h"

#include "frontend/vjp_rules.h"

#include <algorithm>
#include <iterator>

namespace ballast {

namespace {

// Sorted by name.
const Primitive kPrimitives[] = {
    {"abs", vjp_rules::abs},
    {"add", vjp_rules::add},
    {"apply_gradient_descent", vjp_rules::apply_gradient_descent},
    {"apply_momentum", vjp_rules::apply_momentum},
    {"argmax", vjp_rules::zero},
    {"argmin", vjp_rules::zero},
    {"broadcast_to", vjp_rules::broadcast_to},
    {"cast", vjp_rules::cast},
    {"depend", vjp_rules::depend, /*is_identity=*/true},
    {"div", vjp_rules::div},
    {"equal", vjp_rules::zero},
    {"exp", vjp_rules::exp},
    {"floor", vjp_rules::zero},
    {"greater", vjp_rules::zero},
    {"greater_equal", vjp_rules::zero},
    {"identity", vjp_rules::identity},
    {"less", vjp_rules::zero},
    {"less_equal", vjp_rules::zero},
    {"log", vjp_rules::log},
    {"logical_and", vjp_rules::zero},
    {"logical_not", vjp_rules::zero},
    {"logical_or", vjp_rules::zero},
    {"matmul", vjp_rules::matmul},
    {"maximum", vjp_rules::maximum},
    {"minimum", vjp_rules::minimum},
    {"mul", vjp_rules::mul},
    {"neg", vjp_rules::neg},
    {"not_equal", vjp_rules::zero},
    {"pow", vjp_rules::pow},
    {"reciprocal", vjp_rules::reciprocal},
    {"reduce_all", vjp_rules::zero},
    {"reduce_any", vjp_rules::zero},
    {"reduce_max", vjp_rules::reduce_extremum},
    {"reduce_mean", vjp_rules::reduce_mean},
    {"reduce_min", vjp_rules::reduce_extremum},
    {"reduce_prod", vjp_rules::reduce_prod},
    {"reduce_sum", vjp_rules::reduce_sum},
    {"relu", vjp_rules::relu},
    {"relu_grad", vjp_rules::relu_grad},
    {"reshape", vjp_rules::reshape, /*is_identity=*/false, /*is_view=*/true},
    {"rsqrt", vjp_rules::rsqrt},
    {"select", vjp_rules::select},
    {"sigmoid", vjp_rules::sigmoid},
    {"sign", vjp_rules::zero},
    {"softmax_cross_entropy", vjp_rules::softmax_cross_entropy},
    {"softmax_cross_entropy_grad", vjp_rules::softmax_cross_entropy_grad},
    {"sqrt", vjp_rules::sqrt},
    {"square", vjp_rules::square},
    {"stop_gradient", vjp_rules::zero, /*is_identity=*/true},
    {"sub", vjp_rules::sub},
    {"tanh", vjp_rules::tanh},
    {"transpose", vjp_rules::transpose},
};

}  // namespace

const Primitive* find_primitive(const std::string& name) {
  auto row = std::lower_bound(
      std::begin(kPrimitives), std::end(kPrimitives), name,
      [](const Primitive& primitive, const std::string& key) { return primitive.name < key; });
  return row != std::end(kPrimitives) && row->name == name ? row : nullptr;
}

std::vector<std::string> primitive_names() {
  std::vector<std::string> names;
  for (const Primitive& primitive : kPrimitives) names.push_back(primitive.name);
  return names;
}

}  // namespace ballast
