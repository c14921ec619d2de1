// The gradients of attention. With s = scale q k' + mask, p = exp(s - lse), out = p v:
//
//   dp = dout v',  ds = p (dp - delta),  dq = scale ds k,  dk = scale ds' q,  dv = p' dout
//
// which attention_grad computes without storing the scores. Its own gradient, and that of a mask of
// floats, is written with ordinary ops that do.
#include "frontend/ops/ops.h"
#include "frontend/transforms/vjp_rules.h"
#include "frontend/transforms/vmap_rules.h"

namespace ballast {

using namespace vjp_rules;

namespace {

Tensor wide(const Tensor& x) { return ops::cast(x, DType::kF32); }

Tensor narrowed(const Tensor& x, const Tensor& like) {
  return x.dtype() == like.dtype() ? x : ops::cast(x, like.dtype());
}

// [..., n] as [..., n, 1].
Tensor column(const Tensor& x) {
  Shape shape = x.shape();
  shape.push_back(1);
  return ops::reshape(wide(x), shape);
}

// [..., n, m] summed to [..., n].
Tensor row_sums(const Tensor& x) { return ops::reduce_sum(x, {-1}); }

double attr_scale(const Attrs& attrs) {
  for (const auto& [name, value] : attrs) {
    if (name == "scale") return std::get<double>(value);
  }
  return 0;
}

bool attr_causal(const Attrs& attrs) {
  for (const auto& [name, value] : attrs) {
    if (name == "causal") return std::get<int64_t>(value) != 0;
  }
  return false;
}

// The matrices of the gradient, f32.
struct Matrices {
  Tensor p, dp, difference;  // difference = dp - delta

  Matrices(const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& lse,
           const Tensor& delta, const Tensor& mask, const Attrs& attrs) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    Tensor scores = ops::attention_scores(q, k, mask, attr_causal(attrs), attr_scale(attrs));
    Tensor shift = column(lse);
    // A query that attends to nothing: its scores are -infinity, its p 0.
    p = ops::exp(scores - ops::select(ops::equal(shift, -kInfinity), 0.0f, shift));
    dp = ops::matmul(wide(dout), wide(v), false, true);
    difference = dp - column(delta);
  }
};

bool is_trainable(const Tensor& mask) { return mask.defined() && mask.dtype() != DType::kBool; }

std::vector<Tensor> attention(const VjpArgs& args) {
  const std::vector<Tensor>& in = args.inputs;
  const Tensor mask = in.size() > 3 ? in[3] : Tensor();
  const Tensor &out = args.outputs[0], &lse = args.outputs[1];
  const Tensor dout = or_zero(args.cotangents[0], out);
  Tensor delta = row_sums(wide(dout) * wide(out));
  if (args.cotangents[1].defined()) delta = delta - wide(args.cotangents[1]);
  std::vector<Tensor> gradients = ops::attention_grad(
      dout, in[0], in[1], in[2], lse, delta, mask, attr_causal(args.attrs), attr_scale(args.attrs));
  if (!mask.defined()) return gradients;
  gradients.emplace_back();
  if (is_trainable(mask)) {  // removed as dead code where nobody asks for it
    const Matrices m(dout, in[0], in[1], in[2], lse, delta, mask, args.attrs);
    gradients[3] = narrowed(unbroadcast(m.p * m.difference, mask.shape()), mask);
  }
  return gradients;
}

std::vector<Tensor> attention_grad(const VjpArgs& args) {
  const std::vector<Tensor>& in = args.inputs;
  const Tensor mask = in.size() > 6 ? in[6] : Tensor();
  const Tensor dout = wide(in[0]), q = wide(in[1]), k = wide(in[2]), v = wide(in[3]);
  const Tensor gq = wide(or_zero(args.cotangents[0], in[1]));
  const Tensor gk = wide(or_zero(args.cotangents[1], in[2]));
  const Tensor gv = wide(or_zero(args.cotangents[2], in[3]));
  const double scale = ops::attention_scale(attr_scale(args.attrs), in[1]);
  const Matrices m(dout, q, k, v, in[4], in[5], mask, args.attrs);
  const Tensor ds = m.p * m.difference * scale;
  // Cotangents, g and a name, from the last product back to the inputs.
  const Tensor gds = (ops::matmul(gq, k, false, true) + ops::matmul(q, gk, false, true)) * scale;
  const Tensor gdp = gds * m.p;
  const Tensor gs = (gds * m.difference + ops::matmul(dout, gv, false, true)) * m.p;
  std::vector<Tensor> gradients = {
      ops::matmul(gdp, v) + ops::matmul(m.p, gv),
      ops::matmul(gs, k) * scale + ops::matmul(ds, gk),
      ops::matmul(gs, q, true) * scale + ops::matmul(ds, gq, true),
      ops::matmul(gdp, dout, true),
      -row_sums(gs),
      -row_sums(gdp),
  };
  if (mask.defined()) {
    gradients.push_back(is_trainable(mask) ? unbroadcast(gs, mask.shape()) : Tensor());
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined()) gradients[i] = narrowed(gradients[i], in[i]);
  }
  return gradients;
}

}  // namespace

std::vector<Primitive> attention_primitives() {
  return {{"scaled_dot_product_attention", attention, nullptr, vmap_rules::attention},
          {"attention_grad", attention_grad, nullptr, vmap_rules::attention}};
}

}  // namespace ballast
