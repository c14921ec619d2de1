// Convolution and its gradients on a GPU as products in blocks (blocked_sums.h) that gather one
// operand from x or dy where it lies ("implicit GEMM": Chetlur et al. 2014, cuDNN). A step of the
// sums towards y and x is a channel, 16 of them for one tap of the window after the other, towards
// y of few channels a tap, those of one channel after the other; towards the weights it is a pixel,
// 16 of a sample after the other.
#include "kernels/blocked_sums.h"
#include "kernels/conv/conv_window.h"

#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kSteps = BlockShape::kSteps;

// How an operand lies in memory (BlockOperand).
constexpr bool kBySteps = true, kByLines = false;

Expr chunks_of(const Expr& steps) { return (steps + kSteps - 1) / kSteps; }

template <class Derived>
class BlocksGenerator : public WindowGenerator<Derived> {
 public:
  GeneratorParam<int> rows{"rows", 64};  // of a block

 protected:
  Var g{"g"};

  // Stores value(sum, place) of every sum at place(column, row, product).
  template <int Dimensions, class Place, class Value>
  void store(Halide::GeneratorOutput<Buffer<float, Dimensions>>& out, BlockedSums& sums,
             const Expr& columns, const Expr& lines, const Expr& products, const Place& place,
             const Value& value) {
    const BlockedSums::Elements all = sums.elements(columns, lines, products);
    std::vector<Expr> at = place(all.x, all.y, all.which);
    std::vector<Var> any;
    for (int i = 0; i < out.dimensions(); ++i) {
      at[i] = unsafe_promise_clamped(at[i], 0, out.dim(i).extent() - 1);
      any.emplace_back();
    }
    Func stored = out;
    stored(any) = undef<float>();
    stored(at) = value(sums.at(all.x, all.y, {all.which}), at);
    sums.schedule_update(stored.update(), all);
    sums.schedule(stored);
  }
};

class ConvBlocks : public ForwardOperands<BlocksGenerator<ConvBlocks>> {
 public:
  GeneratorParam<bool> by_taps{"by_taps", false};  // steps are taps, for few channels

  void generate() {
    const Expr inputs = weights.dim(2).extent(), wide = weights.dim(0).extent();
    const Expr taps = wide * weights.dim(1).extent();
    const Expr out_w = out.dim(0).extent(), pixels = out_w * out.dim(1).extent();
    // element(channel, tap) of a step, or 0.
    const auto of_step = [&](const Expr& step, const Expr& chunk, const auto& element) {
      if (by_taps) {
        return step_or_zero(chunk * kSteps + step, inputs * taps, [&](const Expr& number) {
          return element(over(number, taps), modulo(number, taps));
        });
      }
      return step_or_zero(over(chunk, taps) * kSteps + step, inputs,
                          [&](const Expr& c) { return element(c, modulo(chunk, taps)); });
    };
    const auto left_at = [&](const Expr& row, const Expr& step, const Expr& chunk, const Expr&) {
      return of_step(step, chunk, [&](const Expr& c, const Expr& tap) {
        return weights(modulo(tap, wide), over(tap, wide), c, g * group_outputs + row);
      });
    };
    const auto right_at = [&](const Expr& column, const Expr& step, const Expr& chunk,
                              const Expr&) {
      const Expr pixel = modulo(column, pixels);
      return of_step(step, chunk, [&](const Expr& c, const Expr& tap) {
        return or_zero(in, modulo(pixel, out_w) * stride_w + modulo(tap, wide) * dilation_w - left,
                       over(pixel, out_w) * stride_h + over(tap, wide) * dilation_h - top,
                       g * inputs + c, over(column, pixels));
      });
    };
    const Expr columns = pixels * out.dim(3).extent();
    const Expr chunks = by_taps ? chunks_of(inputs * taps) : chunks_of(inputs) * taps;
    BlockedSums sums(block_shape(rows), group_outputs, columns, chunks, {left_at, kBySteps},
                     {right_at, kByLines}, {g});
    store(
        out, sums, columns, group_outputs, out.dim(2).extent() / group_outputs,
        [&](const Expr& column, const Expr& row, const Expr& group) -> std::vector<Expr> {
          const Expr pixel = modulo(column, pixels);
          return {modulo(pixel, out_w), over(pixel, out_w), group * group_outputs + row,
                  over(column, pixels)};
        },
        [&](const Expr& sum, const std::vector<Expr>& at) {
          return epilogue.with_relu(epilogue.with_terms(sum, {at[2]}, at));
        });
    set_layouts();
  }
};

class ConvInputGradBlocks : public InputGradOperands<BlocksGenerator<ConvInputGradBlocks>> {
 public:
  void generate() {
    const Expr inputs = weights.dim(2).extent(), wide = weights.dim(0).extent();
    const Expr taps = wide * weights.dim(1).extent();
    const Expr width = dx.dim(0).extent(), pixels = width * dx.dim(1).extent();
    const auto left_at = [&](const Expr& row, const Expr& step, const Expr& chunk, const Expr&) {
      const Expr tap = modulo(chunk, taps);
      return step_or_zero(over(chunk, taps) * kSteps + step, group_outputs, [&](const Expr& o) {
        return weights(modulo(tap, wide), over(tap, wide), row, g * group_outputs + o);
      });
    };
    const auto right_at = [&](const Expr& column, const Expr& step, const Expr& chunk,
                              const Expr&) {
      const Expr tap = modulo(chunk, taps), pixel = modulo(column, pixels);
      const Expr x = modulo(pixel, width) + left - modulo(tap, wide) * dilation_w,
                 y = over(pixel, width) + top - over(tap, wide) * dilation_h;
      return step_or_zero(over(chunk, taps) * kSteps + step, group_outputs, [&](const Expr& o) {
        // What rounds to 0 from below is no multiple of a stride.
        const Expr value =
            or_zero(dy, div_round_to_zero(x, stride_w), div_round_to_zero(y, stride_h),
                    g * group_outputs + o, over(column, pixels));
        return select(mod_round_to_zero(x, stride_w) == 0 && mod_round_to_zero(y, stride_h) == 0,
                      value, 0.0f);
      });
    };
    const Expr columns = pixels * dx.dim(3).extent();
    BlockedSums sums(block_shape(rows), inputs, columns, chunks_of(group_outputs) * taps,
                     {left_at, kByLines}, {right_at, kByLines}, {g});
    store(
        dx, sums, columns, inputs, dx.dim(2).extent() / inputs,
        [&](const Expr& column, const Expr& row, const Expr& group) -> std::vector<Expr> {
          const Expr pixel = modulo(column, pixels);
          return {modulo(pixel, width), over(pixel, width), group * inputs + row,
                  over(column, pixels)};
        },
        [](const Expr& sum, const std::vector<Expr>&) { return sum; });
    set_layouts();
  }
};

class ConvWeightGradBlocks : public BlocksGenerator<ConvWeightGradBlocks> {
 public:
  Input<Buffer<float, 4>> dy{"dy"};
  Input<Buffer<float, 4>> in{"in"};
  Input<int> group_outputs{"group_outputs"};
  Input<int> part_chunks{"part_chunks"};  // of all, that a part adds
  Output<Buffer<float, 5>> dw{"dw"};      // (kx, ky, c, o, part)

  void generate() {
    const Expr wide = dw.dim(0).extent(), taps = wide * dw.dim(1).extent(),
               inputs = dw.dim(2).extent(), parts = dw.dim(4).extent();
    const Expr out_w = dy.dim(0).extent(), pixels = out_w * dy.dim(1).extent();
    const Expr of_sample = chunks_of(pixels), all = of_sample * dy.dim(3).extent();
    // g: group and part
    const auto of_step = [&](const Expr& step, const Expr& chunk, const auto& element) {
      const Expr at = modulo(g, parts) * part_chunks + chunk;
      const Expr sample = over(min(at, all - 1), of_sample);
      return select(at < all,
                    step_or_zero(
                        modulo(min(at, all - 1), of_sample) * kSteps + step, pixels,
                        [&](const Expr& pixel) { return element(pixel, sample); }),
                    0.0f);
    };
    const auto left_at = [&](const Expr& row, const Expr& step, const Expr& chunk, const Expr&) {
      return of_step(step, chunk, [&](const Expr& pixel, const Expr& sample) {
        return dy(modulo(pixel, out_w), over(pixel, out_w), over(g, parts) * group_outputs + row,
                  sample);
      });
    };
    const auto right_at = [&](const Expr& column, const Expr& step, const Expr& chunk,
                              const Expr&) {
      const Expr tap = modulo(column, taps);
      return of_step(step, chunk, [&](const Expr& pixel, const Expr& sample) {
        return or_zero(in, modulo(pixel, out_w) * stride_w + modulo(tap, wide) * dilation_w - left,
                       over(pixel, out_w) * stride_h + over(tap, wide) * dilation_h - top,
                       over(g, parts) * inputs + over(column, taps), sample);
      });
    };
    BlockedSums sums(block_shape(rows), group_outputs, taps * inputs, part_chunks,
                     {left_at, kBySteps}, {right_at, kBySteps}, {g});
    store(
        dw, sums, taps * inputs, group_outputs, dw.dim(3).extent() / group_outputs * parts,
        [&](const Expr& column, const Expr& row, const Expr& which) -> std::vector<Expr> {
          const Expr tap = modulo(column, taps);
          return {modulo(tap, wide), over(tap, wide), over(column, taps),
                  over(which, parts) * group_outputs + row, modulo(which, parts)};
        },
        [](const Expr& sum, const std::vector<Expr>&) { return sum; });
    set_mins(dy, in, dw);
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvBlocks, conv_blocks)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvInputGradBlocks, conv_input_grad_blocks)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWeightGradBlocks, conv_weight_grad_blocks)
