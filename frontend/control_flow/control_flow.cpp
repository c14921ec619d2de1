#include "frontend/control_flow/control_flow.h"

#include "frontend/control_flow/closure.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/shape.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace ballast::internal {

namespace {

std::vector<TensorType> types_of_leaves(const char* name, const std::vector<Tensor>& leaves,
                                        const Where& where) {
  std::vector<TensorType> types;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!leaves[i].defined()) {
      fail(BALLAST_INVALID_ARGUMENT, "[{}] leaf {} is an undefined tensor (at {})", name, i,
           to_string(where));
    }
    types.push_back(leaves[i].type());
  }
  return types;
}

void check_predicate(const char* name, const char* what, const TensorType& type,
                     const Where& where) {
  if (type == TensorType{DType::kBool, {}}) return;
  fail(BALLAST_INVALID_ARGUMENT, "[{}] the {} is {}, expected a bool scalar (at {})", name, what,
       to_string(type), to_string(where));
}

void check_carry(const char* name, const std::vector<TensorType>& before,
                 const std::vector<TensorType>& after, const Where& where) {
  if (after.size() < before.size()) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[{}] the body takes a carry of {} tensors and returns {} (at {})", name, before.size(),
         after.size(), to_string(where));
  }
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] == after[i]) continue;
    fail(BALLAST_INVALID_ARGUMENT,
         "[{}] leaf {} of the carry is {} before the body and {} after it (at {})", name, i,
         to_string(before[i]), to_string(after[i]), to_string(where));
  }
}

void check_branches(const std::vector<TensorType>& on_true, const std::vector<TensorType>& on_false,
                    const Where& where) {
  if (on_true.size() != on_false.size()) {
    fail(BALLAST_INVALID_ARGUMENT, "[cond] one branch returns {} tensors, the other {} (at {})",
         on_true.size(), on_false.size(), to_string(where));
  }
  for (size_t i = 0; i < on_true.size(); ++i) {
    if (on_true[i] == on_false[i]) continue;
    fail(BALLAST_INVALID_ARGUMENT,
         "[cond] leaf {} of the result is {} where the predicate is true, else {} (at {})", i,
         to_string(on_true[i]), to_string(on_false[i]), to_string(where));
  }
}

// Sizes of vectors as messages show them.
std::string sizes_of(const TreeForm& form) {
  return fmt::format("[{}]", fmt::join(form.sizes, ", "));
}

Program traced(const FlatFunction& fn, const std::vector<TensorType>& inputs) {
  return eliminate_dead_code(trace(fn, inputs));
}

std::vector<Tensor> part(const std::vector<Tensor>& list, size_t begin, size_t end) {
  return {list.begin() + static_cast<std::ptrdiff_t>(begin),
          list.begin() + static_cast<std::ptrdiff_t>(end)};
}

void append(std::vector<Tensor>& list, const std::vector<Tensor>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

// Takes the assigned parameters' new values out of an equation's results.
std::vector<Tensor> assign_results(const Outside& outside, const std::vector<Tensor>& results,
                                   size_t results_before) {
  size_t after = results_before + outside.assigned.size();
  outside.assign(part(results, results_before, after));
  std::vector<Tensor> own = part(results, 0, results_before);
  append(own, part(results, after, results.size()));
  return own;
}

int64_t length_of(const std::vector<TensorType>& xs, const ScanRange& range, const Where& where) {
  std::optional<int64_t> length = range.length;
  if (length && *length < 0) {
    fail(BALLAST_INVALID_ARGUMENT, "[scan] the length is {} (at {})", *length, to_string(where));
  }
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].shape.empty()) {
      fail(BALLAST_INVALID_ARGUMENT,
           "[scan] leaf {} of xs is {}: there is no axis to step along (at {})", i,
           to_string(xs[i]), to_string(where));
    }
    if (!length) length = xs[i].shape[0];
    if (xs[i].shape[0] != *length) {
      fail(BALLAST_INVALID_ARGUMENT, "[scan] leaf {} of xs is {}, expected {} steps (at {})", i,
           to_string(xs[i]), *length, to_string(where));
    }
  }
  if (!length) {
    fail(BALLAST_INVALID_ARGUMENT, "[scan] without xs a length is needed (at {})",
         to_string(where));
  }
  return *length;
}

std::vector<Tensor> while_with_effects(const FlatFunction& condition, const FlatFunction& body,
                                       const std::vector<Tensor>& init, const Where& where);

}  // namespace

void check_branch_forms(const std::vector<TreeForm>& forms, const Operand& predicate) {
  if (forms.size() < 2 || forms[0] == forms[1]) return;
  fail(BALLAST_INVALID_ARGUMENT,
       "[cond] one branch returns a tree with vectors of {}, the other of {} (at {})",
       sizes_of(forms[0]), sizes_of(forms[1]), to_string(CallScope::resolve(predicate.where())));
}

void check_carry_form(const char* name, const TreeForm& before, const TreeForm& after,
                      const Where& where) {
  if (before == after) return;
  fail(BALLAST_INVALID_ARGUMENT,
       "[{}] the carry is nested differently after the body: vectors of {} before it and {} after "
       "it (at {})",
       name, sizes_of(before), sizes_of(after), to_string(CallScope::resolve(where)));
}

std::vector<Tensor> flat_cond(const Operand& predicate, const FlatFunction& on_true,
                              const FlatFunction& on_false, const std::vector<Tensor>& operands) {
  Where where = CallScope::resolve(predicate.where());
  Tensor choice = predicate.tensor();
  if (predicate.is_number())
    return choice.item<float>() != 0 ? on_true(operands) : on_false(operands);
  check_predicate("cond", "predicate", choice.type(), where);
  if (!Trace::current()) return choice.item<bool>() ? on_true(operands) : on_false(operands);

  std::vector<TensorType> types = types_of_leaves("cond", operands, where);
  Program programs[] = {traced(on_true, types), traced(on_false, types)};
  check_branches(output_types(programs[0]), output_types(programs[1]), where);
  Outside outside({&programs[0], &programs[1]});
  size_t result_count = programs[0].outputs.size();
  if (result_count + outside.assigned.size() == 0) return {};
  Bodies bodies;
  for (const Program& program : programs) {
    bodies.push_back(close(program, outside, {operands.size(), result_count}));
  }
  std::vector<Tensor> inputs{choice};
  append(inputs, outside.constants());
  append(inputs, operands);
  append(inputs, outside.assigned_values());
  return assign_results(outside, apply_primitive("cond", inputs, {}, where, bodies), result_count);
}

std::vector<Tensor> flat_while(const FlatFunction& condition, const FlatFunction& body,
                               const std::vector<Tensor>& init, const Where& given) {
  Where where = CallScope::resolve(given);
  std::vector<TensorType> types = types_of_leaves("while_loop", init, where);
  Program test = traced(condition, types), step = traced(body, types);
  if (test.outputs.size() != 1) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[while_loop] the condition returns {} tensors, expected one (at {})", test.outputs.size(),
         to_string(where));
  }
  check_predicate("while_loop", "condition", test.outputs[0].type(), where);
  if (!test.effects.empty()) return while_with_effects(condition, body, init, where);
  check_carry("while_loop", types, output_types(step), where);
  Outside outside({&test, &step});
  if (init.size() + outside.assigned.size() == 0) {
    fail(BALLAST_INVALID_ARGUMENT, "[while_loop] nothing is carried (at {})", to_string(where));
  }
  Bodies bodies{close(test, outside, {init.size(), 1, /*returns_assigned=*/false}),
                close(step, outside, {init.size(), init.size()})};
  std::vector<Tensor> inputs = outside.constants();
  Attrs attrs{{"consts", static_cast<int64_t>(inputs.size())}};
  append(inputs, init);
  append(inputs, outside.assigned_values());
  return assign_results(outside, apply_primitive("while", inputs, attrs, where, bodies),
                        init.size());
}

std::vector<Tensor> flat_scan(const FlatFunction& body, const std::vector<Tensor>& init,
                              const std::vector<Tensor>& xs, const ScanRange& range,
                              const Where& given) {
  Where where = CallScope::resolve(given);
  std::vector<TensorType> types = types_of_leaves("scan", init, where), step_types = types;
  std::vector<TensorType> stacked = types_of_leaves("scan", xs, where);
  int64_t length = length_of(stacked, range, where);
  for (const TensorType& type : stacked) {
    step_types.push_back({type.dtype, Shape(type.shape.begin() + 1, type.shape.end())});
  }
  Program step = traced(body, step_types);
  check_carry("scan", types, output_types(step), where);
  Outside outside({&step});
  if (step.outputs.size() + outside.assigned.size() == 0) return {};
  Bodies bodies{close(step, outside, {init.size(), init.size()})};
  std::vector<Tensor> inputs = outside.constants();
  Attrs attrs{{"consts", static_cast<int64_t>(inputs.size())},
              {"carried", static_cast<int64_t>(init.size() + outside.assigned.size())},
              {"length", length},
              {"reverse", int64_t{range.is_reverse}}};
  append(inputs, init);
  append(inputs, outside.assigned_values());
  append(inputs, xs);
  return assign_results(outside, apply_primitive("scan", inputs, attrs, where, bodies),
                        init.size());
}

namespace {

// A condition that prints, draws or assigns runs before the loop and at the end of the body; what
// it decides is carried.
std::vector<Tensor> while_with_effects(const FlatFunction& condition, const FlatFunction& body,
                                       const std::vector<Tensor>& init, const Where& where) {
  auto with_decision = [&](std::vector<Tensor> carry) {
    carry.push_back(condition(carry)[0]);
    return carry;
  };
  auto carried_decision = [](const std::vector<Tensor>& carry) {
    return std::vector<Tensor>{carry.back()};
  };
  auto step = [&](const std::vector<Tensor>& carry) {
    return with_decision(body(part(carry, 0, carry.size() - 1)));
  };
  std::vector<Tensor> result = flat_while(carried_decision, step, with_decision(init), where);
  result.pop_back();
  return result;
}

}  // namespace

Tensor integers(const Operand& lower, const Operand& upper) {
  CallScope scope(lower.where());
  int32_t first = lower.as(DType::kI32).item<int32_t>();
  int32_t end = upper.as(DType::kI32).item<int32_t>();
  return ops::arange(first, end, 1, DType::kI32);
}

Tensor as_counter(const Operand& bound) {
  Tensor counter = bound.as(DType::kI32);
  if (counter.type() == TensorType{DType::kI32, {}}) return counter;
  fail(BALLAST_INVALID_ARGUMENT, "[fori_loop] a bound is {}, expected an i32 scalar (at {})",
       to_string(counter.type()), to_string(bound.where()));
}

Tensor is_below(const Tensor& counter, const Tensor& bound) { return ops::less(counter, bound); }

Tensor next_of(const Tensor& counter) { return counter + 1; }

}  // namespace ballast::internal
