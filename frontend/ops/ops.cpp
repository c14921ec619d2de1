#include "frontend/ops/ops.h"

#include "frontend/program/trace.h"

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

std::vector<Tensor> call(const std::string& name, const std::vector<Tensor>& inputs,
                         const Attrs& attrs, Where where) {
  return apply_primitive(name, inputs, attrs, where);
}

}  // namespace ops

}  // namespace ballast
