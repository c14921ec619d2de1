// Convolution and its gradients on a GPU as products in blocks (blocked_sums.h) that gather one
// operand from x or dy where it lies ("implicit GEMM": Chetlur et al. 2014, cuDNN). A step of the
// sums towards y and x is a channel, 16 of them for one tap of the window after the other, towards
// y of few channels a tap, those of one channel after the other; towards the weights it is a pixel,
// 16 of a sample after the other.
#include "kernels/conv/gpu/conv_window.h"
#include "kernels/recipe/blocked_sums.h"

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

  // tensor(x, y, c, n) where x and y lie in it, else 0.
  template <class Tensor>
  static Expr in_plane_or_zero(Tensor& tensor, const Expr& x, const Expr& y, const Expr& c,
                               const Expr& n) {
    const Expr width = tensor.dim(0).extent(), height = tensor.dim(1).extent();
    const Expr lies_in = is_below(x, width) && is_below(y, height);
    const auto place = [&](const Expr& at, const Expr& end) {
      return unsafe_promise_clamped(select(lies_in, at, 0), 0, end - 1);
    };
    return select(lies_in, tensor(place(x, width), place(y, height), c, n), 0.0f);
  }

  // Stores value(sum, place) of every sum at place(column, row, product).
  template <int Dimensions, class Place, class Value>
  void store(Halide::GeneratorOutput<Buffer<float, Dimensions>>& out, BlockedSums& sums,
             const Expr& columns, const Expr& lines, const Expr& products, const Place& place,
             const Value& value) {
    BlockedSums::Elements all = sums.elements(columns, lines, products);
    std::vector<Expr> at = place(all.x, all.y, all.which);
    // Of phases, the last may have a row or column less.
    all.domain.where(at[0] < out.dim(0).extent() && at[1] < out.dim(1).extent());
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

// What the sums towards y and x share: an operand that is gathered through a window, and steps that
// are channels, 16 of them for one tap after the other.
template <class Derived>
class WindowBlocks : public BlocksGenerator<Derived> {
 public:
  // Channels are whole chunks of steps.
  GeneratorParam<bool> whole{"whole", false};

 protected:
  using BlocksGenerator<Derived>::g;

  // value(channel, tap) of a step of `channels`, or 0.
  template <class Value>
  Expr of_channel(const Expr& step, const Expr& chunk, const Expr& channels, const Expr& taps,
                  const Value& value) const {
    // A chunk is fetched ahead, one after the last too.
    const Expr at = whole ? min(chunk, channels / kSteps * taps - 1) : chunk;
    const Expr tap = at - quick_over(at, taps) * taps,
               channel = quick_over(at, taps) * kSteps + step;
    if (whole) return value(unsafe_promise_clamped(channel, 0, channels - 1), tap);
    return step_or_zero(channel, channels, [&](const Expr& c) { return value(c, tap); });
  }
};

class ConvBlocks : public ForwardOperands<WindowBlocks<ConvBlocks>, 5> {
 public:
  GeneratorParam<bool> by_taps{"by_taps", false};  // steps are taps, for few channels

  void generate() {
    const Expr inputs = weights.dim(2).extent(), wide = weights.dim(0).extent();
    const Expr taps = wide * weights.dim(1).extent(), parts = out.dim(4).extent();
    const Expr out_w = out.dim(0).extent(), pixels = out_w * out.dim(1).extent();
    const Expr all = by_taps ? chunks_of(inputs * taps) : chunks_of(inputs) * taps;
    const Expr chunks = over(all, parts), group = over(g, parts);
    // element(channel, tap) of a step, or 0.
    const auto of_step = [&](const Expr& step, const Expr& chunk_of_part, const auto& element) {
      const Expr chunk = modulo(g, parts) * chunks + chunk_of_part;
      if (!by_taps) return of_channel(step, chunk, inputs, taps, element);
      return step_or_zero(chunk * kSteps + step, inputs * taps, [&](const Expr& number) {
        const Expr channel = quick_over(number, taps);
        return element(channel, number - channel * taps);
      });
    };
    const auto left_at = [&](const Expr& row, const Expr& step, const Expr& chunk, const Expr&) {
      return of_step(step, chunk, [&](const Expr& c, const Expr& tap) {
        const Expr y = quick_over(tap, wide);
        return weights(tap - y * wide, y, c, group * group_outputs + row);
      });
    };
    const auto right_at = [&](const Expr& column, const Expr& step, const Expr& chunk,
                              const Expr&) {
      const Expr pixel = modulo(column, pixels);
      return of_step(step, chunk, [&](const Expr& c, const Expr& tap) {
        const Expr y = quick_over(tap, wide), x = tap - y * wide;
        return in_plane_or_zero(in, modulo(pixel, out_w) * stride_w - left + x * dilation_w,
                                over(pixel, out_w) * stride_h - top + y * dilation_h,
                                group * inputs + c, over(column, pixels));
      });
    };
    const Expr columns = pixels * out.dim(3).extent();
    BlockedSums sums(block_shape(rows), group_outputs, columns, chunks, {left_at, kBySteps},
                     {right_at, kByLines}, {g});
    store(
        out, sums, columns, group_outputs, out.dim(2).extent() / group_outputs * parts,
        [&](const Expr& column, const Expr& row, const Expr& which) -> std::vector<Expr> {
          const Expr pixel = modulo(column, pixels);
          return {modulo(pixel, out_w), over(pixel, out_w),
                  over(which, parts) * group_outputs + row, over(column, pixels),
                  modulo(which, parts)};
        },
        [&](const Expr& sum, const std::vector<Expr>& at) {
          return epilogue.with_relu(
              epilogue.with_terms(sum, {at[2]}, {at[0], at[1], at[2], at[3]}));
        });
    set_layouts();
  }
};

// With strides, dx has phases: of rows and columns `phase`, `phase` + stride, ... A row of a block
// is a phase's channel, a column a pixel of a phase, and all read the same dy, `taps_h` x `taps_w`
// of it: number t is (first - t dilation) from the pixel, and for a phase tap (tap + phase + t
// stride) of the window, where that has one.
class ConvInputGradBlocks : public WindowBlocks<ConvInputGradBlocks> {
 public:
  Input<Buffer<float, 4>> dy{"dy"};
  Input<Buffer<float, 4>> weights{"weights"};
  Input<int> group_outputs{"group_outputs"};
  Input<int> taps_h{"taps_h"}, taps_w{"taps_w"};
  Input<int> first_h{"first_h"}, first_w{"first_w"}, tap_h{"tap_h"}, tap_w{"tap_w"};
  Output<Buffer<float, 5>> dx{"dx"};  // (x, y, c, n, part)

  void generate() {
    const Expr inputs = weights.dim(2).extent(), parts = dx.dim(4).extent();
    const Expr taps = taps_h * taps_w, phases = stride_h * stride_w;
    const auto phase_extent = [](const Expr& extent, const Expr& stride) {
      return over(extent + stride - 1, stride);
    };
    const Expr width = phase_extent(dx.dim(0).extent(), stride_w),
               pixels = width * phase_extent(dx.dim(1).extent(), stride_h);
    const Expr chunks = over(chunks_of(group_outputs) * taps, parts), group = over(g, parts);
    const auto of_step = [&](const Expr& step, const Expr& chunk, const auto& value) {
      return of_channel(step, modulo(g, parts) * chunks + chunk, group_outputs, taps, value);
    };
    const auto left_at = [&](const Expr& row, const Expr& step, const Expr& chunk, const Expr&) {
      const Expr phase = over(row, inputs);
      return of_step(step, chunk, [&](const Expr& o, const Expr& tap) {
        const Expr y = quick_over(tap, taps_w), x = tap - y * taps_w;
        return in_plane_or_zero(weights, modulo(phase, stride_w) + tap_w + x * stride_w,
                                over(phase, stride_w) + tap_h + y * stride_h, modulo(row, inputs),
                                group * group_outputs + o);
      });
    };
    const auto right_at = [&](const Expr& column, const Expr& step, const Expr& chunk,
                              const Expr&) {
      const Expr pixel = modulo(column, pixels);
      return of_step(step, chunk, [&](const Expr& o, const Expr& tap) {
        const Expr y = quick_over(tap, taps_w), x = tap - y * taps_w;
        return in_plane_or_zero(dy, modulo(pixel, width) + first_w - x * dilation_w,
                                over(pixel, width) + first_h - y * dilation_h,
                                group * group_outputs + o, over(column, pixels));
      });
    };
    const Expr columns = pixels * dx.dim(3).extent();
    BlockedSums sums(block_shape(rows), inputs * phases, columns, chunks, {left_at, kByLines},
                     {right_at, kByLines}, {g});
    store(
        dx, sums, columns, inputs * phases, dx.dim(2).extent() / inputs * parts,
        [&](const Expr& column, const Expr& row, const Expr& which) -> std::vector<Expr> {
          const Expr pixel = modulo(column, pixels), phase = over(row, inputs);
          return {modulo(pixel, width) * stride_w + modulo(phase, stride_w),
                  over(pixel, width) * stride_h + over(phase, stride_w),
                  over(which, parts) * inputs + modulo(row, inputs), over(column, pixels),
                  modulo(which, parts)};
        },
        [](const Expr& sum, const std::vector<Expr>&) { return sum; });
    set_mins(dy, weights, dx);
  }
};

class ConvWeightGradBlocks : public BlocksGenerator<ConvWeightGradBlocks> {
 public:
  Input<Buffer<float, 3>> dy{"dy"};  // (pixel, o, n)
  Input<Buffer<float, 3>> in{"in"};  // (pixel, c, n)
  Input<int> out_w{"out_w"}, in_w{"in_w"};
  Input<int> group_outputs{"group_outputs"};
  Input<int> part_chunks{"part_chunks"};  // of all, that a part adds
  Output<Buffer<float, 5>> dw{"dw"};      // (kx, ky, c, o, part)

  void generate() {
    const Expr wide = dw.dim(0).extent(), taps = wide * dw.dim(1).extent(),
               inputs = dw.dim(2).extent(), parts = dw.dim(4).extent();
    const Expr pixels = dy.dim(0).extent(), in_pixels = in.dim(0).extent();
    const Expr of_sample = chunks_of(pixels), all = of_sample * dy.dim(2).extent();
    // g: group and part
    const auto of_step = [&](const Expr& step, const Expr& chunk, const auto& element) {
      const Expr at = modulo(g, parts) * part_chunks + chunk, existing = min(at, all - 1);
      const Expr sample = quick_over(existing, of_sample);
      return select(at < all,
                    step_or_zero((existing - sample * of_sample) * kSteps + step, pixels,
                                 [&](const Expr& pixel) { return element(pixel, sample); }),
                    0.0f);
    };
    const auto left_at = [&](const Expr& row, const Expr& step, const Expr& chunk, const Expr&) {
      return of_step(step, chunk, [&](const Expr& pixel, const Expr& sample) {
        return dy(pixel, over(g, parts) * group_outputs + row, sample);
      });
    };
    const auto right_at = [&](const Expr& column, const Expr& step, const Expr& chunk,
                              const Expr&) {
      const Expr tap = modulo(column, taps);
      return of_step(step, chunk, [&](const Expr& pixel, const Expr& sample) {
        const Expr out_y = quick_over(pixel, out_w), out_x = pixel - out_y * out_w;
        const Expr x = out_x * stride_w, y = out_y * stride_h;
        // An item's columns are taps of their own: what is the same for all of a step comes last.
        const Expr tap_x = modulo(tap, wide) * dilation_w - left,
                   tap_y = over(tap, wide) * dilation_h - top;
        const Expr lies_in =
            is_below(tap_x + x, in_w) && is_below(tap_y + y, over(in_pixels, in_w));
        const Expr at = select(lies_in, (tap_y * in_w + tap_x) + (y * in_w + x), 0);
        return select(lies_in,
                      in(unsafe_promise_clamped(at, 0, in_pixels - 1),
                         over(g, parts) * inputs + over(column, taps), sample),
                      0.0f);
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
