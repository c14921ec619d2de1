#include "frontend/transforms/custom.h"

#include "frontend/ops/ops.h"
#include "frontend/program/token.h"
#include "frontend/transforms/vjp.h"
#include "frontend/transforms/vjp_rules.h"
#include "frontend/transforms/vmap.h"
#include "frontend/transforms/vmap_rules.h"

#include <memory>

namespace ballast {

namespace {

// The equation's inputs are `values`, then `operands`; its outputs the values. The body takes the
// operands and a cotangent for each value of a float type, and gives the gradients of the operands
// in `wanted`.
std::vector<Tensor> hand_on(const char* primitive, const std::vector<Tensor>& values,
                            const std::vector<Tensor>& operands, const std::vector<int64_t>& wanted,
                            const FlatFunction& backward) {
  std::vector<TensorType> types = types_of(operands);
  for (const Tensor& value : values) {
    if (is_float(value.dtype())) types.push_back(value.type());
  }
  auto body = std::make_shared<Program>(eliminate_dead_code(trace(backward, types)));
  // What backward takes from elsewhere joins the operands: a body is a closed program.
  std::vector<Tensor> inputs = values;
  inputs.insert(inputs.end(), operands.begin(), operands.end());
  std::vector<Var> outside;
  for (const auto& captured : body->captured) {
    outside.push_back(captured.var);
    inputs.push_back(captured.value);
  }
  for (const auto& state : body->states) {
    outside.push_back(state.var);
    inputs.push_back(state.parameter.value());
  }
  if (!body->effects.empty()) {
    const Parameter& changed = body->effects[0].parameter;
    fail(BALLAST_INVALID_ARGUMENT, "[{}] the backward pass {}", primitive,
         is_token(changed.type()) ? "prints" : "assigns parameter " + changed.name());
  }
  const auto cotangents = body->inputs.begin() + static_cast<std::ptrdiff_t>(operands.size());
  body->inputs.insert(cotangents, outside.begin(), outside.end());
  body->captured.clear();
  body->states.clear();
  return apply_primitive(primitive, inputs,
                         {{"values", static_cast<int64_t>(values.size())}, {"wanted", wanted}},
                         Where::here(), {body});
}

// The cotangents among a body's inputs: given for the float ones of `values`.
std::vector<Tensor> spread_cotangents(const std::vector<Tensor>& values,
                                      std::vector<Tensor>::const_iterator next) {
  std::vector<Tensor> cotangents;
  for (const Tensor& value : values) {
    cotangents.push_back(is_float(value.dtype()) ? *next++ : Tensor());
  }
  return cotangents;
}

Tensor defined_or_zero(const Tensor& gradient, const Tensor& like, const char* user) {
  if (!gradient.defined()) return Tensor::zeros(like.shape(), like.dtype());
  if (gradient.type() != like.type()) {
    fail(BALLAST_INVALID_ARGUMENT, "[{}] backward gives {} for an argument {}", user,
         to_string(gradient.type()), to_string(like.type()));
  }
  return gradient;
}

}  // namespace

namespace internal {

std::vector<Tensor> apply_custom_vjp(const std::vector<Tensor>& values,
                                     const std::vector<Tensor>& arguments,
                                     const std::vector<Tensor>& residuals,
                                     const FlatFunction& backward) {
  std::vector<int64_t> wanted;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (is_float(arguments[i].dtype())) wanted.push_back(static_cast<int64_t>(i));
  }
  std::vector<Tensor> operands = arguments;
  operands.insert(operands.end(), residuals.begin(), residuals.end());
  auto body = [&](const std::vector<Tensor>& inputs) {
    const auto saved = inputs.begin() + static_cast<std::ptrdiff_t>(arguments.size());
    const auto given = inputs.begin() + static_cast<std::ptrdiff_t>(operands.size());
    std::vector<Tensor> leaves(saved, given);
    for (const Tensor& cotangent : spread_cotangents(values, given)) leaves.push_back(cotangent);
    const std::vector<Tensor> gradients = backward(leaves);
    if (gradients.size() != arguments.size()) {
      fail(BALLAST_INVALID_ARGUMENT, "[custom_vjp] backward gives {} gradients for {} arguments",
           gradients.size(), arguments.size());
    }
    std::vector<Tensor> results;
    for (int64_t i : wanted) {
      const auto at = static_cast<size_t>(i);
      results.push_back(defined_or_zero(gradients[at], arguments[at], "custom_vjp"));
    }
    return results;
  };
  return hand_on("custom_vjp", values, operands, wanted, body);
}

std::vector<Tensor> apply_checkpoint(const FlatFunction& fn, const std::vector<Tensor>& arguments) {
  Program program = eliminate_dead_code(trace(fn, types_of(arguments)));
  // What fn takes from elsewhere joins its inputs, what it assigns its outputs.
  std::vector<Tensor> operands = arguments;
  for (const auto& captured : program.captured) {
    program.inputs.push_back(captured.var);
    operands.push_back(captured.value);
  }
  for (const auto& state : program.states) {
    program.inputs.push_back(state.var);
    operands.push_back(state.parameter.value());
  }
  const std::vector<Program::Effect> effects = program.effects;
  const size_t count = program.outputs.size();
  program.captured.clear();
  program.states.clear();
  program.effects.clear();
  for (const auto& effect : effects) program.outputs.push_back(effect.value);

  std::vector<int64_t> wanted;
  std::vector<bool> is_wanted;
  for (size_t i = 0; i < operands.size(); ++i) {
    is_wanted.push_back(is_float(operands[i].dtype()));
    if (is_wanted.back()) wanted.push_back(static_cast<int64_t>(i));
  }
  const std::vector<Tensor> values = eval(program, operands);
  auto body = [&](const std::vector<Tensor>& inputs) {
    const auto given = inputs.begin() + static_cast<std::ptrdiff_t>(operands.size());
    // Not merged with the first run, and not before its cotangents are there.
    std::vector<Tensor> again;
    for (auto input = inputs.begin(); input != given; ++input) {
      if (is_token(input->type())) {
        again.push_back(*input);
        continue;
      }
      std::vector<Tensor> after(given, inputs.end());
      after.insert(after.begin(), *input);
      again.push_back(ops::call("barrier", after)[0]);
    }
    const std::vector<Tensor> gradients =
        pullback(program, again, spread_cotangents(values, given), is_wanted);
    std::vector<Tensor> results;
    for (int64_t i : wanted) {
      const auto at = static_cast<size_t>(i);
      results.push_back(defined_or_zero(gradients[at], operands[at], "checkpoint"));
    }
    return results;
  };
  std::vector<Tensor> results = hand_on("checkpoint", values, operands, wanted, body);
  for (size_t i = 0; i < effects.size(); ++i) {
    effects[i].parameter.assign(results[count + i]);
  }
  results.resize(count);
  return results;
}

}  // namespace internal

namespace {

size_t value_count(const Attrs& attrs) { return static_cast<size_t>(int_attr(attrs, "values")); }

// The values; that the body fits them is checked, as a program may come from a text.
std::vector<TensorType> infer(const std::vector<TensorType>& inputs, const Attrs& attrs,
                              const Bodies& bodies) {
  const size_t count = value_count(attrs);
  if (bodies.size() != 1 || count > inputs.size()) {
    fail(BALLAST_INVALID_ARGUMENT, "[custom_vjp] {} values of {} inputs, {} bodies", count,
         inputs.size(), bodies.size());
  }
  const auto first = inputs.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<TensorType> values(inputs.begin(), first), operands(first, inputs.end()), gradients;
  for (int64_t i : ints_attr(attrs, "wanted"))
    gradients.push_back(operands.at(static_cast<size_t>(i)));
  for (const TensorType& value : values) {
    if (is_float(value.dtype)) operands.push_back(value);
  }
  if (input_types(*bodies[0]) != operands || output_types(*bodies[0]) != gradients) {
    fail(BALLAST_INVALID_ARGUMENT, "[custom_vjp] the body has other types than its operands");
  }
  return values;
}

std::vector<Tensor> run(const std::vector<Tensor>& inputs, const Attrs& attrs, const Bodies&) {
  return {inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(value_count(attrs))};
}

// Nothing flows to the values, which the operands have made.
std::vector<Tensor> vjp_rule(const VjpArgs& args) {
  const size_t values = value_count(args.attrs);
  std::vector<Tensor> inputs(args.inputs.begin() + static_cast<std::ptrdiff_t>(values),
                             args.inputs.end());
  for (size_t i = 0; i < values; ++i) {
    if (!is_float(args.outputs[i].dtype())) continue;
    inputs.push_back(vjp_rules::or_zero(args.cotangents[i], args.outputs[i]));
  }
  const std::vector<Tensor> found = eval(*args.bodies[0], inputs);
  std::vector<Tensor> gradients(args.inputs.size());
  const std::vector<int64_t>& wanted = ints_attr(args.attrs, "wanted");
  for (size_t i = 0; i < found.size(); ++i) {
    gradients[values + static_cast<size_t>(wanted[i])] = found[i];
  }
  return gradients;
}

// What a checkpoint's values follow from has tangents of its own.
std::vector<Tensor> checkpoint_jvp(const JvpArgs& args) {
  return {args.tangents.begin(),
          args.tangents.begin() + static_cast<std::ptrdiff_t>(args.outputs.size())};
}

// All operands are mapped, so that each has a gradient for every example.
std::vector<Tensor> vmap_rule(const VmapArgs& args) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    const bool is_order = is_token(args.inputs[i].type());
    inputs.push_back(is_order ? args.inputs[i] : vmap_rules::mapped(args, i));
  }
  const Program& body = *args.bodies[0];
  std::vector<TensorType> types = input_types(body);
  std::vector<bool> is_mapped;
  for (TensorType& type : types) {
    is_mapped.push_back(!is_token(type));
    if (is_mapped.back()) type.shape.insert(type.shape.begin(), args.size);
  }
  auto mapped_body = [&](const std::vector<Tensor>& operands) {
    Mapped results = run_mapped(body, operands, is_mapped, args.size);
    for (size_t i = 0; i < results.outputs.size(); ++i) {
      Tensor& output = results.outputs[i];
      if (!results.is_mapped[i]) output = vmap_rules::repeated(output, args.size);
    }
    return results.outputs;
  };
  const Bodies bodies = {std::make_shared<Program>(trace(mapped_body, types))};
  return apply_primitive(args.primitive, inputs, args.attrs, Where::here(), bodies);
}

std::vector<Tensor> barrier_vjp(const VjpArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  gradients[0] = vjp_rules::g(args);
  return gradients;
}

std::vector<Tensor> barrier_jvp(const JvpArgs& args) { return {args.tangents[0]}; }

std::vector<Tensor> barrier_vmap(const VmapArgs& args) {
  std::vector<Tensor> inputs = args.inputs;
  inputs[0] = vmap_rules::mapped(args, 0);
  return ops::call("barrier", inputs);
}

}  // namespace

std::vector<Primitive> custom_primitives() {
  return {
      {"barrier", barrier_vjp, barrier_jvp, barrier_vmap, false, /*is_view=*/true},
      {"checkpoint", vjp_rule, checkpoint_jvp, vmap_rule, /*is_identity=*/true, false, infer, run},
      {"custom_vjp", vjp_rule, nullptr, vmap_rule, /*is_identity=*/true, false, infer, run},
  };
}

}  // namespace ballast
