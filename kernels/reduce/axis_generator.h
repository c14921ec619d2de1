// What the generators of ops along one axis share: their parameters and the layout of their
// operands. See axis_recipe.h.
#pragma once

#include "kernels/layout.h"
#include "kernels/reduce/axis_recipe.h"

#include <vector>

namespace ballast::kernels {

template <class Derived>
class AxisGenerator : public Halide::Generator<Derived> {
 public:
  Halide::GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Halide::GeneratorParam<std::string> layout{"layout", "rows"};

 protected:
  using In = Halide::GeneratorInput<Halide::Buffer<>>;
  using Out = Halide::GeneratorOutput<Halide::Buffer<>>;

  bool is_gpu() const { return device_class.value() == "gpu"; }
  bool is_rows() const { return layout.value() != "columns"; }
  bool is_short() const { return layout.value() == "short_rows"; }
  // Of a Func with several values; Halide makes the others' follow.
  static void set_first_mins(Halide::Func func) {
    Halide::OutputImageParam first = func.output_buffers()[0];
    set_mins(first);
  }
  // Tensors along the axis, and those with one value by line. Called by configure().
  void set_tensors(const std::vector<In*>& inputs, const std::vector<Out*>& outputs) {
    for (In* input : inputs) input->set_dimensions(is_rows() ? 2 : 3);
    for (Out* output : outputs) output->set_dimensions(is_rows() ? 2 : 3);
    inputs_ = inputs;
    outputs_ = outputs;
  }
  void set_per_line(const std::vector<In*>& inputs, const std::vector<Out*>& outputs) {
    for (In* input : inputs) input->set_dimensions(is_rows() ? 1 : 2);
    for (Out* output : outputs) output->set_dimensions(is_rows() ? 1 : 2);
    line_inputs_ = inputs;
    line_outputs_ = outputs;
  }
  In* add_line_input(const std::string& name) {
    line_inputs_.push_back(
        this->template add_input<Halide::Buffer<>>(name, Halide::Float(32), is_rows() ? 1 : 2));
    return line_inputs_.back();
  }
  AxisNest make_nest() {
    AxisNest nest(layout, is_gpu());
    nest.length = inputs_.at(0)->dim(is_rows() ? 0 : 1).extent();
    return nest;
  }
  // `out`: a tensor or per line.
  AxisSchedule make_schedule(const AxisNest& nest, Halide::Func out,
                             const Halide::Expr& rows_per_group) {
    for (In* input : inputs_) set_mins(*input);
    for (Out* output : outputs_) set_mins(*output);
    for (In* input : line_inputs_) set_mins(*input);
    for (Out* output : line_outputs_) set_mins(*output);
    if (is_rows()) return AxisSchedule(nest, out, rows_per_group);
    Halide::Expr is_dense = Halide::Internal::const_true();
    const auto free_stride = [&](auto& tensor) {
      tensor.dim(0).set_stride(Halide::Expr());
      is_dense = is_dense && tensor.dim(0).stride() == 1;
    };
    for (In* input : inputs_) free_stride(*input);
    for (Out* output : outputs_) free_stride(*output);
    return AxisSchedule(nest, out, inputs_.at(0)->dim(0).extent(), is_dense);
  }

 private:
  std::vector<In*> inputs_, line_inputs_;
  std::vector<Out*> outputs_, line_outputs_;
};

}  // namespace ballast::kernels
