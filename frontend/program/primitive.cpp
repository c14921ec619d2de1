#include "frontend/program/primitive.h"

#include "frontend/ops/print.h"
#include "frontend/program/token.h"
#include "frontend/transforms/vjp_rules.h"

#include <algorithm>
#include <unordered_map>

namespace ballast {

namespace {

std::vector<Tensor> depend(const VjpArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  gradients[0] = vjp_rules::g(args);
  return gradients;
}

std::vector<Primitive> identity_primitives() {
  return {{"depend", depend, nullptr, nullptr, /*is_identity=*/true},
          {"stop_gradient", vjp_rules::zero, nullptr, nullptr, /*is_identity=*/true}};
}

const std::unordered_map<std::string, Primitive>& table() {
  static const auto* rows = [] {
    auto* all = new std::unordered_map<std::string, Primitive>();
    for (auto family :
         {identity_primitives, control_flow_primitives, pointwise_primitives, shape_primitives,
          index_primitives, reduce_primitives, matmul_primitives, conv_primitives, pool_primitives,
          norm_primitives, softmax_primitives, attention_primitives, random_primitives,
          optimizer_primitives, custom_primitives, print_primitives}) {
      for (Primitive& primitive : family()) all->emplace(primitive.name, primitive);
    }
    return all;
  }();
  return *rows;
}

}  // namespace

void check_defined(const std::string& primitive, size_t i, const Tensor& input) {
  if (!input.defined()) {
    fail(BALLAST_INVALID_ARGUMENT, "[{}] input {} is an undefined tensor", primitive, i);
  }
}

std::vector<TensorType> infer(const std::string& primitive, const std::vector<TensorType>& inputs,
                              const Attrs& attrs, const Bodies& bodies) {
  const Primitive* row = find_primitive(primitive);
  if (row && row->infer) return row->infer(inputs, attrs, bodies);
  if (row && row->is_identity) return {inputs.at(0)};
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_token(inputs[i])) continue;
    fail(BALLAST_INVALID_ARGUMENT, "[{}] input {} is a token, which only orders effects", primitive,
         i);
  }
  if (!bodies.empty()) {
    fail(BALLAST_INVALID_ARGUMENT, "[{}] has no bodies, got {}", primitive, bodies.size());
  }
  return infer(primitive, inputs, attrs);
}

const Primitive* find_primitive(const std::string& name) {
  auto row = table().find(name);
  return row == table().end() ? nullptr : &row->second;
}

std::vector<std::string> primitive_names() {
  std::vector<std::string> names;
  for (const auto& [name, row] : table()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ballast
