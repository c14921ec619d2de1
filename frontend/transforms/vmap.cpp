#include "frontend/transforms/vmap.h"

#include "frontend/ops/ops.h"
#include "frontend/program/primitive.h"
#include "frontend/program/token.h"
#include "frontend/transforms/drawn.h"
#include "frontend/transforms/vmap_rules.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace ballast {

namespace {

// Runs a program on many examples.
class Mapping {
 public:
  Mapping(const Program& program, int64_t size) : program_(program), size_(size) {}

  Mapped run(const std::vector<Tensor>& inputs, const std::vector<bool>& is_mapped) {
    values_.enter(program_, inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (is_mapped[i]) mapped_.insert(program_.inputs[i].get());
    }
    for (const auto& state : program_.states) {
      if (draws(state)) sequences_[state.var.get()] = values_.get(Atom{state.var, {}});
    }
    for (const Equation& equation : program_.equations) run(equation);
    Mapped results;
    for (const Atom& atom : program_.outputs) {
      results.outputs.push_back(values_.get(atom));
      results.is_mapped.push_back(is_mapped_atom(atom));
    }
    for (const auto& effect : program_.effects) assign(effect);
    return results;
  }

 private:
  bool is_mapped_atom(const Atom& atom) const {
    return atom.var && mapped_.count(atom.var.get()) > 0;
  }

  void run(const Equation& equation) {
    CallScope scope(equation.where, /*is_override=*/true);
    const auto sequences = share_out(equation);
    // The rule would make a state per example, which nobody asked for.
    if (sequences.empty() || equation.primitive != "random_advance") run_shared_out(equation);
    for (const auto& [var, state] : sequences) {
      sequences_[var.get()] = state;
      set(var, state, false);
    }
  }

  void run_shared_out(const Equation& equation) {
    std::vector<bool> is_mapped;
    for (const Atom& atom : equation.inputs) is_mapped.push_back(is_mapped_atom(atom));
    if (std::count(is_mapped.begin(), is_mapped.end(), true) == 0) {
      values_.run(equation);
      return;
    }
    const std::vector<Tensor> inputs = values_.get(equation.inputs);
    const Primitive* primitive = find_primitive(equation.primitive);
    if (primitive && primitive->is_identity && !primitive->vmap) {
      // Applied and not only passed on: an outer transform must still see a stop_gradient.
      const Tensor same =
          apply_primitive(equation.primitive, inputs, equation.attrs, equation.where)[0];
      set(equation.outputs[0], same, is_mapped[0]);
      return;
    }
    std::vector<TensorType> types;
    for (const Var& var : equation.outputs) types.push_back(var->type);
    const VmapArgs args{equation.primitive, equation.attrs, inputs, is_mapped, types, size_,
                        equation.bodies};
    const std::vector<Tensor> outputs =
        primitive && primitive->vmap ? primitive->vmap(args) : vmap_rules::unroll(args);
    for (size_t i = 0; i < outputs.size(); ++i) set(equation.outputs[i], outputs[i], true);
  }

  void set(const Var& var, const Tensor& value, bool is_mapped) {
    values_.set(var, value);
    mapped_.erase(var.get());
    if (is_mapped && !is_token(var->type)) mapped_.insert(var.get());
  }

  // Whether the program draws from the generator that this parameter is the state of.
  bool draws(const Program::State& state) const {
    for (const auto& effect : program_.effects) {
      if (!(effect.parameter == state.parameter)) continue;
      const auto blocks = advances_of(program_, state.var.get());
      const auto found = blocks.find(effect.value.var.get());
      if (found == blocks.end() || found->second == 0) return false;
      if (found->second != kUnknownBlocks) return true;
      fail(BALLAST_UNIMPLEMENTED,
           "[vmap] a while_loop or checkpoint draws from {}: which part of it is an example's is "
           "not known",
           state.parameter.name());
    }
    return false;
  }

  // A generator's state is advanced by what all examples draw; where one example draws `blocks`
  // from it each gets its own part of that. Returns what the equation makes of generators' states.
  std::vector<std::pair<Var, Tensor>> share_out(const Equation& equation) {
    std::vector<std::pair<Var, Tensor>> next;
    for (const Atom& atom : equation.inputs) {
      const auto sequence = sequences_.find(atom.var.get());
      if (sequence == sequences_.end()) continue;
      for (const Advance& advance : advances_of(equation, atom.var.get())) {
        if (advance.blocks == 0) continue;
        const Tensor key = sequence->second;
        const Tensor numbers = ops::arange(0, static_cast<double>(size_), 1, DType::kI64);
        const Tensor part = Tensor::on_host(std::vector<int64_t>{0, advance.blocks}, {1, 2});
        set(atom.var, key + ops::reshape(numbers, {size_, 1}) * part, true);
        next.emplace_back(
            equation.outputs[advance.output],
            ops::call("random_advance", {key}, {{"blocks", advance.blocks * size_}})[0]);
      }
    }
    return next;
  }

  void assign(const Program::Effect& effect) const {
    auto sequence = sequences_.find(effect.value.var.get());
    if (sequence != sequences_.end()) {
      effect.parameter.assign(sequence->second);
      return;
    }
    if (is_mapped_atom(effect.value)) {
      fail(BALLAST_INVALID_ARGUMENT,
           "[vmap] parameter {} is assigned a value that differs by example",
           effect.parameter.name());
    }
    effect.parameter.assign(values_.get(effect.value));
  }

  const Program& program_;
  int64_t size_;
  Environment values_;
  std::unordered_set<const Variable*> mapped_;
  std::unordered_map<const Variable*, Tensor> sequences_;  // states of generators
};

// Which argument a leaf belongs to.
std::vector<size_t> owners(const std::vector<size_t>& leaf_counts) {
  std::vector<size_t> result;
  for (size_t i = 0; i < leaf_counts.size(); ++i) result.insert(result.end(), leaf_counts[i], i);
  return result;
}

int64_t checked_axis(int64_t axis, int64_t rank, const std::string& of_what) {
  const int64_t from_front = axis < 0 ? axis + rank : axis;
  if (from_front < 0 || from_front >= rank) {
    fail(BALLAST_INVALID_ARGUMENT, "[vmap] axis {} is out of range for {}", axis, of_what);
  }
  return from_front;
}

// The examples of every leaf, in front.
struct Examples {
  std::vector<Tensor> leaves;
  std::vector<bool> is_mapped;
  std::vector<TensorType> types;  // of one example
  int64_t size = 0;
};

Examples examples_of(const std::vector<Tensor>& leaves, const std::vector<size_t>& leaf_counts,
                     const MapAxes& in_axes) {
  const std::vector<MapAxes::Axis> axes =
      in_axes.spread("in_axes", leaf_counts.size(), "arguments");
  const std::vector<size_t> owner = owners(leaf_counts);
  Examples examples;
  std::optional<size_t> first;
  for (size_t i = 0; i < leaves.size(); ++i) {
    TensorType type = leaves[i].type();
    const MapAxes::Axis& given = axes[owner[i]];
    examples.is_mapped.push_back(given.has_value());
    examples.leaves.push_back(leaves[i]);
    if (given) {
      const int64_t axis = checked_axis(*given, leaves[i].rank(),
                                        fmt::format("argument {}, {}", owner[i], to_string(type)));
      const int64_t size = type.shape[static_cast<size_t>(axis)];
      if (first && size != examples.size) {
        fail(BALLAST_INVALID_ARGUMENT,
             "[vmap] argument {} is {} with {} examples along axis {}, argument {} has {}",
             owner[i], to_string(type), size, *given, owner[*first], examples.size);
      }
      if (!first) first = i;
      examples.size = size;
      examples.leaves[i] = vmap_rules::move_axis(leaves[i], axis, 0);
      type.shape.erase(type.shape.begin() + axis);
    }
    examples.types.push_back(type);
  }
  if (!first) fail(BALLAST_INVALID_ARGUMENT, "[vmap] no argument has an axis to map over");
  return examples;
}

}  // namespace

std::vector<MapAxes::Axis> MapAxes::spread(const char* name, size_t count,
                                           const char* of_what) const {
  if (is_one_for_all_) return std::vector<Axis>(count, axes_[0]);
  if (axes_.size() != count) {
    fail(BALLAST_INVALID_ARGUMENT, "[vmap] {} {} are given for {} {}", axes_.size(), name, count,
         of_what);
  }
  return axes_;
}

Mapped run_mapped(const Program& program, const std::vector<Tensor>& inputs,
                  const std::vector<bool>& is_mapped, int64_t size) {
  return Mapping(program, size).run(inputs, is_mapped);
}

namespace internal {

std::vector<Tensor> run_vmap(const FlatFunction& fn, const std::vector<Tensor>& leaves,
                             const std::vector<size_t>& leaf_counts, const MapAxes& in_axes,
                             const MapAxes& out_axes) {
  const Examples examples = examples_of(leaves, leaf_counts, in_axes);
  const Program program = eliminate_dead_code(trace(fn, examples.types));
  const auto axes = out_axes.spread("out_axes", program.outputs.size(), "results");
  Mapped results = run_mapped(program, examples.leaves, examples.is_mapped, examples.size);
  for (size_t i = 0; i < axes.size(); ++i) {
    Tensor& output = results.outputs[i];
    const TensorType& own = program.outputs[i].type();
    if (!axes[i]) {
      if (!results.is_mapped[i]) continue;
      fail(BALLAST_INVALID_ARGUMENT,
           "[vmap] result {} differs by example, but its out_axis is none", i);
    }
    Shape shape = own.shape;
    shape.insert(shape.begin(), examples.size);
    const int64_t axis = checked_axis(*axes[i], static_cast<int64_t>(shape.size()),
                                      fmt::format("result {}, examples of {}", i, to_string(own)));
    if (!results.is_mapped[i]) output = ops::broadcast_to(output, shape);
    output = vmap_rules::move_axis(output, 0, axis);
  }
  return results.outputs;
}

}  // namespace internal

}  // namespace ballast
