#include "bench/rivals/onednn/onednn.h"

namespace ballast::bench::onednn {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;

struct Convolution {
  Dims x, w, y;  // w with a leading extent where there are groups
  Dims strides, dilation, before, after;
};

Dims grouped(const Dims& w, int64_t groups) {
  if (groups == 1) return w;
  return {groups, w[0] / groups, w[1], w[2], w[3]};
}

Convolution convolution_of(const Case& c, const Dims& x, const Dims& w) {
  Convolution v;
  const auto padding = ints_of(c, "padding", {0, 0, 0, 0});
  v.x = x;
  v.w = grouped(w, int_of(c, "group", 1));
  v.strides = ints_of(c, "stride", {1, 1});
  v.dilation = ints_of(c, "dilation", {1, 1});
  v.before = {padding[0], padding[2]};
  v.after = {padding[1], padding[3]};
  v.y = {x[0], w[0]};
  for (size_t i = 0; i < 2; ++i) {
    const auto extent = v.dilation[i] * (w[2 + i] - 1) + 1;
    v.y.push_back((x[2 + i] + v.before[i] + v.after[i] - extent) / v.strides[i] + 1);
    --v.dilation[i];  // oneDNN counts the holes
  }
  return v;
}

Desc any(const Dims& dims) {
  return Desc(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
}

// A primitive between plain tensors and the layouts it chose: once with the reorders that a caller
// with plain tensors pays, once without.
class Layouts {
 public:
  Memory in(const Memory& user, const Desc& chosen) {
    if (user.get_desc() == chosen) return user;
    const Memory inner = empty(chosen);
    before_.push_back(reorder(user, inner));
    // The variant without reorders finds its operands here, too.
    before_.back().primitive.execute(stream(), before_.back().arguments);
    stream().wait();
    return inner;
  }
  Memory out(const Dims& dims, const Desc& chosen) {
    inner_ = empty(chosen);
    user_ = inner_;
    if (chosen != plain(dims)) {
      user_ = empty(plain(dims));
      after_.push_back(reorder(inner_, user_));
    }
    return inner_;
  }
  std::vector<Variant> variants(const Action& action) const {
    if (before_.empty() && after_.empty()) return {variant("", {action}, {user_})};
    std::vector<Action> all = before_;
    all.push_back(action);
    all.insert(all.end(), after_.begin(), after_.end());
    return {variant("", all, {user_}), variant("own layout", {action}, {inner_})};
  }

 private:
  std::vector<Action> before_, after_;
  Memory inner_, user_;
};

dnnl::convolution_forward::primitive_desc forward_desc(const Convolution& v, prop_kind kind,
                                                       const Desc& bias,
                                                       const dnnl::primitive_attr& attr) {
  const algorithm best = algorithm::convolution_direct;
  return bias ? dnnl::convolution_forward::primitive_desc(engine(), kind, best, any(v.x), any(v.w),
                                                          bias, any(v.y), v.strides, v.dilation,
                                                          v.before, v.after, attr)
              : dnnl::convolution_forward::primitive_desc(engine(), kind, best, any(v.x), any(v.w),
                                                          any(v.y), v.strides, v.dilation, v.before,
                                                          v.after, attr);
}

std::vector<Variant> forward(const Case& c) {
  const Convolution v = convolution_of(c, c.inputs[0].shape, c.inputs[1].shape);
  const Desc per_channel = plain({1, v.y[1], 1, 1});
  std::unordered_map<int, Memory> arguments;
  dnnl::post_ops post_ops;
  size_t next = 2;
  const auto append = [&](algorithm kind, const Desc& desc) {
    const int at = post_ops.len();
    post_ops.append_binary(kind, desc);
    arguments[DNNL_ARG_ATTR_MULTIPLE_POST_OP(at) | DNNL_ARG_SRC_1] = input(c, next++, desc);
  };
  Desc bias;
  if (int_of(c, "has_bias")) {
    bias = plain({v.y[1]});
    arguments[DNNL_ARG_BIAS] = input(c, next++, bias);
  }
  if (int_of(c, "has_scale")) {
    append(algorithm::binary_mul, per_channel);
    append(algorithm::binary_add, per_channel);
  }
  if (int_of(c, "has_residual")) append(algorithm::binary_add, plain(v.y));
  if (string_of(c, "activation", "none") == "relu") {
    post_ops.append_eltwise(algorithm::eltwise_relu, 0.0f, 0.0f);
  }
  const auto desc = forward_desc(v, prop_kind::forward_training, bias, attributes(post_ops));
  Layouts layouts;
  arguments[DNNL_ARG_SRC] = layouts.in(input(c, 0), desc.src_desc());
  arguments[DNNL_ARG_WEIGHTS] = layouts.in(input(c, 1, plain(v.w)), desc.weights_desc());
  arguments[DNNL_ARG_DST] = layouts.out(v.y, desc.dst_desc());
  return layouts.variants(action<dnnl::convolution_forward>(desc, arguments));
}

std::vector<Variant> input_grad(const Case& c) {
  const Convolution v = convolution_of(c, ints_of(c, "input_size"), c.inputs[1].shape);
  const auto hint = forward_desc(v, prop_kind::forward_training, Desc(), attributes());
  const dnnl::convolution_backward_data::primitive_desc desc(
      engine(), algorithm::convolution_direct, any(v.x), any(v.w), any(v.y), v.strides, v.dilation,
      v.before, v.after, hint, attributes());
  Layouts layouts;
  return layouts.variants(action<dnnl::convolution_backward_data>(
      desc, {{DNNL_ARG_DIFF_DST, layouts.in(input(c, 0), desc.diff_dst_desc())},
             {DNNL_ARG_WEIGHTS, layouts.in(input(c, 1, plain(v.w)), desc.weights_desc())},
             {DNNL_ARG_DIFF_SRC, layouts.out(v.x, desc.diff_src_desc())}}));
}

std::vector<Variant> weight_grad(const Case& c) {
  const Convolution v = convolution_of(c, c.inputs[1].shape, ints_of(c, "weight_size"));
  const auto hint = forward_desc(v, prop_kind::forward_training, Desc(), attributes());
  const dnnl::convolution_backward_weights::primitive_desc desc(
      engine(), algorithm::convolution_direct, any(v.x), any(v.w), any(v.y), v.strides, v.dilation,
      v.before, v.after, hint, attributes());
  Layouts layouts;
  return layouts.variants(action<dnnl::convolution_backward_weights>(
      desc, {{DNNL_ARG_DIFF_DST, layouts.in(input(c, 0), desc.diff_dst_desc())},
             {DNNL_ARG_SRC, layouts.in(input(c, 1), desc.src_desc())},
             {DNNL_ARG_DIFF_WEIGHTS, layouts.out(v.w, desc.diff_weights_desc())}}));
}

}  // namespace

void add_conv(Makers& makers) {
  makers["conv2d"] = forward;
  makers["conv2d_input_grad"] = input_grad;
  makers["conv2d_weight_grad"] = weight_grad;
}

}  // namespace ballast::bench::onednn
