// Pointwise kernels ahead of time, from the rows of pointwise_ops.inc.
#include "kernels/pointwise/elementwise_generator.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

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
      const Expr element = (*inputs_[i])(nest_.vars());
      args.push_back(moves_bits(op, i) ? element : loaded(element, types_[i]));
    }
    const DType result = dtype_named(out_type);
    const Expr value = apply_pointwise(op, result, args);
    (*out_)(nest_.vars()) = moves_bits(op, args.size() - 1) ? value : stored(value, result);
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
