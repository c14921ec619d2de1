// Moves elements of one size between strided views of two buffers, and fills a view.
//
// A view is up to six loops, innermost first (x along the rows, then y, z, w...), and a last
// dimension `o` of one step whose start is minus the view's offset: bound to one iteration, it adds
// the offset to every address without an argument of its own.
#include <Halide.h>

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kLanes = 16;
constexpr int kDimensions = 7;

template <class Derived>
class RegionGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> bytes{"bytes", 4};

 protected:
  Var x{"x"}, y{"y"}, z{"z"}, w0{"w0"}, w1{"w1"}, w2{"w2"}, o{"o"};

  bool is_gpu() const { return device_class.value() == "gpu"; }
  Type element() const { return UInt(8 * bytes); }

  template <class Tensor>
  void set_layout(Tensor& tensor) {
    for (int d = 0; d < kDimensions - 1; ++d) tensor.dim(d).set_min(0);
    tensor.dim(0).set_stride(Expr());
    tensor.dim(kDimensions - 1).set_extent(1).set_stride(1);
  }

  // Rows by whole vectors; the last one of a row moves inwards and repeats what its neighbour did.
  void schedule_vectors(Stage stage, const Expr& chunk_x, const Expr& chunk_y,
                        const Expr& chunk_z) {
    const Var lane("lane"), v("v");
    stage.split(x, v, lane, kLanes, TailStrategy::ShiftInwards);
    schedule_blocks(stage, v, chunk_x, chunk_y, chunk_z, {lane});
    stage.vectorize(lane);
  }

  void schedule_blocks(Stage stage, const Var& rows, const Expr& chunk_x, const Expr& chunk_y,
                       const Expr& chunk_z, std::vector<VarOrRVar> loops = {}) {
    const Var xo("xo"), xi("xi"), yo("yo"), yi("yi"), zo("zo"), zi("zi"), all("all");
    stage.split(rows, xo, xi, chunk_x, TailStrategy::GuardWithIf)
        .split(y, yo, yi, chunk_y, TailStrategy::GuardWithIf)
        .split(z, zo, zi, chunk_z, TailStrategy::GuardWithIf);
    loops.insert(loops.end(), {xi, yi, zi, xo, yo, zo, w0, w1, w2, o});
    stage.reorder(loops);
    stage.fuse(w1, w2, all).fuse(w0, all, all).fuse(zo, all, all);
    stage.gpu_blocks(xo, yo, all).never_partition_all();
    if (is_gpu()) stage.gpu_threads(xi, yi);
  }
};

class Copy : public RegionGenerator<Copy> {
 public:
  void configure() {
    source_ = add_input<Buffer<>>("source", element(), kDimensions);
    chunk_x_ = add_input<int>("chunk_x");
    chunk_y_ = add_input<int>("chunk_y");
    chunk_z_ = add_input<int>("chunk_z");
    target_ = add_output<Buffer<>>("result", element(), kDimensions);
  }

  void generate() {
    Func target = *target_;
    target(x, y, z, w0, w1, w2, o) = (*source_)(x, y, z, w0, w1, w2, o);
    set_layout(*source_);
    set_layout(*target_);
    target.bound(o, 0, 1);
    const Expr to = target_->dim(0).stride(), from = source_->dim(0).stride();
    const Expr has_vectors = target_->dim(0).extent() >= kLanes;
    if (!is_gpu()) {
      for (int stride : {1, 0}) {
        schedule_vectors(target.specialize(has_vectors && to == 1 && from == stride), *chunk_x_,
                         *chunk_y_, *chunk_z_);
      }
    }
    schedule_blocks(target, x, *chunk_x_, *chunk_y_, *chunk_z_);
  }

 private:
  GeneratorInput<Buffer<>>* source_ = nullptr;
  GeneratorInput<int>*chunk_x_ = nullptr, *chunk_y_ = nullptr, *chunk_z_ = nullptr;
  GeneratorOutput<Buffer<>>* target_ = nullptr;
};

// The view filled with one value, given as its bits.
class Fill : public RegionGenerator<Fill> {
 public:
  Input<int> low{"low"}, high{"high"};

  void configure() {
    chunk_x_ = add_input<int>("chunk_x");
    chunk_y_ = add_input<int>("chunk_y");
    chunk_z_ = add_input<int>("chunk_z");
    target_ = add_output<Buffer<>>("result", element(), kDimensions);
  }

  void generate() {
    Func target = *target_;
    const Expr word = cast<uint32_t>(low);
    Expr value = cast(element(), word);
    if (bytes == 8) value = value | (cast(element(), cast<uint32_t>(high)) << 32);
    target(x, y, z, w0, w1, w2, o) = value;
    set_layout(*target_);
    target.bound(o, 0, 1);
    if (!is_gpu()) {
      const Expr is_dense = target_->dim(0).stride() == 1;
      schedule_vectors(target.specialize(target_->dim(0).extent() >= kLanes && is_dense), *chunk_x_,
                       *chunk_y_, *chunk_z_);
    }
    schedule_blocks(target, x, *chunk_x_, *chunk_y_, *chunk_z_);
  }

 private:
  GeneratorInput<int>*chunk_x_ = nullptr, *chunk_y_ = nullptr, *chunk_z_ = nullptr;
  GeneratorOutput<Buffer<>>* target_ = nullptr;
};

// start + i * step; 64-bit numbers come as two words.
class Arange : public Generator<Arange> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<Type> type{"type", Float(32)};

  void configure() {
    const bool is_float = type.value().is_float();
    for (const char* name : {"start", "step"}) {
      if (is_float) {
        floats_.push_back(add_input<float>(name));
      } else {
        words_.push_back(add_input<int>(name + std::string("_low")));
        words_.push_back(add_input<int>(name + std::string("_high")));
      }
    }
    result_ = add_output<Buffer<>>("result", type, 1);
  }

  void generate() {
    Func result = *result_;
    const Expr index = cast(type.value(), i);
    result(i) = strict_float(number(0) + index * number(1));
    result_->dim(0).set_min(0);
    constexpr int kChunk = 8192, kItems = 256;
    const Var outer("outer"), inner("inner"), lane("lane");
    if (device_class.value() == "gpu") {
      result.gpu_tile(i, outer, inner, kItems, TailStrategy::GuardWithIf);
    } else {
      result.split(i, outer, inner, kChunk, TailStrategy::GuardWithIf).gpu_blocks(outer);
    }
  }

 private:
  Var i{"i"};
  std::vector<GeneratorInput<float>*> floats_;
  std::vector<GeneratorInput<int>*> words_;
  GeneratorOutput<Buffer<>>* result_ = nullptr;

  Expr number(size_t n) const {
    if (!floats_.empty()) return *floats_[n];
    const Expr low = cast<int64_t>(cast<uint32_t>(*words_[2 * n]));
    return cast(type.value(), cast<int64_t>(*words_[2 * n + 1]) << 32 | low);
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::Copy, copy_region)
HALIDE_REGISTER_GENERATOR(ballast::kernels::Fill, fill_region)
HALIDE_REGISTER_GENERATOR(ballast::kernels::Arange, arange)
