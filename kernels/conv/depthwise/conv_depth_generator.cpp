// Depthwise convolution on CPUs: lanes are pixels of a row, weights are broadcast. The bandwidth
// decides, so x and y pass once: a work-item surrounds a plane (or some rows of it) with zeros on
// its stack, in the nearest caches, and computes from there, four rows of two vectors at a time, so
// that what is loaded serves several taps.
//
//   conv_depth         y, or dx with flipped weights
//   conv_depth_weight  dw: sums over pixels in 16 partial sums per tap, added at the end
#include "kernels/conv/conv_recipe.h"
#include "kernels/conv/depthwise/conv_depth.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/pairwise_sum.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kWide = 2 * kLanes, kRows = kDepthRows;

// Rows of planes between zeros, one after the other on the stack: element (x, row) of the padded
// plane lies at row pitch + x. With a spread, between the elements too.
template <class Derived>
class DepthGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

 protected:
  GeneratorInput<int> stride_h{"stride_h"}, stride_w{"stride_w"}, dilation_h{"dilation_h"},
      dilation_w{"dilation_w"}, top{"top"}, left{"left"}, spread_h{"spread_h"},
      spread_w{"spread_w"}, pitch{"pitch"}, rows{"rows"},  // of a block of the result
      elements{"elements"};                                // of a padded block, whole vectors
  Var f{"f"}, b{"b"}, g{"g"}, n{"n"};
  Func padded{"padded"};
  RDom part;

  // Block b holds what `rows` results from b rows on take. in(x, y, g, n).
  template <class Tensor>
  void pad(const Tensor& in, const Expr& kernel_h) {
    const Expr width = in.dim(0).extent(), height = in.dim(1).extent();
    const Expr first = b * rows * stride_h - top;
    const Expr last = first + (rows - 1) * stride_h + (kernel_h - 1) * dilation_h;
    padded(f, b, g, n) = 0.0f;
    part = RDom(0, kLanes, 0, (width + kLanes - 1) / kLanes, 0, height, "part");
    part.where(part.z >= (max(first, 0) + spread_h - 1) / spread_h);
    part.where(part.z <= max(last, -1) / spread_h);
    const Expr x = min(part.y * kLanes, width - kLanes) + part.x;
    const Expr place = (part.z * spread_h - first) * pitch + left + x * spread_w;
    padded(unsafe_promise_clamped(place, 0, kDepthElements - 1), b, g, n) = in(x, part.z, g, n);
  }

  void schedule_padded(const LoopLevel& level) {
    padded.compute_at(level).store_in(MemoryType::Stack);
    padded.bound(f, 0, elements).bound_storage(f, kDepthElements).never_partition_all();
    padded.vectorize(f, kLanes, TailStrategy::RoundUp);
    Stage copy = padded.update();
    copy.allow_race_conditions().never_partition_all();
    copy.specialize(spread_w == 1).vectorize(part.x);
  }
};

class ConvDepth : public DepthGenerator<ConvDepth> {
 public:
  Input<int> is_flipped{"is_flipped"};
  Input<Buffer<float, 4>> in{"in"};            // (x, y, g, n)
  Input<Buffer<float, 4>> weights{"weights"};  // (kx, ky, channel of the group, g)
  EpilogueInputs<2, 6> epilogue;               // its channel: (channel, g)
  Output<Buffer<float, 6>> out{"out"};         // (x, r, b, channel, g, n): y = b rows + r

  void generate() {
    const Expr kernel_w = weights.dim(0).extent(), kernel_h = weights.dim(1).extent();
    pad(in, kernel_h);
    taps = RDom(0, kernel_w, 0, kernel_h, "taps");
    const Expr kx = flipped_if(is_flipped, taps.x, kernel_w),
               ky = flipped_if(is_flipped, taps.y, kernel_h);
    const Expr place =
        (r * stride_h + taps.y * dilation_h) * pitch + x * stride_w + taps.x * dilation_w;
    product(x, r, b, o, g, n) = 0.0f;
    product(x, r, b, o, g, n) =
        fma_f32(padded(place, b, g, n), weights(kx, ky, o, g), product(x, r, b, o, g, n));
    Expr value = epilogue.with_terms(product(x, r, b, o, g, n), {o, g}, {x, r, b, o, g, n});
    // What the next work-group copies follows what this one did.
    const Expr y =
        unsafe_promise_clamped((b * rows + r + rows) * stride_h, 0, in.dim(1).extent() - 1);
    value = with_prefetch(value, in(unsafe_promise_clamped(x, 0, in.dim(0).extent() - 1), y, g, n));
    out(x, r, b, o, g, n) = epilogue.with_relu(value);
  }

  void schedule() {
    set_mins(in, out);
    set_any_layout(weights);
    epilogue.set_layouts();
    const Expr is_3x3 = weights.dim(0).extent() == 3 && weights.dim(1).extent() == 3;
    const Expr is_block = is_3x3 && stride_w == 1 && stride_h == 1 && dilation_h == 1 &&
                          dilation_w == 1 && out.dim(0).extent() >= kWide &&
                          out.dim(1).extent() >= kRows;
    Func func = out;
    tile(func.specialize(is_block && epilogue.is_plain()), kWide, kRows);
    tile(func.specialize(is_block && epilogue.has_residual == 0), kWide, kRows);
    tile(func.specialize(stride_w == 1 && out.dim(0).extent() >= kLanes), kLanes, 1);
    tile(func, kLanes / 2, 1);
    product.compute_at(out, xo).store_in(MemoryType::Stack);
    product.bound_storage(x, kWide).bound_storage(r, kRows);
    for (bool is_update : {false, true}) {
      Stage stage = is_update ? product.update() : Stage(product);
      if (is_update) stage.reorder(x, r, taps.x, taps.y);
      Stage block = stage.specialize(is_block);
      block.vectorize(x, kLanes).unroll(x).unroll(r);
      if (is_update) block.unroll(taps.x).unroll(taps.y);
      stage.specialize(stride_w == 1 && out.dim(0).extent() >= kLanes).vectorize(x, kLanes);
      stage.specialize(stride_w == 2).vectorize(x, kLanes / 2);
      stage.vectorize(x, kLanes / 2);
    }
    schedule_padded(LoopLevel(out, b));
  }

 private:
  void tile(Stage stage, int lanes, int height) {
    const int vector = std::min(lanes, kLanes);
    stage.split(x, xo, xi, lanes, TailStrategy::ShiftInwards)
        .split(xi, xv, xi, vector)
        .split(r, ro, ri, height, TailStrategy::ShiftInwards)
        .reorder({xi, xv, ri, xo, ro, o, b, g, n})
        .vectorize(xi)
        .unroll(xv)
        .unroll(ri)
        .gpu_blocks(b, g, n)
        .never_partition_all();
  }

  Var x{"x"}, r{"r"}, o{"o"}, xo{"xo"}, xi{"xi"}, xv{"xv"}, ro{"ro"}, ri{"ri"};
  Func product{"product"};
  RDom taps;
};

class ConvDepthWeight : public DepthGenerator<ConvDepthWeight> {
 public:
  // Taps along both axes, whose sums are registers then, for strides and dilations of 1; or any,
  // on the stack.
  GeneratorParam<int> square{"square", 0};

  Input<Buffer<float, 4>> in{"in"};   // (x, y, g, n)
  Input<Buffer<float, 6>> dy{"dy"};   // (x, r, b, channel of the group, g, n): y = b rows + r
  Output<Buffer<float, 4>> dw{"dw"};  // (kx, ky, channel, g)

  void generate() {
    pad(in, dw.dim(1).extent());
    const Expr width = dy.dim(0).extent();
    // A row's last vector ends with the row; in the lanes that it shares with the one before, dy is
    // zero, and in rows beyond the last.
    pixels = RDom({{0, kRows},
                   {0, (width + kLanes - 1) / kLanes},
                   {0, (dy.dim(1).extent() + kRows - 1) / kRows},
                   {0, dy.dim(2).extent()},
                   {0, dy.dim(5).extent()}},
                  "pixels");
    const RVar column_block = pixels[1], block = pixels[3], image = pixels[4];
    const Expr start = min(column_block * kLanes, width - kLanes),
               given_row = pixels[2] * kRows + pixels[0], row = min(given_row, rows - 1);
    // Written so that rows that two taps share are the same address, and one load.
    const Expr row_of_tap =
        square > 0 ? pixels[2] * kRows + (pixels[0] + ky) : given_row * stride_h + ky * dilation_h;
    const Expr column = square > 0 ? start + l + kx : (start + l) * stride_w + kx * dilation_w;
    const Expr place = row_of_tap * pitch + column;
    lanes(l, kx, ky, o, g) = 0.0f;
    const Expr old = lanes(l, kx, ky, o, g);
    const Expr given = select(start + l >= select(given_row < rows, column_block * kLanes, width),
                              dy(start + l, row, block, o, g, image), 0.0f);
    Expr sum = fma_f32(padded(place, block, g, image), given, old);
    if (square > 0) {
      // Planes of the next image are far from these: what is read there is asked for now.
      const Expr y = (block * rows + row) * stride_h;
      const Expr next = unsafe_promise_clamped(image + 1, 0, dy.dim(5).extent() - 1);
      const Expr next_x =
                     in(start + l, unsafe_promise_clamped(y, 0, in.dim(1).extent() - 1), g, next),
                 next_dy = dy(start + l, row, block, o, g, next);
      sum = select(kx == 0 && ky == 0, with_prefetch(sum, next_x), kx == 0 && ky == 1,
                   with_prefetch(sum, next_dy), sum);
    }
    lanes(l, kx, ky, o, g) = sum;
    dw(kx, ky, o, g) = pairwise_sum(kLanes, [&](int i) { return Expr(lanes(i, kx, ky, o, g)); });
  }

  void schedule() {
    for (int d = 0; d < 4; ++d) {
      in.dim(d).set_min(0);
      dw.dim(d).set_min(0);
    }
    for (int d = 0; d < 6; ++d) dy.dim(d).set_min(0);
    Func(dw).gpu_blocks(o, g).never_partition_all();
    lanes.compute_at(dw, o).bound_extent(l, kLanes).vectorize(l);
    Stage update = lanes.update();
    update.reorder({l, kx, ky, pixels[0], pixels[1], pixels[2], pixels[3], pixels[4], o, g});
    update.vectorize(l);
    if (square > 0) {
      for (int d = 0; d < 2; ++d) dw.dim(d).set_bounds(0, square);
      lanes.store_in(MemoryType::Register).bound_extent(kx, square).bound_extent(ky, square);
      lanes.unroll(kx).unroll(ky);
      update.unroll(kx).unroll(ky).unroll(pixels[0]);
      Func(dw).unroll(kx).unroll(ky);
    } else {
      lanes.store_in(MemoryType::Stack).bound_storage(kx, kDepthTaps).bound_storage(ky, kDepthTaps);
    }
    schedule_padded(LoopLevel(lanes, pixels[3]));
  }

 private:
  Var l{"l"}, kx{"kx"}, ky{"ky"}, o{"o"};
  Func lanes{"lanes"};
  RDom pixels;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepth, conv_depth)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthWeight, conv_depth_weight)
