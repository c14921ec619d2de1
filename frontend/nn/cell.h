// Cell: a layer with named parameters and sub-cells, as MindSpore's nn.Cell. A Cell is a handle:
// copies share parameters, children and the training flag, so members can be added by value in a
// constructor:
//   struct Net : nn::Cell {
//     nn::Dense fc{10, 1};
//     Net() { add("fc", fc); }
//     Tensor construct(const Tensor& x) override { return fc(x); }
//   };
// A cell overrides the construct with as many inputs as it takes. Calls are thread-safe where it
// is; what changes a cell, as add() and set_train(), is for one thread while no other uses it.
#pragma once

#include "frontend/modes/jit.h"
#include "frontend/tensor/operand.h"

#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace ballast::nn {

class Cell {
 public:
  Cell();
  virtual ~Cell() = default;

  // Unless overridden: an error that says how many inputs were given.
  virtual Tensor construct(const Tensor& x);
  virtual Tensor construct(const Tensor& x, const Tensor& y);
  virtual Tensor construct(const Tensor& x, const Tensor& y, const Tensor& z);
  virtual Tensor construct(const Tensor& x, const Tensor& y, const Tensor& z, const Tensor& w);

  // In GRAPH_MODE the outermost call is compiled. Errors of ops name the caller's line.
  Tensor operator()(const Operand& x) { return call({x}); }
  Tensor operator()(const Operand& x, const Operand& y) { return call({x, y}); }
  Tensor operator()(const Operand& x, const Operand& y, const Operand& z) {
    return call({x, y, z});
  }
  Tensor operator()(const Operand& x, const Operand& y, const Operand& z, const Operand& w) {
    return call({x, y, z, w});
  }

  Tensor call(const std::vector<Operand>& inputs);  // the same for a list
  // All that the cell returns; call() gives the first.
  std::vector<Tensor> call_all(const std::vector<Operand>& inputs);

  // With their full names ("0.weight"), in order of registration; each once.
  std::vector<Parameter> parameters() const;
  std::vector<Parameter> trainable_params() const;
  std::vector<Parameter> untrainable_params() const;
  std::map<std::string, Parameter> parameters_dict() const;  // names given twice are an error
  int64_t parameter_count() const;                           // elements
  // A table of the parameters: name, type, elements, whether they are trained; and sums.
  std::string summary() const;

  Cell& set_train(bool is_training = true);  // reaches all sub-cells
  bool is_training() const;

  // Of calls compiled in GRAPH_MODE: how many, and why the last was (JitCache::retrace_reason).
  size_t compile_count() const;
  std::string retrace_reason() const;

 protected:
  // What a call runs; a cell with several results overrides it. Unless overridden: construct.
  virtual std::vector<Tensor> construct_all(const std::vector<Tensor>& inputs);

  // Registration. Names of what lies in a sub-cell are prefixed with the sub-cell's; a cell added
  // in two places keeps its first names.
  Parameter add(const std::string& name, const Tensor& value, bool requires_grad = true);
  void add(const std::string& name, const Parameter& parameter);
  void add(const std::string& name, const Cell& child);
  void add(const Cell& child);  // without a prefix: a wrapper's cell keeps its names

 private:
  struct State;

  std::shared_ptr<State> state_;
};

}  // namespace ballast::nn

namespace ballast {

// A jitted cell is compiled whatever the mode; errors of its ops name the line of jit.
template <class C>
struct JitForm<C, std::enable_if_t<std::is_base_of_v<nn::Cell, C>>> {
  static auto of(C cell, const Where& where) {
    return [cell = std::move(cell), where](const auto&... inputs) mutable {
      return cell(located(inputs, where)...);
    };
  }

 private:
  static Operand located(const Tensor& tensor, const Where& where) { return {tensor, where}; }
  template <class Tree>
  static const Tree& located(const Tree& tree, const Where&) {
    return tree;
  }
};

}  // namespace ballast
