// Random numbers: pure functions of a state tensor, as kernels/random/random.h defines them.
#include "graph/op.h"

#include <cmath>
#include <limits>

namespace ballast::graph {

using device::Code;
using device::fail;

namespace {

using kernels::DeviceClass;

double float_attr(const Attrs& attrs, const char* name) { return std::get<double>(attrs.at(name)); }

float f32_attr(const Attrs& attrs, const char* name) {
  return static_cast<float>(float_attr(attrs, name));
}

int64_t stream_of(const OpCall& call) { return int_attr(call.attrs, "stream"); }

const AttrSpec kShape{"shape", std::vector<int64_t>{}, /*is_required=*/true};
const AttrSpec kStream{"stream", int64_t{0}};

void check_key(const OpCall& call, size_t input) {
  if (call.inputs[input] != TensorType{DType::kI64, {2}}) {
    fail(Code::kInvalidArgument, "the key (input {}) needs i64[2]: seed, offset", input);
  }
}

void check_finite(const OpCall& call, const char* name) {
  if (!std::isfinite(f32_attr(call.attrs, name))) {
    fail(Code::kInvalidArgument, "attribute {} is {}, expected a finite f32", name,
         float_attr(call.attrs, name));
  }
}

void check_probability(const OpCall& call, const char* name, bool allows_zero) {
  const double p = float_attr(call.attrs, name);
  if (!(p <= 1) || !(allows_zero ? p >= 0 : p > 0)) {
    fail(Code::kInvalidArgument, "attribute {} is {}, expected it in {}0, 1]", name, p,
         allows_zero ? "[" : "(");
  }
}

// An op that draws a tensor of attribute `shape` from the key.
OpDef draw_op(const std::string& name, DType dtype, std::vector<AttrSpec> attrs,
              std::function<void(const OpCall&)> check,
              std::function<Plan(DeviceClass, const OpCall&, int64_t n)> plan) {
  OpDef op;
  op.name = name;
  op.attrs = std::move(attrs);
  op.attrs.insert(op.attrs.begin(), {kShape, kStream});
  op.infer = [=](const OpCall& call) -> std::vector<TensorType> {
    check_key(call, 0);
    check(call);
    return {{dtype, ints_attr(call.attrs, "shape")}};
  };
  op.plan = [=](DeviceClass device_class, const OpCall& call,
                const std::vector<TensorType>& outputs) {
    return plan(device_class, call, outputs[0].elements());
  };
  return op;
}

OpDef bits_op() {
  return draw_op(
      "random_bits", DType::kI32, {}, [](const OpCall&) {},
      [](DeviceClass c, const OpCall& call, int64_t n) {
        return kernels::plan_random_bits(c, n, stream_of(call));
      });
}

OpDef uniform_op() {
  const auto check = [](const OpCall& call) {
    const float low = f32_attr(call.attrs, "low"), high = f32_attr(call.attrs, "high");
    if (!(low < high) || !std::isfinite(high - low)) {
      fail(Code::kInvalidArgument, "low is {} and high {}, expected low < high and a finite range",
           low, high);
    }
  };
  return draw_op("random_uniform", DType::kF32, {{"low", 0.0}, {"high", 1.0}}, check,
                 [](DeviceClass c, const OpCall& call, int64_t n) {
                   return kernels::plan_random_uniform(c, n, stream_of(call),
                                                       f32_attr(call.attrs, "low"),
                                                       f32_attr(call.attrs, "high"));
                 });
}

using PlanNormal = Plan (*)(DeviceClass, int64_t n, int64_t stream, float mean, float stddev);

OpDef normal_op(const std::string& name, PlanNormal plan) {
  const auto check = [](const OpCall& call) {
    check_finite(call, "mean");
    check_finite(call, "stddev");
    if (f32_attr(call.attrs, "stddev") < 0) {
      fail(Code::kInvalidArgument, "attribute stddev is {}, expected it not negative",
           float_attr(call.attrs, "stddev"));
    }
  };
  return draw_op(name, DType::kF32, {{"mean", 0.0}, {"stddev", 1.0}}, check,
                 [plan](DeviceClass c, const OpCall& call, int64_t n) {
                   return plan(c, n, stream_of(call), f32_attr(call.attrs, "mean"),
                               f32_attr(call.attrs, "stddev"));
                 });
}

OpDef integer_op() {
  using Limits = std::numeric_limits<int32_t>;
  const auto check = [](const OpCall& call) {
    const int64_t low = int_attr(call.attrs, "low"), high = int_attr(call.attrs, "high");
    if (low >= high || low < Limits::min() || high > Limits::max()) {
      fail(Code::kInvalidArgument, "low is {} and high {}, expected i32 values with low < high",
           low, high);
    }
  };
  return draw_op("randint", DType::kI32, {{"low", int64_t{0}, true}, {"high", int64_t{0}, true}},
                 check, [](DeviceClass c, const OpCall& call, int64_t n) {
                   return kernels::plan_random_integers(
                       c, n, stream_of(call), static_cast<int32_t>(int_attr(call.attrs, "low")),
                       static_cast<int32_t>(int_attr(call.attrs, "high")));
                 });
}

// p is an attribute (with shape), or a second input.
OpDef bernoulli_op() {
  OpDef op;
  op.name = "bernoulli";
  op.max_inputs = 2;
  op.attrs = {{"shape", std::vector<int64_t>{}}, kStream, {"p", 0.5}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_key(call, 0);
    check_probability(call, "p", /*allows_zero=*/true);
    if (call.inputs.size() == 1) return {{DType::kBool, ints_attr(call.attrs, "shape")}};
    if (call.inputs[1].dtype != DType::kF32) {
      fail(Code::kInvalidArgument, "p (input 1) needs f32");
    }
    return {{DType::kBool, call.inputs[1].shape}};
  };
  op.plan = [](DeviceClass device_class, const OpCall& call,
               const std::vector<TensorType>& outputs) {
    const int64_t n = outputs[0].elements();
    return call.inputs.size() == 2
               ? kernels::plan_bernoulli_tensor(device_class, n, stream_of(call))
               : kernels::plan_bernoulli(device_class, n, stream_of(call),
                                         float_attr(call.attrs, "p"));
  };
  return op;
}

// MindSpore's Dropout, without its mask: bernoulli{p = keep_prob} of the same key is that.
OpDef dropout_op() {
  OpDef op;
  op.name = "dropout";
  op.min_inputs = op.max_inputs = 2;
  op.attrs = {{"keep_prob", 0.5}, kStream};
  op.in_place = {{0, 0}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    if (call.inputs[0].dtype != DType::kF32) {
      fail(Code::kUnimplemented, "has no kernel for {}", name_of(call.inputs[0].dtype));
    }
    check_key(call, 1);
    check_probability(call, "keep_prob", /*allows_zero=*/false);
    return {call.inputs[0]};
  };
  op.plan = [](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    return kernels::plan_dropout(device_class, call.inputs[0].elements(), stream_of(call),
                                 float_attr(call.attrs, "keep_prob"));
  };
  return op;
}

OpDef permutation_op() {
  OpDef op;
  op.name = "random_permutation";
  op.attrs = {{"n", int64_t{0}, true}, kStream};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_key(call, 0);
    const int64_t n = int_attr(call.attrs, "n");
    if (n < 0 || n > std::numeric_limits<int32_t>::max()) {
      fail(Code::kInvalidArgument, "n is {}, expected it in [0, 2^31)", n);
    }
    return {{DType::kI32, {n}}};
  };
  op.plan = [](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    return kernels::plan_random_permutation(device_class, int_attr(call.attrs, "n"),
                                            stream_of(call));
  };
  return op;
}

OpDef advance_op() {
  OpDef op;
  op.name = "random_advance";
  op.attrs = {{"blocks", int64_t{0}, true}};
  op.in_place = {{0, 0}};
  op.infer = [](const OpCall& call) -> std::vector<TensorType> {
    check_key(call, 0);
    return {call.inputs[0]};
  };
  op.plan = [](DeviceClass device_class, const OpCall& call, const std::vector<TensorType>&) {
    return kernels::plan_random_advance(device_class, int_attr(call.attrs, "blocks"));
  };
  return op;
}

}  // namespace

std::vector<OpDef> random_ops() {
  return {bits_op(),
          uniform_op(),
          normal_op("random_normal", kernels::plan_random_normal),
          normal_op("truncated_normal", kernels::plan_truncated_normal),
          integer_op(),
          bernoulli_op(),
          dropout_op(),
          permutation_op(),
          advance_op()};
}

}  // namespace ballast::graph
