// Softmax and the normalisations.
#include "bench/rivals/onednn/onednn.h"

namespace ballast::bench::onednn {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;

int axis_of(const Case& c, size_t rank) {
  const int64_t axis = int_of(c, "axis", -1);
  return static_cast<int>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

std::vector<Variant> softmax(const Case& c, algorithm kind) {
  const Desc desc = plain(c.inputs[0].shape);
  const dnnl::softmax_forward::primitive_desc pd(engine(), prop_kind::forward_inference, kind, desc,
                                                 desc, axis_of(c, c.inputs[0].shape.size()),
                                                 attributes());
  const Memory y = empty(desc);
  return {variant(
      "", {action<dnnl::softmax_forward>(pd, {{DNNL_ARG_SRC, input(c, 0)}, {DNNL_ARG_DST, y}})},
      {y})};
}

// Inputs dy and y.
std::vector<Variant> softmax_grad(const Case& c, algorithm kind) {
  const Desc desc = plain(c.inputs[0].shape);
  const int axis = axis_of(c, c.inputs[0].shape.size());
  const dnnl::softmax_forward::primitive_desc hint(engine(), prop_kind::forward_training, kind,
                                                   desc, desc, axis);
  const dnnl::softmax_backward::primitive_desc pd(engine(), kind, desc, desc, desc, axis, hint,
                                                  attributes());
  const Memory dx = empty(desc);
  return {variant("",
                  {action<dnnl::softmax_backward>(pd, {{DNNL_ARG_DIFF_DST, input(c, 0)},
                                                       {DNNL_ARG_DST, input(c, 1)},
                                                       {DNNL_ARG_DIFF_SRC, dx}})},
                  {dx})};
}

}  // namespace

void add_norm(Makers& makers) {
  for (const bool is_log : {false, true}) {
    const algorithm kind = is_log ? algorithm::softmax_log : algorithm::softmax_accurate;
    const std::string name = is_log ? "log_softmax" : "softmax";
    makers[name] = [kind](const Case& c) { return softmax(c, kind); };
    makers[name + "_grad"] = [kind](const Case& c) { return softmax_grad(c, kind); };
  }
}

}  // namespace ballast::bench::onednn
