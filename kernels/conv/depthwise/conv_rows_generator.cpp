// Convolution with few output channels per group (depthwise above all) on CPUs: lanes are pixels of
// a row, weights are broadcast, and nothing is packed. The bandwidth decides: x and y are read and
// written once.
//
//   conv_rows         y (or dx, with flipped weights) from padded planes
//   conv_weight_rows  dw: sums over pixels in 16 partial sums per tap, added at the end
//
// Planes come with zeros around them (conv_pad); with a stride along x the pad kernel's rows are
// read at symbolic strides.
#include "kernels/conv/conv_recipe.h"
#include "kernels/conv/depthwise/conv_rows.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/pairwise_sum.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

// Results of a work-item in flight.
constexpr int kWide = 2 * kLanes, kRows = kConvRows;

class ConvRows : public Generator<ConvRows> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  // Of windows so many taps squared without strides and dilation, which rows of x they share is
  // known. Results are kRows x kLanes and more, and have no residual. 0: any windows.
  GeneratorParam<int> dense{"dense", 0};

  Input<int> stride_h{"stride_h"}, stride_w{"stride_w"}, dilation_h{"dilation_h"},
      dilation_w{"dilation_w"}, is_flipped{"is_flipped"},
      row_blocks_per_group{"row_blocks_per_group"};
  Input<Buffer<float, 5>> in{"in"};            // (x, y, channel, group, n), padded
  Input<Buffer<float, 5>> weights{"weights"};  // (kx, ky, channel, out channel, group)
  EpilogueInputs<2, 5> epilogue;               // its channel: (out channel, group)
  Output<Buffer<float, 5>> out{"out"};         // (x, y, out channel, group, n)

  void generate() {
    const auto known = [&](int value, const Expr& other) { return dense ? Expr(value) : other; };
    const Expr kernel_w = known(dense, weights.dim(0).extent()),
               kernel_h = known(dense, weights.dim(1).extent());
    taps = RDom(0, kernel_w, 0, kernel_h, 0, weights.dim(2).extent(), "taps");
    const Expr kx = flipped_if(is_flipped, taps.x, kernel_w),
               ky = flipped_if(is_flipped, taps.y, kernel_h);
    product(x, y, o, g, n) = 0.0f;
    const auto seen = [&](const Expr& channel) {
      return Expr(in(x * known(1, stride_w) + taps.x * known(1, dilation_w),
                     y * known(1, stride_h) + taps.y * known(1, dilation_h), channel, g, n));
    };
    const Expr sum = fma_f32(seen(taps.z), weights(kx, ky, taps.z, o, g), product(x, y, o, g, n));
    // Channels are pages apart: of later ones rows that no block before has seen are asked for.
    const bool asks = dense != 0;
    const Expr is_new = taps.x == 0 && taps.y == kernel_h - 1;
    product(x, y, o, g, n) =
        asks ? select(is_new, with_prefetch(sum, seen(taps.z + kAhead)), sum) : sum;
    out(x, y, o, g, n) =
        epilogue.with_relu(epilogue.with_terms(product(x, y, o, g, n), {o, g}, {x, y, o, g, n}));
  }

  void schedule() {
    set_mins(in, out);
    set_any_layout(weights);
    if (dense) {
      weights.dim(0).set_bounds(0, dense).set_stride(1);
      weights.dim(1).set_bounds(0, dense).set_stride(dense);
    }
    epilogue.set_layouts();
    const Expr width = out.dim(0).extent(), height = out.dim(1).extent();
    const Expr is_dense =
        width >= kLanes && height >= kRows && stride_w == 1 && epilogue.has_residual == 0;
    Var xo("xo"), xi("xi"), xv("xv"), yo("yo"), yi("yi"), og("og");
    Func func = out;
    func.fuse(o, g, og);
    const auto split = [&](Stage stage, int64_t lanes, int64_t rows) {
      stage.split(x, xo, xi, int(lanes), TailStrategy::ShiftInwards)
          .split(xi, xv, xi, std::min<int>(int(lanes), kLanes))
          .split(y, yo, yi, int(rows), TailStrategy::ShiftInwards)
          .split(yo, block, yo, row_blocks_per_group, TailStrategy::GuardWithIf)
          .reorder(xi, xv, yi, xo, yo, block, og, n)
          .unroll(xv)
          .unroll(yi)
          .gpu_blocks(block, og, n)
          .never_partition_all();
      if (lanes > 1) stage.vectorize(xi);
    };
    if (dense) {
      split(func.specialize(width >= kWide), kWide, kRows);
      split(Stage(func), kLanes, kRows);
    } else {
      split(func.specialize(is_dense), kLanes, kRows);
      split(func.specialize(width >= kLanes), kLanes, 1);
      split(Stage(func), 1, 1);
    }
    product.compute_at(out, xo).store_in(MemoryType::Stack);
    product.bound_storage(x, kWide).bound_storage(y, kRows);
    product.update().reorder(x, y, taps.x, taps.y, taps.z);
    for (Stage stage : {Stage(product), product.update()}) {
      if (dense) {
        stage.vectorize(x, kLanes).unroll(x).unroll(y);
        continue;
      }
      stage.specialize(is_dense).vectorize(x, kLanes).unroll(x).unroll(y);
      stage.specialize(width >= kLanes).vectorize(x, kLanes);
    }
    if (dense) product.update().unroll(taps.x).unroll(taps.y);
  }

 private:
  static constexpr int kAhead = 2;
  Var x{"x"}, y{"y"}, o{"o"}, g{"g"}, n{"n"}, block{"block"};
  Func product{"product"};
  RDom taps;
};

class ConvWeightRows : public Generator<ConvWeightRows> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> dense{"dense", 0};  // as above, of results of kLanes columns and more

  Input<int> stride_h{"stride_h"}, stride_w{"stride_w"}, dilation_h{"dilation_h"},
      dilation_w{"dilation_w"};
  Input<Buffer<float, 5>> in{"in"};   // (x, y, channel, group, n), padded
  Input<Buffer<float, 5>> dy{"dy"};   // (x, y, out channel, group, n)
  Output<Buffer<float, 5>> dw{"dw"};  // (kx, ky, channel, out channel, group)

  void generate() {
    const Expr width = dy.dim(0).extent(), rows = dy.dim(1).extent(), images = dy.dim(4).extent();
    const Expr has_lanes = dense ? Expr(true) : width >= kLanes;
    const auto product = [&](const Expr& px, const Expr& py, const Expr& n, const Expr& total) {
      const Expr x = dense ? px + kx : px * stride_w + kx * dilation_w,
                 y = dense ? py + ky : py * stride_h + ky * dilation_h;
      return fma_f32(in(x, y, c, g, n), dy(px, py, o, g, n), total);
    };
    // A row's last vector ends with the row; the lanes that it shares with the one before are off.
    pixels =
        RDom(0, select(has_lanes, (width + kLanes - 1) / kLanes, 0), 0, rows, 0, images, "pixels");
    const Expr start = min(pixels.x * kLanes, width - kLanes);
    lanes(l, kx, ky, c, o, g) = 0.0f;
    const Expr old = lanes(l, kx, ky, c, o, g);
    lanes(l, kx, ky, c, o, g) =
        select(start + l >= pixels.x * kLanes, product(start + l, pixels.y, pixels.z, old), old);
    tail = RDom(0, select(has_lanes, 0, width), 0, rows, 0, images, "tail");
    rest(kx, ky, c, o, g) = 0.0f;
    rest(kx, ky, c, o, g) = product(tail.x, tail.y, tail.z, rest(kx, ky, c, o, g));
    const Expr total = pairwise_sum(kLanes, [&](int i) { return Expr(lanes(i, kx, ky, c, o, g)); });
    dw(kx, ky, c, o, g) = strict_float(total + rest(kx, ky, c, o, g));
  }

  void schedule() {
    set_mins(in, dy, dw);
    const int taps = dense ? int{dense} : 1;  // along an axis, at a time
    Var xo("xo"), yo("yo");
    if (dense) {
      for (int d = 0; d < 2; ++d) dw.dim(d).set_bounds(0, taps);
    }
    Func(dw)
        .split(kx, xo, kx, taps, TailStrategy::RoundUp)
        .split(ky, yo, ky, taps, TailStrategy::RoundUp)
        .reorder(kx, ky, xo, yo, c, o, g)
        .gpu_blocks(c, o, g)
        .never_partition_all();
    for (Func f : {lanes, rest}) {
      f.compute_at(dw, xo)
          .store_in(MemoryType::Stack)
          .bound_storage(kx, taps)
          .bound_storage(ky, taps);
    }
    lanes.bound_extent(l, kLanes).vectorize(l);
    Stage update = lanes.update().reorder(l, kx, ky, pixels.x, pixels.y, pixels.z).vectorize(l);
    if (dense) update.unroll(kx).unroll(ky);
    rest.update().reorder(kx, ky, tail.x, tail.y, tail.z);
  }

 private:
  Var l{"l"}, kx{"kx"}, ky{"ky"}, c{"c"}, o{"o"}, g{"g"};
  Func lanes{"lanes"}, rest{"rest"};
  RDom pixels, tail;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvRows, conv_rows)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWeightRows, conv_weight_rows)
