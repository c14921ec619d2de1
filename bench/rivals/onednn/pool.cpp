#include "bench/rivals/onednn/onednn.h"

namespace ballast::bench::onednn {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;

struct Pooling {
  algorithm kind = algorithm::pooling_max;
  Dims x, y, kernel, strides, dilation, before, after;
};

Pooling pooling_of(const Case& c, const Dims& x) {
  Pooling p;
  if (c.op.rfind("avg", 0) == 0) {
    p.kind = int_of(c, "count_include_pad", 1) ? algorithm::pooling_avg_include_padding
                                               : algorithm::pooling_avg_exclude_padding;
  }
  const auto padding = ints_of(c, "padding", {0, 0, 0, 0});
  p.x = x;
  p.kernel = ints_of(c, "kernel_size");
  p.strides = ints_of(c, "stride", {1, 1});
  p.dilation = ints_of(c, "dilation", {1, 1});
  p.before = {padding[0], padding[2]};
  p.after = {padding[1], padding[3]};
  p.y = {x[0], x[1]};
  for (size_t i = 0; i < 2; ++i) {
    const auto extent = p.dilation[i] * (p.kernel[i] - 1) + 1;
    p.y.push_back((x[2 + i] + p.before[i] + p.after[i] - extent) / p.strides[i] + 1);
    --p.dilation[i];
  }
  return p;
}

dnnl::pooling_forward::primitive_desc forward_desc(const Pooling& p, prop_kind kind) {
  return dnnl::pooling_forward::primitive_desc(engine(), kind, p.kind, plain(p.x), plain(p.y),
                                               p.strides, p.kernel, p.dilation, p.before, p.after,
                                               attributes());
}

std::vector<Variant> forward(const Case& c) {
  const Pooling p = pooling_of(c, c.inputs[0].shape);
  const auto desc = forward_desc(p, prop_kind::forward_inference);
  const Memory y = empty(desc.dst_desc());
  return {variant(
      "", {action<dnnl::pooling_forward>(desc, {{DNNL_ARG_SRC, input(c, 0)}, {DNNL_ARG_DST, y}})},
      {y})};
}

// oneDNN's forward pass leaves the places of the maxima for the backward one; ours finds them anew.
std::vector<Variant> backward(const Case& c) {
  const bool is_max = c.op == "max_pool2d_grad";
  const Pooling p = pooling_of(c, is_max ? c.inputs[1].shape : ints_of(c, "input_size"));
  const auto forward = forward_desc(p, prop_kind::forward_training);
  const dnnl::pooling_backward::primitive_desc desc(engine(), p.kind, plain(p.x), plain(p.y),
                                                    p.strides, p.kernel, p.dilation, p.before,
                                                    p.after, forward, attributes());
  const Memory dx = empty(desc.diff_src_desc());
  std::unordered_map<int, Memory> arguments = {{DNNL_ARG_DIFF_DST, input(c, 0)},
                                               {DNNL_ARG_DIFF_SRC, dx}};
  if (is_max) {
    const Memory places = empty(forward.workspace_desc());
    const Action first =
        action<dnnl::pooling_forward>(forward, {{DNNL_ARG_SRC, input(c, 1)},
                                                {DNNL_ARG_DST, empty(forward.dst_desc())},
                                                {DNNL_ARG_WORKSPACE, places}});
    first.primitive.execute(stream(), first.arguments);
    stream().wait();
    arguments[DNNL_ARG_WORKSPACE] = places;
  }
  return {variant("", {action<dnnl::pooling_backward>(desc, arguments)}, {dx})};
}

}  // namespace

void add_pool(Makers& makers) {
  makers["max_pool2d"] = makers["avg_pool2d"] = forward;
  makers["max_pool2d_grad"] = makers["avg_pool2d_grad"] = backward;
}

}  // namespace ballast::bench::onednn
