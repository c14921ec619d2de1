// What the generators of ops along one axis share: their parameters and the layout of their
// operands. See axis_recipe.h.
#pragma once

#include "kernels/recipe/layout.h"
#include "kernels/reduce/axis_recipe.h"
#include "kernels/reduce/narrow_rows.h"
#include "kernels/reduce/prefetch.h"

#include <list>
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
  bool is_narrow() const { return layout.value() == "narrow_rows"; }
  bool is_rows() const { return layout.value() != "columns" && !is_narrow(); }
  bool is_short() const { return layout.value() == "short_rows"; }
  // Of a Func with several values; Halide makes the others' follow.
  static void set_first_mins(Halide::Func func) {
    Halide::OutputImageParam first = func.output_buffers()[0];
    set_mins(first);
  }
  // Tensors along the axis, and those with one value by line. Called by configure().
  void set_tensors(const std::vector<In*>& inputs, const std::vector<Out*>& outputs) {
    const int dimensions = is_narrow() ? 1 : is_rows() ? 2 : 3;
    for (In* input : inputs) input->set_dimensions(dimensions);
    for (Out* output : outputs) output->set_dimensions(dimensions);
    if (is_narrow()) row_length_ = this->template add_input<int>("row_length");
    inputs_ = inputs;
    outputs_ = outputs;
  }
  void set_per_line(const std::vector<In*>& inputs, const std::vector<Out*>& outputs) {
    const int dimensions = is_narrow() || is_rows() ? 1 : 2;
    for (In* input : inputs) input->set_dimensions(dimensions);
    for (Out* output : outputs) output->set_dimensions(dimensions);
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
    nest.length =
        is_narrow() ? Halide::Expr(*row_length_) : inputs_.at(0)->dim(is_rows() ? 0 : 1).extent();
    return nest;
  }
  // A tensor along the axis, and one by line, at the coordinates of the nest.
  Halide::Func read(In& tensor, const AxisNest& nest) {
    if (!is_narrow()) return tensor;
    const Halide::Var first = nest.o;
    narrow_.emplace_back("narrow", nest.length, first,
                         [&](const Halide::Expr& row, const Halide::Expr& column) {
                           return tensor((first + row) * nest.length + column);
                         });
    Halide::Func turned("rows_read");
    turned(nest.at_vars()) = narrow_.back().at(nest.i, nest.r, first);
    return turned;
  }
  Halide::Func read_line(In& per_line, const AxisNest& nest) {
    if (!is_narrow()) return per_line;
    Halide::Func turned("lines_read");
    turned(nest.place_vars()) = per_line(nest.o + nest.i);
    return turned;
  }
  // `value`, which asks for the next row of a tensor where rows are not narrow.
  Halide::Expr with_next(In& tensor, const AxisNest& nest, const Halide::Expr& value,
                         const Halide::Expr& element) {
    return is_narrow() ? value : with_next_row(nest, value, element, tensor.dim(1).extent());
  }
  // The result, a tensor or per line, of `value` at the nest's variables; and its schedule.
  AxisSchedule write(Out& out, const AxisNest& nest, const Halide::Expr& value,
                     const Halide::Expr& rows_per_group) {
    if (is_narrow()) return write_narrow(out, nest, value, rows_per_group);
    Halide::Func func = out;
    func(func.dimensions() == nest.dimensions() ? nest.at_vars() : nest.place_vars()) = value;
    return make_schedule(nest, out, rows_per_group);
  }
  // `out`: a tensor or per line.
  AxisSchedule make_schedule(const AxisNest& nest, Halide::Func out,
                             const Halide::Expr& rows_per_group) {
    set_all_mins();
    if (is_rows()) return AxisSchedule(nest, out, rows_per_group);
    Halide::Expr is_dense = Halide::Internal::const_true();
    const auto free_stride = [&](auto& tensor) {
      tensor.dim(0).set_stride(Halide::Expr());
      is_dense = is_dense && tensor.dim(0).stride() == 1;
    };
    for (In* input : inputs_) free_stride(*input);
    for (Out* output : outputs_) free_stride(*output);
    return AxisSchedule(nest, out, inputs_.at(0)->dim(0).extent(), is_dense, rows_per_group);
  }

 private:
  void set_all_mins() {
    for (In* input : inputs_) set_mins(*input);
    for (Out* output : outputs_) set_mins(*output);
    for (In* input : line_inputs_) set_mins(*input);
    for (Out* output : line_outputs_) set_mins(*output);
  }

  // Sixteen rows at a time, of a work-group `rows_per_group`; the last of all move inwards.
  AxisSchedule write_narrow(Out& out, const AxisNest& nest, const Halide::Expr& value,
                            const Halide::Expr& rows_per_group) {
    using Halide::Expr;
    set_all_mins();
    const bool is_tensor = !outputs_.empty();  // else one value by line
    Halide::Func values("values"), result = out;
    values(is_tensor ? nest.at_vars() : nest.place_vars()) = value;
    const Expr length = is_tensor ? nest.length : 1;
    const Expr rows = out.dim(0).extent() / length, blocks = (rows + kLanes - 1) / kLanes,
               by_group = (rows_per_group + kLanes - 1) / kLanes;
    Halide::RDom all(
        {{0, kLanes}, {0, length}, {0, by_group}, {0, (blocks + by_group - 1) / by_group}}, "all");
    const Expr block = all[3] * by_group + all[2], first = min(block * kLanes, rows - kLanes);
    all.where(block < blocks);
    const Halide::LoopLevel level(result, all[2]);
    const Halide::Var f("f");
    result(f) = Halide::undef(out.type());
    AxisSchedule schedule(nest, values, level);
    if (is_tensor) {
      NarrowResult back(values, nest.length, nest.o);
      const Expr element = all[1] * kLanes + all[0];
      result(first * length + element) = back.at(element, first);
      back.schedule(level);
    } else {
      result(first + all[0] + all[1]) = values(all[0], first);
    }
    result.update()
        .allow_race_conditions()
        .vectorize(all[0])
        .gpu_blocks(all[3])
        .never_partition_all();
    for (NarrowRows& rows_read : narrow_) rows_read.schedule(level);
    return schedule;
  }

  std::vector<In*> inputs_, line_inputs_;
  std::vector<Out*> outputs_, line_outputs_;
  Halide::GeneratorInput<int>* row_length_ = nullptr;
  std::list<NarrowRows> narrow_;
};

}  // namespace ballast::kernels
