// Weights as the kernels over padded planes read them.
#include "kernels/conv/planes/conv_planes.h"

#include <Halide.h>

#include <string>

namespace ballast::kernels {
namespace {

using namespace Halide;

// weights[group][tile][tap][row] as they are read: a tap's numbers for all channels of a
// tile side by side. source(tap of the window, input channel, output channel, group).
class ConvPlaneWeights : public Generator<ConvPlaneWeights> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> first_tap{"first_tap"}, tap_step{"tap_step"};  // of a window, which may be flipped
  Input<Buffer<float, 4>> source{"source"};
  Output<Buffer<float, 5>> packed{"packed"};  // (row, tap of the window, channel, tile, group)

  void generate() {
    const Expr rows = packed.dim(0).extent();
    const Expr lane = min(o * rows, source.dim(2).extent() - rows) + j;
    packed(j, t, c, o, g) = source(first_tap + t * tap_step, c, lane, g);
  }

  void schedule() {
    for (int d = 0; d < 4; ++d) source.dim(d).set_min(0).set_stride(Expr());
    for (int d = 0; d < 5; ++d) packed.dim(d).set_min(0);
    Func(packed)
        .split(j, jo, j, 2)  // what all tiles' channels are a multiple of
        .reorder(j, jo, t, c, o, g)
        .unroll(j)
        .gpu_blocks(c, o, g)
        .never_partition_all();
  }

 private:
  Var j{"j"}, jo{"jo"}, t{"t"}, c{"c"}, o{"o"}, g{"g"};
};

// The same for dx of a convolution with strides, whose phases are channels of a convolution of dy:
// element (c, y, x) of dx is element (y / stride_h, x / stride_w) of the channel (c, y % stride_h,
// x % stride_w). Tap (tx, ty) of that window is a tap of the weights, or none, which is zero.
class ConvPhaseWeights : public Generator<ConvPhaseWeights> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> stride_h{"stride_h"}, stride_w{"stride_w"}, last_y{"last_y"}, last_x{"last_x"};
  Input<Buffer<float, 5>> source{"source"};   // (kx, ky, channel of dx, channel of dy, group)
  Output<Buffer<float, 6>> packed{"packed"};  // (row, tx, ty, channel of dy, tile, group)

  void generate() {
    const Expr phases = stride_h * stride_w, lanes = source.dim(2).extent() * phases;
    const Expr rows = packed.dim(0).extent(), lane = min(o * rows, lanes - rows) + j;
    const Expr ky = last_y + (lane / stride_w) % stride_h - ty * stride_h,
               kx = last_x + lane % stride_w - tx * stride_w;
    const Expr width = source.dim(0).extent(), height = source.dim(1).extent();
    const Expr is_tap = kx >= 0 && kx < width && ky >= 0 && ky < height;
    packed(j, tx, ty, c, o, g) = select(
        is_tap, source(clamp(kx, 0, width - 1), clamp(ky, 0, height - 1), lane / phases, c, g),
        0.0f);
  }

  void schedule() {
    for (int d = 0; d < 5; ++d) source.dim(d).set_min(0);
    for (int d = 0; d < 6; ++d) packed.dim(d).set_min(0);
    Func(packed).reorder(j, tx, ty, c, o, g).gpu_blocks(c, o, g).never_partition_all();
  }

 private:
  Var j{"j"}, tx{"tx"}, ty{"ty"}, c{"c"}, o{"o"}, g{"g"};
};

// The same for the kernel that computes the phases of two apart, of just the taps they have. Those
// of a phase lie one after the other, those of even rows' first, of even columns' first: (channel,
// row, column), backwards as dx takes dy.
class ConvPhaseTaps : public Generator<ConvPhaseTaps> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  // Of even and odd rows, and columns: the first tap of the weights, and how many, every other one.
  Input<int> first_h0{"first_h0"}, first_h1{"first_h1"}, first_w0{"first_w0"}, first_w1{"first_w1"},
      taps_h0{"taps_h0"}, taps_h1{"taps_h1"}, taps_w0{"taps_w0"}, taps_w1{"taps_w1"};
  Input<Buffer<float, 5>> source{"source"};   // (kx, ky, channel of dx, channel of dy, group)
  Output<Buffer<float, 4>> packed{"packed"};  // (row, tap, tile, group)

  void generate() {
    const Expr channels = source.dim(3).extent(), rows = packed.dim(0).extent();
    const Expr even_rows = taps_h0 * (taps_w0 + taps_w1) * channels, is_even_row = t < even_rows;
    const Expr of_row = select(is_even_row, t, t - even_rows),
               taps_h = select(is_even_row, taps_h0, taps_h1);
    const Expr even = taps_h * taps_w0 * channels, is_even = of_row < even;
    const Expr tap = select(is_even, of_row, of_row - even),
               taps_w = select(is_even, taps_w0, taps_w1);
    const Expr tx = tap % taps_w, ty = tap / taps_w % taps_h, c = tap / (taps_w * taps_h);
    const Expr kx = select(is_even, first_w0, first_w1) + (taps_w - 1 - tx) * 2,
               ky = select(is_even_row, first_h0, first_h1) + (taps_h - 1 - ty) * 2;
    const Expr lane = min(o * rows, source.dim(2).extent() - rows) + j;
    packed(j, t, o, g) =
        source(unsafe_promise_clamped(kx, 0, source.dim(0).extent() - 1),
               unsafe_promise_clamped(ky, 0, source.dim(1).extent() - 1), lane, c, g);
  }

  void schedule() {
    for (int d = 0; d < 5; ++d) source.dim(d).set_min(0);
    for (int d = 0; d < 4; ++d) packed.dim(d).set_min(0);
    Func(packed)
        .split(t, to, t, 64, TailStrategy::GuardWithIf)
        .reorder(j, t, to, o, g)
        .gpu_blocks(to, o, g)
        .never_partition_all();
  }

 private:
  Var j{"j"}, t{"t"}, to{"to"}, o{"o"}, g{"g"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPlaneWeights, conv_plane_weights)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPhaseWeights, conv_phase_weights)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPhaseTaps, conv_phase_taps)
