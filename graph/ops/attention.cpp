// Scaled dot product attention (Vaswani et al. 2017; PyTorch's function of this name) and its
// gradient. The log-sum-exp of each query's scores is the second output: the gradient computes the
// probabilities from it anew instead of keeping them.
#include "graph/op.h"

#include <cmath>

namespace ballast::graph {

using device::Code;
using device::fail;
using kernels::AttentionConfig;

namespace {

struct Operands {
  const TensorType &q, &k, &v;
  const TensorType* mask = nullptr;
};

Operands operands_of(const OpCall& call) {
  const bool is_grad = call.op->name == "attention_grad";
  const size_t first = is_grad ? 1 : 0, mask = is_grad ? 6 : 3;
  const std::vector<TensorType>& in = call.inputs;
  return {in[first], in[first + 1], in[first + 2], in.size() > mask ? &in[mask] : nullptr};
}

// `shape` without its last two dimensions.
Shape leading(const Shape& shape) { return {shape.begin(), shape.end() - 2}; }

Shape with(Shape shape, std::initializer_list<int64_t> last) {
  shape.insert(shape.end(), last);
  return shape;
}

void check_tensors(const Operands& o) {
  for (const TensorType* type : {&o.q, &o.k, &o.v}) {
    if (type->dtype != DType::kF32) {
      fail(Code::kUnimplemented, "has no kernel for {}", name_of(type->dtype));
    }
    if (type->shape.size() < 2) {
      fail(Code::kInvalidArgument, "q, k and v need rank 2 or more, got {}", to_string(*type));
    }
  }
  const Shape lead = leading(o.q.shape);
  const int64_t keys = o.k.shape[o.k.shape.size() - 2];
  const Shape want_k = with(lead, {keys, o.q.shape.back()});
  if (o.k.shape != want_k) {
    fail(Code::kInvalidArgument, "k is {}, expected f32{} beside q {}", to_string(o.k),
         to_string(want_k), to_string(o.q));
  }
  const Shape want_v = with(lead, {keys, o.v.shape.back()});
  if (o.v.shape != want_v) {
    fail(Code::kInvalidArgument, "v is {}, expected f32{} beside k {}", to_string(o.v),
         to_string(want_v), to_string(o.k));
  }
}

// The leading dimensions as batch x heads: the mask is whole or repeats along all of each.
void set_groups(AttentionConfig& config, const Shape& lead, const Shape& mask) {
  struct Run {
    int64_t extent;
    bool is_repeated;
  };
  std::vector<Run> runs;
  for (size_t i = 0; i < lead.size(); ++i) {
    if (lead[i] == 1) continue;
    const bool is_repeated = mask[i] == 1;
    if (!runs.empty() && runs.back().is_repeated == is_repeated) {
      runs.back().extent *= lead[i];
    } else {
      runs.push_back({lead[i], is_repeated});
    }
  }
  if (runs.size() > 2) {
    fail(Code::kUnimplemented,
         "the mask repeats along dimensions that do not lie together; broadcast it to {} first",
         to_string(lead));
  }
  while (runs.size() < 2) runs.insert(runs.begin(), {1, false});
  config.batch = runs[0].extent;
  config.heads = runs[1].extent;
  config.mask_batch = runs[0].is_repeated ? 1 : config.batch;
  config.mask_heads = runs[1].is_repeated ? 1 : config.heads;
}

AttentionConfig config_of(const OpCall& call) {
  const Operands o = operands_of(call);
  check_tensors(o);
  AttentionConfig config;
  config.queries = o.q.shape[o.q.shape.size() - 2];
  config.keys = o.k.shape[o.k.shape.size() - 2];
  config.depth = o.q.shape.back();
  config.value_depth = o.v.shape.back();
  config.causal = int_attr(call.attrs, "causal") != 0;
  const double scale = std::get<double>(call.attrs.at("scale"));
  const double depth = static_cast<double>(std::max<int64_t>(config.depth, 1));
  config.scale = static_cast<float>(scale == 0 ? 1 / std::sqrt(depth) : scale);
  const Shape lead = leading(o.q.shape);
  Shape mask(lead.size() + 1, 1);
  if (o.mask != nullptr) {
    const Shape& given = o.mask->shape;
    const Shape scores = with(lead, {config.queries, config.keys});
    const bool has_type = o.mask->dtype == DType::kBool || o.mask->dtype == DType::kF32;
    bool fits =
        has_type && !given.empty() && given.size() <= scores.size() && given.back() == config.keys;
    for (size_t i = 1; fits && i < given.size(); ++i) {
      const int64_t extent = given[given.size() - 1 - i];
      fits = extent == 1 || extent == scores[scores.size() - 1 - i];
      mask[mask.size() - i] = extent;
    }
    if (!fits) {
      fail(Code::kInvalidArgument,
           "the mask is {}, expected bool or f32 that broadcasts to {} and has all {} keys",
           to_string(*o.mask), to_string(scores), config.keys);
    }
    config.mask =
        o.mask->dtype == DType::kBool ? AttentionConfig::Mask::kKeep : AttentionConfig::Mask::kAdd;
    config.mask_queries = mask.back();
  }
  mask.pop_back();
  set_groups(config, lead, mask);
  return config;
}

OpDef forward_op() {
  OpDef op;
  op.name = "scaled_dot_product_attention";
  op.min_inputs = 3;
  op.max_inputs = 4;
  op.attrs = {{"scale", 0.0}, {"causal", int64_t{0}}};
  op.f32_inputs = {3};
  op.f32_outputs = {1};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    const AttentionConfig config = config_of(call);
    const Shape lead = leading(call.inputs[0].shape);
    return {{DType::kF32, with(lead, {config.queries, config.value_depth})},
            {DType::kF32, with(lead, {config.queries})}};
  };
  op.plan = [](kernels::DeviceClass device_class, const OpCall& call,
               const std::vector<TensorType>&) {
    return kernels::plan_attention(device_class, config_of(call));
  };
  return op;
}

OpDef grad_op() {
  OpDef op;
  op.name = "attention_grad";
  op.min_inputs = 6;
  op.max_inputs = 7;
  op.attrs = {{"scale", 0.0}, {"causal", int64_t{0}}};
  op.f32_inputs = {4, 5, 6};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    const AttentionConfig config = config_of(call);
    const Operands o = operands_of(call);
    const Shape lead = leading(o.q.shape);
    const TensorType out{DType::kF32, with(lead, {config.queries, config.value_depth})};
    const TensorType row{DType::kF32, with(lead, {config.queries})};
    if (call.inputs[0] != out) {
      fail(Code::kInvalidArgument, "dout is {}, expected {}", to_string(call.inputs[0]),
           to_string(out));
    }
    for (size_t i : {4, 5}) {
      if (call.inputs[i] == row) continue;
      fail(Code::kInvalidArgument, "{} is {}, expected {}", i == 4 ? "lse" : "delta",
           to_string(call.inputs[i]), to_string(row));
    }
    return {o.q, o.k, o.v};
  };
  op.plan = [](kernels::DeviceClass device_class, const OpCall& call,
               const std::vector<TensorType>&) {
    return kernels::plan_attention_grad(device_class, config_of(call));
  };
  return op;
}

}  // namespace

std::vector<OpDef> attention_ops() { return {forward_op(), grad_op()}; }

}  // namespace ballast::graph
