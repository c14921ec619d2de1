#include "graph/op.h"

#include "kernels/plan/widen.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace ballast::graph {

using device::Code;
using device::fail;

namespace {

struct Registry {
  std::vector<OpDef> ops;
  std::map<std::string, const OpDef*> by_name;
  std::vector<const OpDef*> listed;

  Registry() {
    for (auto family : {pointwise_ops, shape_ops, index_ops, reduce_ops, matmul_ops, conv_ops,
                        pool_ops, norm_ops, softmax_ops, attention_ops, random_ops, optimizer_ops,
                        fused_ops, control_flow_ops, print_ops}) {
      for (OpDef& op : family()) ops.push_back(std::move(op));
    }
    for (const OpDef& op : ops) by_name[op.name] = &op;
    for (const auto& [name, op] : by_name) {
      if (!op->is_internal && !op->effect && op->region_count == 0) listed.push_back(op);
    }
  }
};

const Registry& registry() {
  static const Registry instance;
  return instance;
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

[[noreturn]] void fail_unknown(const std::string& name) {
  std::string hint;
  for (const OpDef* op : list_ops()) {
    if (edit_distance(name, op->name) <= 2) hint += (hint.empty() ? "" : ", ") + op->name;
  }
  fail(Code::kNotFound, "[{}] unknown op{}", name,
       hint.empty() ? "; op_name lists the ops" : "; did you mean " + hint + "?");
}

const char* kind_name(const AttrValue& value) {
  static const char* const kNames[] = {"int", "float", "string", "ints"};
  return kNames[value.index()];
}

std::string describe(const std::vector<TensorType>& types) {
  std::string text;
  for (const TensorType& type : types) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}

bool has(const std::vector<size_t>& list, size_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// A call with f32 in place of bf16 or f16.
struct Widened {
  OpCall call;
  DType narrow = DType::kF32;

  std::vector<TensorType> narrowed(std::vector<TensorType> outputs) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].dtype == DType::kF32 && !has(call.op->f32_outputs, i)) {
        outputs[i].dtype = narrow;
      }
    }
    return outputs;
  }
};

Widened widened(const OpCall& call) {
  Widened result{call};
  std::optional<DType> narrow;
  for (size_t pass : {0, 1}) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const DType dtype = call.inputs[i].dtype;
      if (dtype != DType::kF32 && !kernels::is_narrow_float(dtype)) continue;
      const bool may_be_f32 = has(call.op->f32_inputs, i);
      if (may_be_f32 != (pass == 1)) continue;
      if (!narrow) narrow = dtype;
      if (dtype != *narrow && !(may_be_f32 && dtype == DType::kF32)) {
        fail(Code::kInvalidArgument, "input {} is {} beside {}: float inputs need one dtype", i,
             name_of(dtype), name_of(*narrow));
      }
      result.call.inputs[i].dtype = DType::kF32;
    }
  }
  result.narrow = *narrow;
  return result;
}

bool has_narrow_inputs(const OpCall& call) {
  return std::any_of(call.inputs.begin(), call.inputs.end(),
                     [](const TensorType& type) { return kernels::is_narrow_float(type.dtype); });
}

// Whether the op's own rule takes the call; if so, `outputs` is what it gives.
bool is_native(const OpCall& call, std::vector<TensorType>* outputs) {
  if (!has_narrow_inputs(call) || call.op->region_count > 0) {
    *outputs = call.op->infer(call);
    return true;
  }
  try {
    *outputs = call.op->infer(call);
    return true;
  } catch (const device::Error&) {
    return false;
  }
}

}  // namespace

Attrs OpDef::normalise(Attrs given) const {
  Attrs result;
  for (const AttrSpec& spec : attrs) {
    auto found = given.find(spec.name);
    if (found == given.end()) {
      if (spec.is_required) {
        fail(Code::kInvalidArgument, "[{}] attribute {} ({}) is missing", name, spec.name,
             kind_name(spec.example));
      }
      result[spec.name] = spec.example;
      continue;
    }
    if (found->second.index() != spec.example.index()) {
      fail(Code::kInvalidArgument, "[{}] attribute {} is {}, expected {}", name, spec.name,
           kind_name(found->second), kind_name(spec.example));
    }
    result[spec.name] = std::move(found->second);
    given.erase(found);
  }
  if (!given.empty()) {
    fail(Code::kInvalidArgument, "[{}] unknown attribute {}", name, given.begin()->first);
  }
  return result;
}

const OpDef* find_op(const std::string& name) {
  auto found = registry().by_name.find(name);
  return found == registry().by_name.end() ? nullptr : found->second;
}

const std::vector<const OpDef*>& list_ops() { return registry().listed; }

OpCall make_call(const std::string& name, Attrs attrs, std::vector<TensorType> inputs,
                 Regions regions) {
  const OpDef* op = find_op(name);
  if (op == nullptr) fail_unknown(name);
  if (inputs.size() < op->min_inputs || inputs.size() > op->max_inputs) {
    const std::string expected = op->min_inputs == op->max_inputs
                                     ? fmt::format("{}", op->min_inputs)
                                     : fmt::format("{} to {}", op->min_inputs, op->max_inputs);
    fail(Code::kInvalidArgument, "[{}] takes {} inputs, got {} ({})", name, expected, inputs.size(),
         describe(inputs));
  }
  if (regions.size() != op->region_count) {
    fail(Code::kInvalidArgument, "[{}] has {} regions, got {}", name, op->region_count,
         regions.size());
  }
  return {op, op->normalise(std::move(attrs)), std::move(inputs), std::move(regions)};
}

std::vector<TensorType> infer(const OpCall& call) {
  try {
    std::vector<TensorType> outputs;
    if (!is_native(call, &outputs)) {
      const Widened wide = widened(call);
      outputs = wide.narrowed(call.op->infer(wide.call));
    }
    for (const TensorType& output : outputs) check_size(output);
    return outputs;
  } catch (const device::Error& error) {
    throw device::Error(error.code(), fmt::format("[{}] {}; inputs are {}", call.op->name,
                                                  error.what(), describe(call.inputs)));
  }
}

Plan make_plan(kernels::DeviceClass device_class, const OpCall& call,
               const std::vector<TensorType>& outputs) {
  std::vector<TensorType> own;
  if (is_native(call, &own)) return call.op->plan(device_class, call, outputs);
  const Widened wide = widened(call);
  const std::vector<TensorType> wide_outputs = call.op->infer(wide.call);
  std::vector<kernels::WidenedOperand> ins, outs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    ins.push_back({call.inputs[i], wide.call.inputs[i]});
  }
  for (size_t i = 0; i < outputs.size(); ++i) outs.push_back({outputs[i], wide_outputs[i]});
  return kernels::widen(device_class, ins, outs,
                        call.op->plan(device_class, wide.call, wide_outputs));
}

void check_size(const TensorType& type) {
  uint64_t bytes = size_of(type.dtype);
  for (int64_t extent : type.shape) {
    if (extent < 0) fail(Code::kInvalidArgument, "{} has a negative extent", to_string(type));
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes) || bytes >> 62) {
      fail(Code::kInvalidArgument, "{} is too large", to_string(type));
    }
  }
}

void check_fits(double value, DType dtype) {
  const int bits = 8 * static_cast<int>(size_of(dtype));
  if (!kernels::is_integer(dtype)) return;
  const bool is_signed = dtype != DType::kU8;
  // Powers of two, so exact where the largest number itself is not.
  const double end = std::ldexp(1, bits - is_signed), begin = is_signed ? -end : 0;
  const double whole = std::trunc(value);
  if (!(whole >= begin && whole < end)) {
    fail(Code::kInvalidArgument, "value {} does not fit {}", value, name_of(dtype));
  }
}

Shape broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      fail(Code::kInvalidArgument, "shapes {} and {} do not broadcast", to_string(a), to_string(b));
    }
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

}  // namespace ballast::graph
