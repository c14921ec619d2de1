// cond, while, scan: ops that run regions. A region's inputs are the op's operands, so nothing is
// captured. graph/control.h runs them.
//   cond   inputs: predicate bool[], operands; regions: where true, where false
//   while  {consts}; inputs: constants, carry; regions: condition -> bool[], body -> carry
//   scan   {consts, carried, length, reverse}; inputs: constants, carry, xs stacked along axis 0;
//          region: (constants, carry, slices of xs) -> (carry, ys); outputs: carry, stacked ys
#include "graph/graph.h"

namespace ballast::graph {

using device::Code;
using device::fail;

namespace {

constexpr size_t kMostOperands = 4096;

std::string list_text(const std::vector<TensorType>& types) {
  std::string text;
  for (const TensorType& type : types) text += (text.empty() ? "" : ", ") + to_string(type);
  return "(" + text + ")";
}

// What the region gives, after a check that it takes `operands`.
std::vector<TensorType> results_of(const OpCall& call, size_t number,
                                   const std::vector<TensorType>& operands) {
  const Graph& region = *call.regions[number];
  if (!region.states().empty()) {
    fail(Code::kInvalidArgument, "region {} has a state, \"{}\"", number,
         region.value(region.states()[0]).name);
  }
  const std::vector<TensorType> inputs = region.types(region.inputs());
  if (inputs != operands) {
    fail(Code::kInvalidArgument, "region {} takes {}, its operands are {}", number,
         list_text(inputs), list_text(operands));
  }
  return region.types(region.outputs());
}

void check_predicate(const char* what, const TensorType& type) {
  if (type == TensorType{DType::kBool, {}}) return;
  fail(Code::kInvalidArgument, "the {} is {}, expected bool[]", what, to_string(type));
}

void check_carry(const std::vector<TensorType>& before, const std::vector<TensorType>& after) {
  if (before == after) return;
  fail(Code::kInvalidArgument, "the carry is {} before the body and {} after it", list_text(before),
       list_text(after));
}

std::vector<TensorType> infer_cond(const OpCall& call) {
  check_predicate("predicate", call.inputs[0]);
  const std::vector<TensorType> operands(call.inputs.begin() + 1, call.inputs.end());
  const std::vector<TensorType> outputs = results_of(call, 0, operands);
  const std::vector<TensorType> others = results_of(call, 1, operands);
  if (outputs != others) {
    fail(Code::kInvalidArgument, "the regions give {} and {}", list_text(outputs),
         list_text(others));
  }
  if (outputs.empty()) fail(Code::kInvalidArgument, "the regions give nothing");
  return outputs;
}

// Attribute `name` as a count of what is left of the inputs.
size_t count_attr(const OpCall& call, const char* name, size_t taken) {
  const int64_t count = int_attr(call.attrs, name);
  if (count < 0 || static_cast<uint64_t>(count) > call.inputs.size() - taken) {
    fail(Code::kInvalidArgument, "{} = {} with {} inputs", name, count, call.inputs.size());
  }
  return static_cast<size_t>(count);
}

std::vector<TensorType> infer_while(const OpCall& call) {
  const size_t consts = count_attr(call, "consts", 0);
  const auto first = call.inputs.begin() + static_cast<int64_t>(consts);
  const std::vector<TensorType> carry(first, call.inputs.end());
  if (carry.empty()) fail(Code::kInvalidArgument, "nothing is carried");
  const std::vector<TensorType> condition = results_of(call, 0, call.inputs);
  if (condition.size() != 1) {
    fail(Code::kInvalidArgument, "the condition gives {}, expected bool[]", list_text(condition));
  }
  check_predicate("condition", condition[0]);
  check_carry(carry, results_of(call, 1, call.inputs));
  return carry;
}

std::vector<TensorType> infer_scan(const OpCall& call) {
  const size_t consts = count_attr(call, "consts", 0);
  const size_t carried = count_attr(call, "carried", consts);
  const int64_t length = int_attr(call.attrs, "length");
  if (length < 0) fail(Code::kInvalidArgument, "length = {}", length);
  std::vector<TensorType> operands = call.inputs;
  for (size_t i = consts + carried; i < operands.size(); ++i) {
    Shape& shape = operands[i].shape;
    if (shape.empty() || shape[0] != length) {
      fail(Code::kInvalidArgument, "input {} is {}, expected {} steps along its first axis", i,
           to_string(operands[i]), length);
    }
    shape.erase(shape.begin());
  }
  std::vector<TensorType> outputs = results_of(call, 0, operands);
  if (outputs.empty()) fail(Code::kInvalidArgument, "the body gives nothing");
  const auto first = operands.begin() + static_cast<int64_t>(consts);
  const size_t returned = std::min(carried, outputs.size());
  check_carry({first, first + static_cast<int64_t>(carried)},
              {outputs.begin(), outputs.begin() + static_cast<int64_t>(returned)});
  for (size_t i = carried; i < outputs.size(); ++i) {
    outputs[i].shape.insert(outputs[i].shape.begin(), length);
  }
  return outputs;
}

OpDef control_flow(const char* name, size_t min_inputs, size_t region_count,
                   std::vector<AttrSpec> attrs,
                   std::function<std::vector<TensorType>(const OpCall&)> infer) {
  OpDef op;
  op.name = name;
  op.min_inputs = min_inputs;
  op.max_inputs = kMostOperands;
  op.region_count = region_count;
  op.attrs = std::move(attrs);
  op.infer = std::move(infer);
  return op;
}

}  // namespace

std::vector<OpDef> control_flow_ops() {
  const int64_t number = 0;
  return {control_flow("cond", 1, 2, {}, infer_cond),
          control_flow("while", 1, 2, {{"consts", number, true}}, infer_while),
          control_flow("scan", 0, 1,
                       {{"consts", number, true},
                        {"carried", number, true},
                        {"length", number, true},
                        {"reverse", number}},
                       infer_scan)};
}

}  // namespace ballast::graph
