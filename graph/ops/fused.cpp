// "fused": a chain of pointwise ops in one kernel, made by the fuse_pointwise pass.
//
// Its `program` attribute lists the steps, e.g. "sub(i0,i1):f32;mul(s0,s0):f32": i<n> is an input
// of the node, s<n> an earlier step, and the dtype is the step's result.
//
// "fused_rows", made by fuse_rows: the steps may also be softmax, log_softmax and reductions along
// the last axis, which keep it as 1; the result, that of the last step, loses it where keep_dims is
// 0.
#include "graph/ops/fused.h"

#include "device/words.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace ballast::graph {

using device::Code;
using device::fail;

namespace {

[[noreturn]] void fail_program(const std::string& program) {
  fail(Code::kInvalidArgument, "program \"{}\" is malformed", program);
}

kernels::FusedStep::Ref parse_ref(const std::string& text, const kernels::FusedPointwise& fused,
                                  const std::string& program) {
  const bool is_input = device::is_numbered(text, "i");
  if (!is_input && !device::is_numbered(text, "s")) fail_program(program);
  const auto index = static_cast<uint32_t>(std::stoul(text.substr(1)));
  const size_t limit = is_input ? fused.inputs.size() : fused.steps.size();
  if (index >= limit) fail_program(program);
  return {is_input, index};
}

kernels::FusedStep parse_step(FusedKind kind, const std::string& text,
                              const kernels::FusedPointwise& fused, const std::string& program) {
  const size_t open = text.find('('), close = text.find("):");
  if (open == std::string::npos || close == std::string::npos) fail_program(program);
  kernels::FusedStep step;
  step.op = text.substr(0, open);
  const OpDef* op = find_op(step.op);
  const bool is_row_op = kind == FusedKind::kRows && kernels::is_row_op(step.op);
  if (op == nullptr || !(op->is_pointwise || is_row_op)) fail_program(program);
  std::istringstream args(text.substr(open + 1, close - open - 1));
  std::vector<TensorType> types;
  for (std::string arg; std::getline(args, arg, ',');) {
    step.args.push_back(parse_ref(arg, fused, program));
    const auto& ref = step.args.back();
    types.push_back(ref.is_input ? fused.inputs[ref.index] : fused.steps[ref.index].type);
  }
  const DType dtype = kernels::dtype_named(text.substr(close + 2));
  Attrs attrs;
  if (step.op == "cast") attrs["dtype"] = static_cast<int64_t>(dtype);
  if (kernels::is_row_reduction(step.op)) {
    attrs = {{"axes", std::vector<int64_t>{-1}}, {"keep_dims", int64_t{1}}};
  }
  step.type = infer(make_call(step.op, std::move(attrs), std::move(types))).at(0);
  if (step.type.dtype != dtype) fail_program(program);
  return step;
}

}  // namespace

std::string fused_step_text(const std::string& op, const std::vector<std::string>& args,
                            DType dtype) {
  return fmt::format("{}({}):{}", op, fmt::join(args, ","), name_of(dtype));
}

kernels::FusedPointwise parse_fused(FusedKind kind, const std::string& program,
                                    const std::vector<int64_t>& outputs,
                                    const std::vector<TensorType>& inputs) {
  kernels::FusedPointwise fused;
  fused.inputs = inputs;
  std::istringstream steps(program);
  for (std::string text; std::getline(steps, text, ';');) {
    fused.steps.push_back(parse_step(kind, text, fused, program));
  }
  for (int64_t step : outputs) {
    if (step < 0 || step >= static_cast<int64_t>(fused.steps.size())) fail_program(program);
    fused.outputs.push_back(static_cast<uint32_t>(step));
  }
  return fused;
}

kernels::FusedPointwise parse_chain(FusedKind kind, const std::string& program,
                                    const std::vector<TensorType>& inputs) {
  return parse_fused(kind, program, {std::count(program.begin(), program.end(), ';')}, inputs);
}

namespace {

OpDef fused() {
  OpDef op;
  op.name = "fused";
  op.max_inputs = 64;
  op.is_internal = true;
  op.attrs = {{"program", std::string(), true}, {"outputs", std::vector<int64_t>{}, true}};
  for (size_t input = 0; input < op.max_inputs; ++input) op.in_place.emplace_back(0, input);
  auto parsed = [](const OpCall& call) {
    return parse_fused(FusedKind::kPointwise, string_attr(call.attrs, "program"),
                       ints_attr(call.attrs, "outputs"), call.inputs);
  };
  op.infer = [parsed](const OpCall& call) {
    const kernels::FusedPointwise chain = parsed(call);
    std::vector<TensorType> types;
    for (uint32_t step : chain.outputs) types.push_back(chain.steps[step].type);
    return types;
  };
  op.plan = [parsed](kernels::DeviceClass device_class, const OpCall& call,
                     const std::vector<TensorType>&) {
    return kernels::plan_fused(device_class, parsed(call));
  };
  return op;
}

// Not in place: the last vector of a row is computed from elements that its neighbour has written.
OpDef fused_rows() {
  OpDef op;
  op.name = "fused_rows";
  op.max_inputs = 64;
  op.is_internal = true;
  op.attrs = {{"program", std::string(), true}, {"keep_dims", int64_t{1}}};
  auto parsed = [](const OpCall& call) {
    return parse_chain(FusedKind::kRows, string_attr(call.attrs, "program"), call.inputs);
  };
  op.infer = [parsed](const OpCall& call) -> std::vector<TensorType> {
    TensorType type = parsed(call).steps.back().type;
    if (int_attr(call.attrs, "keep_dims") == 0) type.shape.pop_back();
    return {type};
  };
  op.plan = [parsed](kernels::DeviceClass device_class, const OpCall& call,
                     const std::vector<TensorType>&) {
    return kernels::plan_fused_rows(device_class, parsed(call));
  };
  return op;
}

}  // namespace

std::vector<OpDef> fused_ops() { return {fused(), fused_rows()}; }

}  // namespace ballast::graph
