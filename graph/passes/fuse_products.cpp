#include "device/words.h"
#include "graph/ops/fused.h"
#include "graph/passes.h"
#include "graph/passes/groups.h"
#include "kernels/source/replace_text.h"

#include <algorithm>
#include <optional>

namespace ballast::graph {

namespace {

// The chain of a "fused_matmul" while it is put together; its i0 is the product.
class Chain {
 public:
  // The name that steps give the operand.
  std::string add_input(ValueId id) {
    inputs_.push_back(id);
    return fmt::format("i{}", inputs_.size());
  }

  // Returns the name of the step's result.
  std::string add_step(const std::string& op, const std::vector<std::string>& args, DType dtype) {
    append(fused_step_text(op, args, dtype));
    return fmt::format("s{}", steps_ - 1);
  }

  // All steps of another program, whose input i has the name names[i] here.
  void add_program(const std::string& program, const std::vector<std::string>& names) {
    std::string steps = program;
    kernels::Replacements refs(steps);
    device::for_each_word(program, [&](size_t begin, size_t end) {
      const std::string ref = program.substr(begin, end - begin);
      const bool is_input = device::is_numbered(ref, "i");
      if (!is_input && !device::is_numbered(ref, "s")) return;
      const size_t number = std::stoul(ref.substr(1));
      refs.replace(begin, end, is_input ? names.at(number) : fmt::format("s{}", steps_ + number));
    });
    refs.apply();
    append(steps);
  }

  const std::string& program() const { return program_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }

 private:
  void append(const std::string& steps) {
    program_ += (program_.empty() ? "" : ";") + steps;
    steps_ = std::count(program_.begin(), program_.end(), ';') + 1;
  }

  std::string program_;
  std::vector<ValueId> inputs_;
  size_t steps_ = 0;
};

class Fuser {
 public:
  explicit Fuser(const Graph& graph)
      : graph_(graph), uses_(graph.use_counts()), producers_(graph.producers()) {}

  Graph run() {
    return fuse_pairs(
        graph_, [&](const Node& node) { return product_for(node); },
        [&](const Node& before, const Node& node, Rewrite& rewrite) {
          add_fused(before, node, rewrite);
        });
  }

 private:
  const TensorType& type_of(ValueId id) const { return graph_.value(id).type; }

  // The matmul, of this node's shape, that nothing else reads.
  std::optional<size_t> product_for(const Node& node) const {
    if (!is_pointwise_step(node) || node.outputs.size() != 1) return std::nullopt;
    const TensorType& type = type_of(node.outputs[0]);
    if (type.dtype != DType::kF32 || type.shape.size() < 2) return std::nullopt;
    if (!are_fusable(node.inputs.begin(), node.inputs.end(), type.shape)) return std::nullopt;
    for (ValueId id : node.inputs) {
      const size_t producer = producers_[id];
      if (producer == graph_.nodes().size() || type_of(id) != type) continue;
      const Node& matmul = graph_.nodes()[producer];
      const auto reads = std::count(node.inputs.begin(), node.inputs.end(), id);
      const bool is_alone = static_cast<uint32_t>(reads) == uses_[id];
      if (is_alone && matmul.op->name == "matmul" &&
          are_fusable(matmul.inputs.begin() + 2, matmul.inputs.end(), type.shape)) {
        return producer;
      }
    }
    return std::nullopt;
  }

  using Ids = std::vector<ValueId>::const_iterator;
  bool are_fusable(Ids begin, Ids end, const Shape& c) const {
    return std::all_of(begin, end, [&](ValueId id) {
      const Shape& shape = type_of(id).shape;
      return shape.size() <= c.size() && kernels::is_fusable_beside_product(shape, c);
    });
  }

  // The matmul's own epilogue as steps; returns the name of their result.
  std::string add_epilogue(const Node& matmul, Chain& chain) const {
    std::string value = "i0";
    size_t next = 2;
    const auto add = [&](const std::string& op, bool has_operand) {
      std::vector<std::string> args = {value};
      if (has_operand) args.push_back(chain.add_input(matmul.inputs[next++]));
      value = chain.add_step(op, args, DType::kF32);
    };
    const std::string& activation = string_attr(matmul.attrs, "activation");
    if (int_attr(matmul.attrs, "has_bias") != 0) add("add", true);
    if (activation != "none") add(activation, activation == "relu_grad");
    if (int_attr(matmul.attrs, "has_residual") != 0) add("add", true);
    return value;
  }

  void add_fused(const Node& matmul, const Node& node, Rewrite& rewrite) const {
    Chain chain;
    const std::string value = add_epilogue(matmul, chain);
    std::vector<std::string> names;
    for (ValueId id : node.inputs) {
      names.push_back(id == matmul.outputs[0] ? value : chain.add_input(id));
    }
    if (node.op->name == "fused") {
      chain.add_program(string_attr(node.attrs, "program"), names);
    } else {
      chain.add_step(node.op->name, names, type_of(node.outputs[0]).dtype);
    }
    std::vector<ValueId> inputs(matmul.inputs.begin(), matmul.inputs.begin() + 2);
    inputs.insert(inputs.end(), chain.inputs().begin(), chain.inputs().end());
    const Attrs attrs = {{"transpose_a", int_attr(matmul.attrs, "transpose_a")},
                         {"transpose_b", int_attr(matmul.attrs, "transpose_b")},
                         {"program", chain.program()}};
    const std::string& where = node.where.empty() ? matmul.where : node.where;
    const auto& results =
        rewrite.graph().add_node("fused_matmul", attrs, rewrite.map(inputs), where);
    rewrite.replace(node.outputs[0], results[0]);
  }

  const Graph& graph_;
  std::vector<uint32_t> uses_;
  std::vector<size_t> producers_;
};

}  // namespace

Graph fuse_products(const Graph& graph) { return Fuser(graph).run(); }

}  // namespace ballast::graph
