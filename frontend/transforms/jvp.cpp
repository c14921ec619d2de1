#include "frontend/transforms/jvp.h"

#include "frontend/ops/ops.h"
#include "frontend/program/primitive.h"

namespace ballast {

namespace {

Tensor zeros_like(const Tensor& tensor) { return Tensor::zeros(tensor.shape(), tensor.dtype()); }

// J t from the rule for J'u: with L(u) = J'u recorded as a program, J t is L's pullback of t. L is
// linear, so what it is transposed at does not matter, and what depends on it is dead code.
std::vector<Tensor> transpose(VjpRule vjp, const JvpArgs& args) {
  std::vector<size_t> numbers;  // of float outputs
  std::vector<TensorType> types;
  std::vector<Tensor> zeros;
  for (size_t i = 0; i < args.outputs.size(); ++i) {
    if (!is_float(args.outputs[i].dtype())) continue;
    numbers.push_back(i);
    types.push_back(args.outputs[i].type());
    zeros.push_back(zeros_like(args.outputs[i]));
  }
  std::vector<Tensor> reached;  // the tangents that L's outputs meet
  std::vector<bool> wanted;
  for (const Tensor& tangent : args.tangents) wanted.push_back(tangent.defined());
  const Program transposed = trace(
      [&](const std::vector<Tensor>& u) {
        std::vector<Tensor> cotangents(args.outputs.size()), results;
        for (size_t i = 0; i < u.size(); ++i) cotangents[numbers[i]] = u[i];
        const std::vector<Tensor> gradients =
            vjp({args.attrs, args.inputs, args.outputs, cotangents, args.bodies, wanted, {}});
        for (size_t i = 0; i < gradients.size(); ++i) {
          if (!gradients[i].defined() || !args.tangents[i].defined()) continue;
          results.push_back(ops::cast(gradients[i], args.tangents[i].dtype()));
          reached.push_back(args.tangents[i]);
        }
        return results;
      },
      types);
  const std::vector<Tensor> found =
      pullback(transposed, zeros, reached, std::vector<bool>(types.size(), true));
  std::vector<Tensor> tangents(args.outputs.size());
  for (size_t i = 0; i < found.size(); ++i) tangents[numbers[i]] = found[i];
  return tangents;
}

class Forward {
 public:
  void set(const Var& var, const Tensor& tangent) { tangents_[var.get()] = tangent; }

  Tensor get(const Atom& atom) const {
    auto found = tangents_.find(atom.var.get());
    return found == tangents_.end() ? Tensor() : found->second;
  }

  // Runs an equation and what its outputs' tangents follow from.
  void run(const Equation& equation, Environment& values) {
    CallScope scope(equation.where, /*is_override=*/true);
    values.run(equation);
    std::vector<Tensor> incoming;
    bool is_reached = false;
    for (const Atom& atom : equation.inputs) {
      incoming.push_back(get(atom));
      is_reached = is_reached || incoming.back().defined();
    }
    if (!is_reached) return;
    const Primitive* primitive = find_primitive(equation.primitive);
    const bool has_transpose = primitive && primitive->vjp && !primitive->augment;
    if (!has_transpose && !(primitive && primitive->jvp)) {
      fail(BALLAST_UNIMPLEMENTED, "[{}] the op has no derivative (at {})", equation.primitive,
           to_string(equation.where));
    }
    const std::vector<Tensor> inputs = values.get(equation.inputs);
    std::vector<Tensor> outputs;
    for (const Var& var : equation.outputs) outputs.push_back(values.get(Atom{var, {}}));
    const JvpArgs args{equation.primitive, equation.attrs, inputs, outputs,
                       incoming,           equation.bodies};
    const std::vector<Tensor> tangents =
        primitive->jvp ? primitive->jvp(args) : transpose(primitive->vjp, args);
    for (size_t i = 0; i < tangents.size(); ++i) {
      const DType dtype = outputs[i].dtype();
      if (tangents[i].defined() && is_float(dtype)) {
        set(equation.outputs[i], ops::cast(tangents[i], dtype));
      }
    }
  }

 private:
  std::unordered_map<const Variable*, Tensor> tangents_;
};

}  // namespace

Program forward(const Program& program, const std::vector<size_t>& inputs) {
  std::vector<TensorType> types = input_types(program);
  for (size_t number : inputs) types.push_back(program.inputs.at(number)->type);
  auto extended = [&](const std::vector<Tensor>& arguments) {
    Environment values;
    values.enter(program, arguments);
    Forward tangents;
    for (size_t i = 0; i < inputs.size(); ++i) {
      tangents.set(program.inputs[inputs[i]], arguments[program.inputs.size() + i]);
    }
    for (const Equation& equation : program.equations) tangents.run(equation, values);
    std::vector<Tensor> outputs = values.get(program.outputs);
    for (const Atom& atom : program.outputs) {
      if (!is_float(atom.type().dtype)) continue;
      Tensor tangent = tangents.get(atom);
      outputs.push_back(tangent.defined() ? tangent : zeros_like(values.get(atom)));
    }
    values.assign_effects(program);
    return outputs;
  };
  return eliminate_dead_code(trace(extended, types));
}

namespace internal {

std::vector<Tensor> run_jvp(const FlatFunction& fn, const std::vector<Tensor>& primals,
                            const std::vector<Tensor>& tangents) {
  if (tangents.size() != primals.size()) {
    fail(BALLAST_INVALID_ARGUMENT, "[jvp] {} tangents are given for {} primals", tangents.size(),
         primals.size());
  }
  std::vector<size_t> inputs;
  std::vector<Tensor> arguments = primals;
  for (size_t i = 0; i < tangents.size(); ++i) {
    if (!tangents[i].defined()) continue;
    const TensorType& type = primals[i].type();
    if (!is_float(type.dtype)) {
      fail(BALLAST_INVALID_ARGUMENT,
           "[jvp] primal {} is {}: its tangent is an undefined tensor, {} is given", i,
           to_string(type), to_string(tangents[i].type()));
    }
    if (tangents[i].type() != type) {
      fail(BALLAST_INVALID_ARGUMENT, "[jvp] tangent {} is {}, its primal {}", i,
           to_string(tangents[i].type()), to_string(type));
    }
    inputs.push_back(i);
    arguments.push_back(tangents[i]);
  }
  const Program program = trace(fn, types_of(primals));
  std::vector<Tensor> results = eval(forward(program, inputs), arguments);
  auto next = results.begin() + static_cast<std::ptrdiff_t>(program.outputs.size());
  std::vector<Tensor> all(results.begin(), next);
  for (const Atom& output : program.outputs) {
    all.push_back(is_float(output.type().dtype) ? *next++ : Tensor());
  }
  return all;
}

}  // namespace internal

}  // namespace ballast
