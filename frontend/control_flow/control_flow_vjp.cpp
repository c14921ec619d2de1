#include "frontend/control_flow/control_flow.h"
#include "frontend/control_flow/control_flow_rules.h"
#include "frontend/ops/ops.h"
#include "frontend/program/token.h"
#include "frontend/transforms/vjp.h"
#include "frontend/transforms/vjp_rules.h"

#include <algorithm>

namespace ballast {

namespace {

// Carries kept of a while's run. When all places are taken, every other carry is given up, so that
// n steps cost memory for kPlaces carries and time for n steps, each redone from the carry kept
// before it: up to n / kPlaces * 2 of them.
constexpr int64_t kPlaces = 64;

using vjp_rules::or_zero;

// Picks what is wanted out of gradients, as results of a body: zeros where none arrive.
std::vector<Tensor> chosen(const std::vector<Tensor>& gradients, const std::vector<Tensor>& like,
                           const std::vector<bool>& wanted) {
  std::vector<Tensor> results;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) results.push_back(or_zero(gradients[i], like[i]));
  }
  return results;
}

// The other way: every input's gradient from the list of the wanted ones.
std::vector<Tensor> spread(const std::vector<Tensor>& results, const std::vector<bool>& wanted) {
  std::vector<Tensor> gradients(wanted.size());
  size_t next = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) gradients[i] = results.at(next++);
  }
  return gradients;
}

// The state of a loop's gradient: the cotangent of each active part of the carry, then the sum of
// each wanted constant's gradient.
class Backward {
 public:
  Backward(const VjpArgs& args, const Program& body, size_t consts, size_t carried)
      : args_(args),
        body_(body),
        consts_(consts),
        carried_(carried),
        wanted_(with_active_carry(body, args.wanted, consts, carried)) {}

  std::vector<Tensor> init() const {
    std::vector<Tensor> state;
    for (size_t i = 0; i < carried_; ++i) {
      if (wanted_[consts_ + i]) state.push_back(or_zero(args_.cotangents[i], args_.outputs[i]));
    }
    for (size_t i = 0; i < consts_; ++i) {
      if (wanted_[i])
        state.push_back(Tensor::zeros(args_.inputs[i].shape(), args_.inputs[i].dtype()));
    }
    return state;
  }

  // Back through one step whose inputs were `inputs`: the new state, then the gradients of the
  // wanted inputs after the carry. `cotangents_of_ys` follow the carry's.
  std::vector<Tensor> step(const std::vector<Tensor>& state, const std::vector<Tensor>& inputs,
                           const std::vector<Tensor>& cotangents_of_ys) const {
    std::vector<Tensor> cotangents;
    size_t next = 0;
    for (size_t i = 0; i < carried_; ++i) {
      cotangents.push_back(wanted_[consts_ + i] ? state[next++] : Tensor());
    }
    append(cotangents, cotangents_of_ys);
    std::vector<Tensor> gradients = pullback(body_, inputs, cotangents, wanted_);
    std::vector<Tensor> results, others;
    for (size_t i = consts_; i < inputs.size(); ++i) {
      if (wanted_[i]) {
        (i < consts_ + carried_ ? results : others).push_back(or_zero(gradients[i], inputs[i]));
      }
    }
    for (size_t i = 0; i < consts_; ++i) {
      if (!wanted_[i]) continue;
      const Tensor& sum = state[next++];
      results.push_back(gradients[i].defined() ? sum + gradients[i] : sum);
    }
    return joined(std::move(results), others);
  }

  // The gradients of the equation's inputs from the final state and those of the xs.
  std::vector<Tensor> finish(const std::vector<Tensor>& results) const {
    std::vector<Tensor> gradients(args_.inputs.size());
    size_t next = 0;
    auto take = [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        if (wanted_[i]) gradients[i] = results.at(next++);
      }
    };
    take(consts_, consts_ + carried_);
    take(0, consts_);
    take(consts_ + carried_, gradients.size());
    return gradients;
  }

 private:
  const VjpArgs& args_;
  const Program& body_;
  size_t consts_, carried_;
  std::vector<bool> wanted_;
};

}  // namespace

std::vector<Tensor> part(const std::vector<Tensor>& list, size_t begin, size_t count) {
  auto first = list.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

void append(std::vector<Tensor>& list, const std::vector<Tensor>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

std::vector<Tensor> joined(std::vector<Tensor> a, const std::vector<Tensor>& b) {
  append(a, b);
  return a;
}

std::vector<Tensor> without_tokens(const std::vector<Tensor>& list) {
  std::vector<Tensor> result;
  for (const Tensor& each : list) {
    if (!is_token(each.type())) result.push_back(each);
  }
  return result;
}

std::vector<Tensor> with_tokens(const std::vector<Tensor>& list, const std::vector<Tensor>& like) {
  std::vector<Tensor> result;
  size_t next = 0;
  for (const Tensor& each : like) {
    result.push_back(is_token(each.type()) ? each : list.at(next++));
  }
  return result;
}

std::vector<bool> with_active_carry(const Program& body, std::vector<bool> wanted, size_t consts,
                                    size_t carried) {
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    std::vector<bool> outputs = active_outputs(body, wanted);
    for (size_t i = 0; i < carried; ++i) {
      if (!outputs[i] || wanted[consts + i]) continue;
      wanted[consts + i] = has_changed = true;
    }
  }
  return wanted;
}

std::vector<Tensor> vjp_cond(const VjpArgs& args) {
  std::vector<Tensor> operands = part(args.inputs, 1, args.inputs.size() - 1);
  std::vector<bool> wanted(args.wanted.begin() + 1, args.wanted.end());
  auto branch = [&](size_t number) {
    return [&, number](const std::vector<Tensor>&) {
      return chosen(pullback(*args.bodies[number], operands, args.cotangents, wanted), operands,
                    wanted);
    };
  };
  std::vector<Tensor> results = internal::flat_cond(args.inputs[0], branch(0), branch(1), {});
  wanted.insert(wanted.begin(), false);
  return spread(results, wanted);
}

std::vector<Tensor> augment_scan(const AugmentArgs& args) {
  ScanForm form(args.attrs);
  auto body = std::make_shared<Program>(*args.bodies[0]);
  for (size_t i = 0; i < form.carried; ++i) {
    const Var& before = body->inputs[form.consts + i];
    if (!is_token(before->type)) body->outputs.push_back({before, {}});
  }
  return apply_primitive("scan", args.inputs, args.attrs, Where::here(), {body});
}

std::vector<Tensor> vjp_scan(const VjpArgs& args) {
  ScanForm form(args.attrs);
  const Program& body = *args.bodies[0];
  Backward backward(args, body, form.consts, form.carried);
  std::vector<Tensor> consts = part(args.inputs, 0, form.consts);
  std::vector<Tensor> carry = part(args.inputs, form.consts, form.carried);
  size_t x_count = args.inputs.size() - form.consts - form.carried;
  size_t y_count = args.outputs.size() - form.carried;
  std::vector<Tensor> init = backward.init();

  // Step by step: the carry before it, the slices of xs, the cotangents of its ys.
  std::vector<Tensor> stacked = args.residuals;
  append(stacked, part(args.inputs, form.consts + form.carried, x_count));
  std::vector<bool> has_cotangent;
  for (size_t i = 0; i < y_count; ++i) {
    const Tensor& cotangent = args.cotangents[form.carried + i];
    has_cotangent.push_back(cotangent.defined());
    if (cotangent.defined()) stacked.push_back(cotangent);
  }
  auto step = [&](const std::vector<Tensor>& leaves) {
    std::vector<Tensor> state = part(leaves, 0, init.size());
    size_t kept = args.residuals.size(), first_y = init.size() + kept + x_count;
    std::vector<Tensor> before = with_tokens(part(leaves, init.size(), kept), carry);
    std::vector<Tensor> inputs =
        joined(joined(consts, before), part(leaves, init.size() + kept, x_count));
    std::vector<Tensor> of_ys =
        spread(part(leaves, first_y, leaves.size() - first_y), has_cotangent);
    return backward.step(state, inputs, of_ys);
  };
  return backward.finish(
      internal::flat_scan(step, init, stacked, {form.length, !form.is_reverse}, Where::here()));
}

namespace {

// What is kept of a while's run beside its carry.
struct Record {
  Tensor count;                // steps so far, i32
  Tensor stride;               // every so manyth step is kept, i32
  Tensor steps;                // i32[kPlaces]: which step each place holds, -1 for none
  std::vector<Tensor> places;  // one per part of the carry: [kPlaces, ...]

  static Record of(const std::vector<Tensor>& list) {
    return {list[0], list[1], list[2], part(list, 3, list.size() - 3)};
  }
  std::vector<Tensor> list() const { return joined({count, stride, steps}, places); }
};

Tensor numbers() { return ops::arange(0, kPlaces, 1, DType::kI32); }

// The largest of the numbers where `mask` holds, else -1.
Tensor largest(const Tensor& mask, const Tensor& of) {
  return ops::reduce_max(ops::select(mask, of, Tensor::scalar(-1, DType::kI32)));
}

// With the carry before step number `count` kept if it is due.
Record kept(const Record& old, const std::vector<Tensor>& carry) {
  Tensor is_due = ops::equal(ops::floor_mod(old.count, old.stride), 0);
  auto is_free = [&](const Tensor& stride) {
    return ops::logical_or(ops::less(old.steps, 0),
                           ops::not_equal(ops::floor_mod(old.steps, stride), 0));
  };
  Tensor has_none = ops::less(largest(is_free(old.stride), numbers()), 0);
  Record record = old;
  record.stride = ops::select(ops::logical_and(is_due, has_none), old.stride * 2, old.stride);
  Tensor place = largest(is_free(record.stride), numbers());
  Tensor is_written = ops::logical_and(ops::equal(numbers(), place), is_due);
  record.count = old.count + 1;
  record.steps = ops::select(is_written, old.count, old.steps);
  for (size_t i = 0; i < carry.size(); ++i) {
    Shape rows(carry[i].shape().size() + 1, 1);
    rows[0] = kPlaces;
    record.places[i] = ops::select(ops::reshape(is_written, rows), carry[i], old.places[i]);
  }
  return record;
}

}  // namespace

std::vector<Tensor> augment_while(const AugmentArgs& args) {
  auto const_count = static_cast<size_t>(int_attr(args.attrs, "consts"));
  size_t carried = args.inputs.size() - const_count;
  std::vector<Tensor> consts = part(args.inputs, 0, const_count);
  std::vector<Tensor> carry = part(args.inputs, const_count, carried);
  Record start{Tensor::scalar(0, DType::kI32),
               Tensor::scalar(1, DType::kI32),
               Tensor::full({kPlaces}, -1, DType::kI32),
               {}};
  for (const Tensor& each : without_tokens(carry)) {
    Shape shape = each.shape();
    shape.insert(shape.begin(), kPlaces);
    start.places.push_back(Tensor::zeros(shape, each.dtype()));
  }
  auto condition = [&](const std::vector<Tensor>& state) {
    return eval(*args.bodies[0], joined(consts, part(state, 0, carried)));
  };
  auto body = [&](const std::vector<Tensor>& state) {
    std::vector<Tensor> before = part(state, 0, carried);
    Record record = Record::of(part(state, carried, state.size() - carried));
    return joined(eval(*args.bodies[1], joined(consts, before)),
                  kept(record, without_tokens(before)).list());
  };
  return internal::flat_while(condition, body, joined(carry, start.list()), Where::here());
}

std::vector<Tensor> vjp_while(const VjpArgs& args) {
  auto const_count = static_cast<size_t>(int_attr(args.attrs, "consts"));
  size_t carried = args.inputs.size() - const_count;
  const Program& body = *args.bodies[1];
  Backward backward(args, body, const_count, carried);
  std::vector<Tensor> consts = part(args.inputs, 0, const_count);
  std::vector<Tensor> carry = part(args.inputs, const_count, carried);
  Record record = Record::of(args.residuals);

  auto is_left = [](const std::vector<Tensor>& state) {
    return std::vector<Tensor>{ops::greater_equal(state[0], 0)};
  };
  // The carry before step `number`: from the last one kept before it, forward again.
  auto carry_before = [&](const Tensor& number) {
    Tensor from = largest(ops::less_equal(record.steps, number), record.steps);
    Tensor place = largest(ops::equal(record.steps, from), numbers());
    std::vector<Tensor> start{from};
    for (const Tensor& stack : record.places) start.push_back(ops::gather(stack, place));
    auto is_before = [&](const std::vector<Tensor>& state) {
      return std::vector<Tensor>{ops::less(state[0], number)};
    };
    auto forward = [&](const std::vector<Tensor>& state) {
      std::vector<Tensor> before = with_tokens(part(state, 1, state.size() - 1), carry);
      return joined({state[0] + 1}, without_tokens(eval(body, joined(consts, before))));
    };
    std::vector<Tensor> found = internal::flat_while(is_before, forward, start, Where::here());
    return with_tokens(part(found, 1, found.size() - 1), carry);
  };
  auto step = [&](const std::vector<Tensor>& state) {
    const Tensor& number = state[0];
    return joined({number - 1}, backward.step(part(state, 1, state.size() - 1),
                                              joined(consts, carry_before(number)), {}));
  };
  std::vector<Tensor> results = internal::flat_while(
      is_left, step, joined({record.count - 1}, backward.init()), Where::here());
  return backward.finish(part(results, 1, results.size() - 1));
}

}  // namespace ballast
