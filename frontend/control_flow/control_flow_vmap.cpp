// Control flow over many examples: once for all of them where the decision is one for all; else a
// cond runs both branches and selects, and a while turns until no example goes on, leaving alone
// those that have ended.
#include "frontend/control_flow/control_flow.h"
#include "frontend/control_flow/control_flow_rules.h"
#include "frontend/ops/ops.h"
#include "frontend/program/token.h"
#include "frontend/transforms/vmap.h"
#include "frontend/transforms/vmap_rules.h"

#include <algorithm>

namespace ballast {

namespace {

using Flags = std::vector<bool>;

Tensor expanded(const Tensor& x, int64_t size) {
  Shape shape = x.shape();
  shape.insert(shape.begin(), size);
  return ops::broadcast_to(x, shape);
}

// Those that `wanted` says with the new axis, whether they had it or not.
std::vector<Tensor> expanded(const Mapped& mapped, const Flags& wanted, int64_t size) {
  std::vector<Tensor> results = mapped.outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (is_token(results[i].type())) continue;
    if (wanted[i] && !mapped.is_mapped[i]) results[i] = expanded(results[i], size);
  }
  return results;
}

Flags all(size_t count) { return Flags(count, true); }

// Examples that take different ways also have different effects, and cannot share a run.
bool has_token(const std::vector<Tensor>& operands) {
  return std::any_of(operands.begin(), operands.end(),
                     [](const Tensor& operand) { return is_token(operand.type()); });
}

// Example by example: a where the predicate [size] is true, else b.
std::vector<Tensor> selected(const Tensor& predicate, const std::vector<Tensor>& a,
                             const std::vector<Tensor>& b) {
  std::vector<Tensor> results;
  for (size_t i = 0; i < a.size(); ++i) {
    Shape shape(a[i].shape().size(), 1);
    shape[0] = predicate.shape()[0];
    results.push_back(ops::select(ops::reshape(predicate, shape), a[i], b[i]));
  }
  return results;
}

// Which outputs of `program` are mapped where these inputs are.
Flags mapped_outputs(const Program& program, const Flags& is_mapped, int64_t size) {
  std::vector<TensorType> types = input_types(program);
  for (size_t i = 0; i < types.size(); ++i) {
    if (is_mapped[i]) types[i].shape.insert(types[i].shape.begin(), size);
  }
  Flags result;
  trace(
      [&](const std::vector<Tensor>& inputs) {
        result = run_mapped(program, inputs, is_mapped, size).is_mapped;
        return std::vector<Tensor>();
      },
      types);
  return result;
}

// `is_mapped`, with every part of the carry that comes to differ by example.
Flags with_mapped_carry(const Program& body, Flags is_mapped, size_t consts, size_t carried,
                        int64_t size) {
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    const Flags outputs = mapped_outputs(body, is_mapped, size);
    for (size_t i = 0; i < carried; ++i) {
      if (!outputs[i] || is_mapped[consts + i]) continue;
      is_mapped[consts + i] = has_changed = true;
    }
  }
  return is_mapped;
}

Flags part_of(const Flags& flags, size_t begin, size_t count) {
  const auto first = flags.begin() + static_cast<std::ptrdiff_t>(begin);
  return Flags(first, first + static_cast<std::ptrdiff_t>(count));
}

// The inputs [begin, begin + count), expanded where `flags` say mapped and they are not.
std::vector<Tensor> inputs_as(const VmapArgs& args, const Flags& flags, size_t begin,
                              size_t count) {
  return expanded({part(args.inputs, begin, count), part_of(args.is_mapped, begin, count)},
                  part_of(flags, begin, count), args.size);
}

}  // namespace

std::vector<Tensor> vmap_cond(const VmapArgs& args) {
  const size_t count = args.inputs.size() - 1;
  const std::vector<Tensor> operands = part(args.inputs, 1, count);
  const Flags is_mapped = part_of(args.is_mapped, 1, count);
  if (args.is_mapped[0] && has_token(operands)) return vmap_rules::unroll(args);
  auto branch = [&](size_t number) {
    return [&, number](const std::vector<Tensor>& leaves) {
      return expanded(run_mapped(*args.bodies[number], leaves, is_mapped, args.size),
                      all(args.outputs.size()), args.size);
    };
  };
  if (!args.is_mapped[0]) {
    return internal::flat_cond(args.inputs[0], branch(0), branch(1), operands);
  }
  return selected(args.inputs[0], branch(0)(operands), branch(1)(operands));
}

std::vector<Tensor> vmap_scan(const VmapArgs& args) {
  const ScanForm form(args.attrs);
  const Program& body = *args.bodies[0];
  const size_t first_x = form.consts + form.carried, x_count = args.inputs.size() - first_x;
  const Flags flags = with_mapped_carry(body, args.is_mapped, form.consts, form.carried, args.size);
  std::vector<Tensor> xs = part(args.inputs, first_x, x_count);
  for (size_t i = 0; i < x_count; ++i) {
    if (flags[first_x + i]) xs[i] = vmap_rules::move_axis(xs[i], 0, 1);
  }
  Flags wanted = part_of(flags, form.consts, form.carried);
  wanted.resize(args.outputs.size(), true);
  auto step = [&](const std::vector<Tensor>& leaves) {
    return expanded(
        run_mapped(body, joined(part(args.inputs, 0, form.consts), leaves), flags, args.size),
        wanted, args.size);
  };
  std::vector<Tensor> results =
      internal::flat_scan(step, inputs_as(args, flags, form.consts, form.carried), xs,
                          {form.length, form.is_reverse}, Where::here());
  for (size_t i = form.carried; i < results.size(); ++i) {
    results[i] = vmap_rules::move_axis(results[i], 0, 1);
  }
  return expanded({results, wanted}, all(results.size()), args.size);
}

std::vector<Tensor> vmap_while(const VmapArgs& args) {
  const auto const_count = static_cast<size_t>(int_attr(args.attrs, "consts"));
  const size_t carried = args.inputs.size() - const_count;
  const std::vector<Tensor> consts = part(args.inputs, 0, const_count);
  Flags flags = with_mapped_carry(*args.bodies[1], args.is_mapped, const_count, carried, args.size);
  const bool differs = mapped_outputs(*args.bodies[0], flags, args.size)[0];
  if (differs && has_token(args.inputs)) return vmap_rules::unroll(args);
  if (differs)
    std::fill(flags.begin() + static_cast<std::ptrdiff_t>(const_count), flags.end(), true);
  const Flags wanted = part_of(flags, const_count, carried);
  auto goes_on = [&](const std::vector<Tensor>& carry) {
    return run_mapped(*args.bodies[0], joined(consts, carry), flags, args.size).outputs;
  };
  auto condition = [&](const std::vector<Tensor>& carry) {
    std::vector<Tensor> results = goes_on(carry);
    if (differs) results[0] = ops::reduce_any(results[0]);
    return results;
  };
  auto step = [&](const std::vector<Tensor>& carry) {
    std::vector<Tensor> next = expanded(
        run_mapped(*args.bodies[1], joined(consts, carry), flags, args.size), wanted, args.size);
    return differs ? selected(goes_on(carry)[0], next, carry) : next;
  };
  const std::vector<Tensor> results = internal::flat_while(
      condition, step, inputs_as(args, flags, const_count, carried), Where::here());
  return expanded({results, wanted}, all(carried), args.size);
}

}  // namespace ballast
