// Tangents through control flow: the same control flow over bodies that carry tangents along.
#include "frontend/control_flow/control_flow.h"
#include "frontend/control_flow/control_flow_rules.h"
#include "frontend/transforms/jvp.h"
#include "frontend/transforms/vjp_rules.h"

namespace ballast {

namespace {

std::vector<bool> defined(const std::vector<Tensor>& tensors) {
  std::vector<bool> result;
  for (const Tensor& tensor : tensors) result.push_back(tensor.defined());
  return result;
}

// A loop's body with tangents: of what it is given, and of every output of a float type.
class Tangents {
 public:
  Tangents(const JvpArgs& args, const Program& body, size_t consts, size_t carried)
      : args_(args),
        consts_(consts),
        carried_(carried),
        active_(with_active_carry(body, defined(args.tangents), consts, carried)),
        outputs_(output_types(body)) {
    std::vector<size_t> numbers;
    for (size_t i = 0; i < active_.size(); ++i) {
      if (active_[i]) numbers.push_back(i);
    }
    program_ = forward(body, numbers);
  }

  // The tangents of inputs [begin, end) that take part.
  std::vector<Tensor> of_inputs(size_t begin, size_t end) const {
    std::vector<Tensor> result;
    for (size_t i = begin; i < end; ++i) {
      if (active_[i]) result.push_back(vjp_rules::or_zero(args_.tangents[i], args_.inputs[i]));
    }
    return result;
  }
  size_t carried_tangents() const {
    size_t count = 0;
    for (size_t i = 0; i < carried_; ++i) count += active_[consts_ + i];
    return count;
  }

  // The new carry, its tangents, then the tangents of the ys.
  std::vector<Tensor> step(const std::vector<Tensor>& carry, const std::vector<Tensor>& of_carry,
                           const std::vector<Tensor>& xs, const std::vector<Tensor>& of_xs) const {
    std::vector<Tensor> inputs = joined(part(args_.inputs, 0, consts_), joined(carry, xs));
    append(inputs, of_inputs(0, consts_));
    append(inputs, joined(of_carry, of_xs));
    std::vector<Tensor> results = eval(program_, inputs);
    std::vector<Tensor> outputs = part(results, 0, carried_);
    size_t next = outputs_.size();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!is_float(outputs_[i].dtype)) continue;
      const Tensor& tangent = results[next++];
      if (i >= carried_ || active_[consts_ + i]) outputs.push_back(tangent);
    }
    return outputs;
  }

  // The tangents of the equation's outputs from the loop's results.
  std::vector<Tensor> of_outputs(const std::vector<Tensor>& results) const {
    std::vector<Tensor> tangents(outputs_.size());
    size_t next = carried_;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (i < carried_ ? active_[consts_ + i] : is_float(outputs_[i].dtype)) {
        tangents[i] = results.at(next++);
      }
    }
    return tangents;
  }

 private:
  const JvpArgs& args_;
  size_t consts_, carried_;
  std::vector<bool> active_;  // by input
  std::vector<TensorType> outputs_;
  Program program_;
};

}  // namespace

std::vector<Tensor> jvp_cond(const JvpArgs& args) {
  std::vector<Tensor> operands = part(args.inputs, 1, args.inputs.size() - 1);
  std::vector<size_t> numbers;
  for (size_t i = 1; i < args.inputs.size(); ++i) {
    if (!args.tangents[i].defined()) continue;
    numbers.push_back(i - 1);
    operands.push_back(args.tangents[i]);
  }
  auto branch = [&](size_t number) {
    return [program = forward(*args.bodies[number], numbers),
            count = args.outputs.size()](const std::vector<Tensor>& leaves) {
      std::vector<Tensor> results = eval(program, leaves);
      return part(results, count, results.size() - count);
    };
  };
  std::vector<Tensor> results = internal::flat_cond(args.inputs[0], branch(0), branch(1), operands);
  std::vector<Tensor> tangents(args.outputs.size());
  size_t next = 0;
  for (size_t i = 0; i < tangents.size(); ++i) {
    if (is_float(args.outputs[i].dtype())) tangents[i] = results.at(next++);
  }
  return tangents;
}

std::vector<Tensor> jvp_scan(const JvpArgs& args) {
  ScanForm form(args.attrs);
  Tangents tangents(args, *args.bodies[0], form.consts, form.carried);
  const size_t first_x = form.consts + form.carried, x_count = args.inputs.size() - first_x;
  const size_t active = tangents.carried_tangents();
  std::vector<Tensor> init = joined(part(args.inputs, form.consts, form.carried),
                                    tangents.of_inputs(form.consts, first_x));
  std::vector<Tensor> xs =
      joined(part(args.inputs, first_x, x_count), tangents.of_inputs(first_x, args.inputs.size()));
  auto step = [&](const std::vector<Tensor>& leaves) {
    const size_t of_xs = init.size() + x_count;
    return tangents.step(part(leaves, 0, form.carried), part(leaves, form.carried, active),
                         part(leaves, init.size(), x_count),
                         part(leaves, of_xs, leaves.size() - of_xs));
  };
  return tangents.of_outputs(
      internal::flat_scan(step, init, xs, {form.length, form.is_reverse}, Where::here()));
}

std::vector<Tensor> jvp_while(const JvpArgs& args) {
  const auto consts = static_cast<size_t>(int_attr(args.attrs, "consts"));
  const size_t carried = args.inputs.size() - consts;
  Tangents tangents(args, *args.bodies[1], consts, carried);
  auto condition = [&](const std::vector<Tensor>& leaves) {
    return eval(*args.bodies[0], joined(part(args.inputs, 0, consts), part(leaves, 0, carried)));
  };
  auto step = [&](const std::vector<Tensor>& leaves) {
    return tangents.step(part(leaves, 0, carried), part(leaves, carried, leaves.size() - carried),
                         {}, {});
  };
  std::vector<Tensor> init =
      joined(part(args.inputs, consts, carried), tangents.of_inputs(consts, args.inputs.size()));
  return tangents.of_outputs(internal::flat_while(condition, step, init, Where::here()));
}

}  // namespace ballast
