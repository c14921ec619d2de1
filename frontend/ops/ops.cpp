#include "frontend/ops/ops.h"

#include "frontend/ops/call.h"

#include <algorithm>
#include <unordered_map>

namespace ballast {

Tensor depend_on(const Operand& x, const std::vector<Tensor>& deps) {
  std::vector<Tensor> inputs{x.tensor()};
  inputs.insert(inputs.end(), deps.begin(), deps.end());
  return apply_primitive("depend", inputs, {}, x.where())[0];
}

Tensor stop_gradient(const Operand& x) {
  return apply_primitive("stop_gradient", {x.tensor()}, {}, x.where())[0];
}

namespace ops {

namespace {

struct Completion {
  Attrs defaults;
  bool counts_from_end = false;  // negative axes are axes of the first input
};
using Completions = std::unordered_map<std::string, Completion>;

// docs/ops.md's defaults of the attributes that the rules of transforms read.
const Completions& completions() {
  static const auto* rows = [] {
    auto* all = new Completions();
    const auto add = [all](const Completion& row, std::initializer_list<const char*> names) {
      for (const char* name : names) all->emplace(name, row);
    };
    add({{{"axes", Axes{}}, {"keep_dims", int64_t{0}}}, true},
        {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_any",
         "reduce_all"});
    add({{{"axis", int64_t{-1}}}, true},
        {"argmax", "argmin", "softmax", "log_softmax", "softmax_grad", "log_softmax_grad"});
    add({{{"exclusive", int64_t{0}}, {"reverse", int64_t{0}}}, true}, {"cumsum"});
    add({{{"begin_norm_axis", int64_t{-1}}}, true},
        {"layer_norm", "layer_norm_grad", "rms_norm", "rms_norm_grad"});
    add({{{"axis", int64_t{0}}}},
        {"gather", "gather_elements", "gather_grad", "gather_elements_grad", "index_add",
         "scatter_add", "concat", "split"});
    add({{{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{0}}}}, {"matmul"});
    add({{{"use_nesterov", int64_t{0}}}}, {"apply_momentum"});
    return all;
  }();
  return *rows;
}

void count_from_start(AttrValue& value, int64_t rank) {
  if (auto* axis = std::get_if<int64_t>(&value)) {
    *axis = from_start(*axis, rank);
  } else if (auto* axes = std::get_if<std::vector<int64_t>>(&value)) {
    for (int64_t& each : *axes) each = from_start(each, rank);
  }
}

// What rules rely on: no default is left out, axes count from the front.
Attrs completed(const std::string& name, const std::vector<Tensor>& inputs, Attrs attrs) {
  const auto row = completions().find(name);
  if (row == completions().end()) return attrs;
  for (const auto& attr : row->second.defaults) {
    const bool is_given = std::any_of(attrs.begin(), attrs.end(),
                                      [&](const auto& given) { return given.first == attr.first; });
    if (!is_given) attrs.push_back(attr);
  }
  if (!row->second.counts_from_end || inputs.empty() || !inputs[0].defined()) return attrs;
  for (auto& [key, value] : attrs) {
    if (key == "axis" || key == "axes" || key == "begin_norm_axis") {
      count_from_start(value, inputs[0].rank());
    }
  }
  return attrs;
}

}  // namespace

std::vector<Tensor> call(const std::string& name, const std::vector<Tensor>& inputs,
                         const Attrs& attrs, Where where) {
  return apply_primitive(name, inputs, completed(name, inputs, attrs), where);
}

}  // namespace ops

}  // namespace ballast
