// Elementwise kernels ahead of time: up to four nested loops, extents and strides given at run
// time.
#include "kernels/pointwise_recipe.h"

#include <sstream>

namespace ballast::kernels {
namespace {

using namespace Halide;

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> items;
  std::stringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');) items.push_back(item);
  return items;
}

using Tensor = GeneratorInput<Buffer<>>;

// What all elementwise generators share. `patterns` lists the kinds of operands that get a variant
// of their own: per input 1 where it is dense, 0 where it repeats along the innermost dimension.
template <class Derived>
class ElementwiseGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<std::string> patterns{"patterns", "1"};

 protected:
  Nest nest_ = make_nest(4);

  void schedule_elementwise(Func out, const std::vector<OutputImageParam>& outputs,
                            const std::vector<Tensor*>& inputs, const Expr& chunk_x,
                            const Expr& chunk_y) {
    for (OutputImageParam output : outputs) {
      Expr stride = 1;
      for (int d = 0; d < 4; ++d) {
        output.dim(d).set_min(0).set_stride(stride);
        stride = stride * outputs[0].dim(d).extent();
      }
    }
    for (Tensor* input : inputs) {
      for (int d = 0; d < 4; ++d) input->dim(d).set_min(0).set_stride(Expr());
    }
    const bool is_gpu = device_class.value() == "gpu";
    schedule_nest(out, nest_, chunk_x, chunk_y, is_gpu);
    const Expr lanes = outputs[0].dim(0).extent();
    for (const std::string& pattern : split_list(patterns)) {
      Expr is_vector = lanes == kLanes, is_scalar = lanes == 1;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const int stride = pattern.at(i) - '0';
        is_vector = is_vector && inputs[i]->dim(0).stride() == stride;
        is_scalar = is_scalar && inputs[i]->dim(1).stride() == stride;
      }
      if (!is_gpu) out.specialize(is_vector).vectorize(nest_.lane, kLanes);
      out.specialize(is_scalar);
    }
    out.specialize(lanes == 1);
  }
};

class PointwiseGenerator : public ElementwiseGenerator<PointwiseGenerator> {
 public:
  GeneratorParam<std::string> op{"op", "add"};
  GeneratorParam<std::string> in{"in", "f32"};
  GeneratorParam<std::string> out_type{"out", "f32"};

  void configure() {
    for (const std::string& name : split_list(in)) {
      types_.push_back(dtype_named(name));
      inputs_.push_back(this->add_input<Buffer<>>("in" + std::to_string(inputs_.size()),
                                                  storage_type(types_.back()), 4));
    }
    chunk_x_ = this->add_input<int>("chunk_x");
    chunk_y_ = this->add_input<int>("chunk_y");
    out_ = this->add_output<Buffer<>>("result", storage_type(dtype_named(out_type)), 4);
  }

  void generate() {
    std::vector<Expr> args;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      args.push_back(loaded((*inputs_[i])(nest_.vars()), types_[i]));
    }
    (*out_)(nest_.vars()) = stored(apply_pointwise(op, dtype_named(out_type), args));
    schedule_elementwise(*out_, {*out_}, inputs_, *chunk_x_, *chunk_y_);
  }

 private:
  std::vector<DType> types_;
  std::vector<Tensor*> inputs_;
  GeneratorInput<int>* chunk_x_ = nullptr;
  GeneratorInput<int>* chunk_y_ = nullptr;
  GeneratorOutput<Buffer<>>* out_ = nullptr;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PointwiseGenerator, pointwise)
