// What is brought into another layout around attention_tiles and attention_grad_tiles: rows that
// are no whole vectors, and masks.
#include "kernels/attention/attention_recipe.h"

#include <type_traits>

namespace ballast::kernels {
namespace {

using namespace attention;
using namespace Halide;

// out[row][x] = source[row][x], 0 past its end: rows between a tensor and whole vectors, either
// way.
class AttentionCopy : public Generator<AttentionCopy> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<Buffer<float, 2>> source{"source"};
  Output<Buffer<float, 2>> out{"out"};

  void generate() {
    const Expr width = source.dim(0).extent();
    out(x, y) = select(x < width, source(min(x, width - 1), y), 0.0f);
    set_any_layout(source);
    set_mins(out);
    out.split(y, yo, yi, 64, TailStrategy::GuardWithIf).gpu_blocks(yo).never_partition_all();
  }

 private:
  Var x{"x"}, y{"y"}, yo{"yo"}, yi{"yi"};
};

// The additive form of a mask of booleans, for the general kernels: 0 where true, else -infinity.
class AttentionKeep : public Generator<AttentionKeep> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "gpu"};

  Input<Buffer<uint8_t, 2>> source{"source"};
  Output<Buffer<float, 2>> out{"out"};

  void generate() {
    out(x, y) = select(source(x, y) != cast<uint8_t>(0), 0.0f, -kInfinity);
    set_any_layout(source);
    set_mins(out);
    if (device_class.value() == "gpu") {
      out.gpu_tile(x, y, xo, yo, xi, yi, 32, 8, TailStrategy::GuardWithIf);
    } else {
      source.dim(0).set_stride(1);
      out.gpu_blocks(y);
    }
    out.never_partition_all();
  }

 private:
  Var x{"x"}, y{"y"}, xo{"xo"}, xi{"xi"}, yo{"yo"}, yi{"yi"};
};

// A mask with lanes of queries, in the form that is added: out[n][tile][key][query of a tile] of
// source[n][query][key]. Queries past the last repeat it.
template <bool is_keep>
class AttentionTurn : public Generator<AttentionTurn<is_keep>> {
  template <class T>
  using Input = GeneratorInput<T>;

 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<Buffer<std::conditional_t<is_keep, uint8_t, float>, 3>> source{"source"};
  GeneratorOutput<Buffer<float, 4>> out{"out"};

  void generate() {
    const Expr value = source(k, min(t * out.dim(0).extent() + x, source.dim(1).extent() - 1), n);
    out(x, k, t, n) =
        is_keep ? select(value != cast(value.type(), 0), 0.0f, -kInfinity) : cast<float>(value);
    set_mins(source, out);
    out.gpu_blocks(t, n).never_partition_all();
  }

 private:
  Var x{"x"}, k{"k"}, t{"t"}, n{"n"};
};
using AttentionTurnKeep = AttentionTurn<true>;
using AttentionTurnAdd = AttentionTurn<false>;

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionCopy, attention_copy)
HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionKeep, attention_keep)
HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionTurnKeep, attention_turn_keep)
HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionTurnAdd, attention_turn_add)
