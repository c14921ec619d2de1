// The gradients of index ops: each is linear in its tensor, and its transpose is an op of the
// family.
#include "frontend/ops/ops.h"
#include "frontend/transforms/jvp_rules.h"
#include "frontend/transforms/vjp_rules.h"
#include "frontend/transforms/vmap_rules.h"

namespace ballast {

using namespace vjp_rules;

namespace {

Tensor spread(const char* op, const Tensor& indices, const Tensor& values, const Shape& shape,
              int64_t axis) {
  return ops::call(op, {indices, values}, {{"shape", shape}, {"axis", axis}})[0];
}

std::vector<Tensor> gather(const VjpArgs& args) {
  return {
      spread("gather_grad", args.inputs[1], g(args), x(args).shape(), int_attr(args.attrs, "axis")),
      {}};
}

std::vector<Tensor> gather_elements(const VjpArgs& args) {
  return {spread("gather_elements_grad", args.inputs[1], g(args), x(args).shape(),
                 int_attr(args.attrs, "axis")),
          {}};
}

std::vector<Tensor> gather_grad(const VjpArgs& args) {
  return {{}, ops::gather(g(args), args.inputs[0], int_attr(args.attrs, "axis"))};
}

std::vector<Tensor> gather_elements_grad(const VjpArgs& args) {
  return {{}, ops::gather_elements(g(args), args.inputs[0], int_attr(args.attrs, "axis"))};
}

std::vector<Tensor> index_add(const VjpArgs& args) {
  return {g(args), {}, ops::gather(g(args), args.inputs[1], int_attr(args.attrs, "axis"))};
}

std::vector<Tensor> scatter_add(const VjpArgs& args) {
  return {g(args), {}, ops::gather_elements(g(args), args.inputs[1], int_attr(args.attrs, "axis"))};
}

}  // namespace

std::vector<Primitive> index_primitives() {
  return {
      {"gather", gather, jvp_rules::multilinear, vmap_rules::gather},
      {"gather_elements", gather_elements, jvp_rules::multilinear, vmap_rules::along_first},
      {"gather_elements_grad", gather_elements_grad, jvp_rules::multilinear,
       vmap_rules::gather_elements_grad},
      {"gather_grad", gather_grad, jvp_rules::multilinear, vmap_rules::gather_grad},
      {"index_add", index_add, jvp_rules::linear, vmap_rules::index_add},
      {"one_hot", zero, nullptr, vmap_rules::along},
      {"scatter_add", scatter_add, jvp_rules::linear, vmap_rules::along_first},
  };
}

}  // namespace ballast
