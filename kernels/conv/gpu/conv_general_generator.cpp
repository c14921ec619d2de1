// Convolution and its gradients for any shape, one work-item per element of the result (of the
// weights', for each part of the sum). Indices outside x add nothing.
#include "kernels/conv/gpu/conv_window.h"
#include "kernels/pointwise/pointwise_math.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kItems = 64;

// `at`, which lies in the dimension.
template <class Tensor>
Expr promised(const Expr& at, Tensor& tensor, int dimension) {
  return unsafe_promise_clamped(at, 0, tensor.dim(dimension).extent() - 1);
}

// tensor(x, y, c, n) where x and y lie in it and `is_wanted`, else 0.
template <class Tensor>
Expr one_or_zero(Tensor& tensor, const Expr& x, const Expr& y, const Expr& c, const Expr& n,
                 const Expr& is_wanted) {
  const Expr width = tensor.dim(0).extent(), height = tensor.dim(1).extent();
  const Expr value = tensor(clamp(x, 0, width - 1), clamp(y, 0, height - 1), promised(c, tensor, 2),
                            promised(n, tensor, 3));
  return select(is_below(x, width) && is_below(y, height) && is_wanted, value, 0.0f);
}

// A total for every pixel of every plane.
template <class Derived>
class PlanesGenerator : public WindowGenerator<Derived> {
 protected:
  Var pixel{"pixel"}, plane{"plane"};
  Func total_{"total"};  // (pixel, plane)
  Func begin_{"begin"};  // likewise: what its sum begins with, whose divisions are done once

  // Where a total belongs.
  struct Place {
    template <class Result>
    Place(const Expr& pixel, const Expr& plane, const Result& out)
        : y(over(pixel, out.dim(0).extent())),
          x(pixel - y * out.dim(0).extent()),
          n(over(plane, out.dim(2).extent())),
          c(plane - n * out.dim(2).extent()) {}
    Expr y, x, n, c;
  };

  // Taps of a row are written out where there are few, so that what they have in common in all rows
  // and channels is computed once.
  void add(const RDom& r, const Expr& taps, const Expr& left, const Expr& right) {
    total_(pixel, plane) = 0.0f;
    total_(pixel, plane) = fma_f32(left, right, total_(pixel, plane));
    for (int few : {2, 3, 4, 5}) total_.update().specialize(taps == few).unroll(r.x);
  }

  // Stores value(total, place) of every total: an item takes a pixel. Where one of `cases` is true
  // a kernel of its own does.
  template <class Value>
  void store(Halide::GeneratorOutput<Buffer<float, 4>>& out, const Value& value,
             const std::vector<Expr>& cases) {
    const Expr pixels = out.dim(0).extent() * out.dim(1).extent();
    RDom all({{0, kItems},
              {0, (pixels + kItems - 1) / kItems},
              {0, out.dim(2).extent() * out.dim(3).extent()}},
             "all");
    const Expr at_pixel = all.y * kItems + all.x;
    all.where(at_pixel < pixels);
    const Place at(at_pixel, all.z, out);
    const std::vector<Expr> place = {promised(at.x, out, 0), promised(at.y, out, 1),
                                     promised(at.c, out, 2), promised(at.n, out, 3)};
    Func stored = out;
    stored(Var(), Var(), Var(), Var()) = undef<float>();
    stored(place) = value(total_(at_pixel, all.z), place);
    const auto schedule = [&](Stage stage) {
      stage.allow_race_conditions()
          .gpu_blocks(all.y, all.z)
          .gpu_threads(all.x)
          .never_partition_all();
    };
    for (const Expr& one : cases) schedule(stored.update().specialize(one));
    schedule(stored.update());
    for (Func of_item : {begin_, total_}) {
      of_item.compute_at(stored, all.x).store_in(MemoryType::Stack);
      of_item.bound_extent(pixel, 1).bound_extent(plane, 1);
    }
  }
};

class ConvGeneral : public ForwardOperands<PlanesGenerator<ConvGeneral>> {
 public:
  void generate() {
    const Expr group_inputs = weights.dim(2).extent();
    RDom r(0, weights.dim(0).extent(), 0, weights.dim(1).extent(), 0, group_inputs);
    const Place at(pixel, plane, out);
    begin_(pixel, plane) = {at.x * stride_w - left, at.y * stride_h - top,
                            over(at.c, group_outputs) * group_inputs, at.c, at.n};
    const FuncRef begin = begin_(pixel, plane);
    const Expr x = begin[0] + r.x * dilation_w, y = begin[1] + r.y * dilation_h;
    const Expr value = one_or_zero(in, x, y, begin[2] + r.z, begin[4], Internal::const_true());
    add(r, weights.dim(0).extent(), value, weights(r.x, r.y, r.z, promised(begin[3], weights, 3)));
    store(out,
          [&](const Expr& sum, const std::vector<Expr>& place) {
            return epilogue.with_relu(epilogue.with_terms(sum, {place[2]}, place));
          },
          {});
    set_layouts();
  }
};

// Towards the input. Of the taps along an axis, those that hit an element of dy lie `period` apart
// and what they hit `step` apart, downwards; only they are visited, and none where a place is no
// multiple of what stride and dilation have in `common`.
class ConvInputGradGeneral : public PlanesGenerator<ConvInputGradGeneral> {
 public:
  Input<Buffer<float, 4>> dy{"dy"};
  Input<Buffer<float, 4>> weights{"weights"};
  Input<int> group_outputs{"group_outputs"};
  // dilation = step * common, stride = period * common; step * inverse = 1 modulo the period
  Input<int> step_h{"step_h"}, period_h{"period_h"}, common_h{"common_h"}, inverse_h{"inverse_h"};
  Input<int> step_w{"step_w"}, period_w{"period_w"}, common_w{"common_w"}, inverse_w{"inverse_w"};
  Input<int> taps_h{"taps_h"}, taps_w{"taps_w"};  // of a place: kernel / period, rounded up
  Output<Buffer<float, 4>> dx{"dx"};

  void generate() {
    const Expr group_inputs = weights.dim(2).extent();
    const Expr wide = weights.dim(0).extent(), high = weights.dim(1).extent();
    RDom r(0, taps_w, 0, taps_h, 0, group_outputs);
    const Place at(pixel, plane, dx);
    const Taps taps_x(at.x + left, {step_w, period_w, common_w, inverse_w}),
        taps_y(at.y + top, {step_h, period_h, common_h, inverse_h});
    const Expr group = over(at.c, group_inputs);
    begin_(pixel, plane) = {taps_x.highest,
                            taps_y.highest,
                            taps_x.first,
                            taps_y.first,
                            at.c - group * group_inputs,
                            group * group_outputs,
                            at.n};
    const FuncRef begin = begin_(pixel, plane);
    const Expr x = begin[0] - r.x * step_w, y = begin[1] - r.y * step_h;
    const Expr tap_x = begin[2] + r.x * period_w, tap_y = begin[3] + r.y * period_h;
    const Expr o = begin[5] + r.z;
    const Expr value = one_or_zero(dy, x, y, o, begin[6], tap_x < wide && tap_y < high);
    const Expr weight = weights(promised(min(tap_x, wide - 1), weights, 0),
                                promised(min(tap_y, high - 1), weights, 1),
                                promised(begin[4], weights, 2), promised(o, weights, 3));
    add(r, taps_w, value, weight);
    const Expr has_no_strides = period_w == 1 && period_h == 1 && common_w == 1 && common_h == 1;
    store(dx, [](const Expr& sum, const std::vector<Expr>&) { return sum; }, {has_no_strides});
    set_mins(dy, weights, dx);
  }

 private:
  struct Steps {
    Expr step, period, common, inverse;
  };
  // The first of the taps along an axis that a place (of x with its padding) belongs to, and what
  // of dy it hits, or -1.
  struct Taps {
    Taps(const Expr& place, const Steps& s) {
      const Expr multiple = over(place, s.common);
      const Expr whole = over(multiple, s.period), rest = multiple - whole * s.period;
      first = modulo(rest * s.inverse, s.period);
      // Without dilation this difference is 0.
      const Expr before = div_round_to_zero(rest - first * s.step, s.period);
      highest = select(multiple * s.common == place, whole + before, -1);
    }
    Expr first, highest;
  };
};

class ConvWeightGradGeneral : public WindowGenerator<ConvWeightGradGeneral> {
 public:
  Input<Buffer<float, 4>> dy{"dy"};
  Input<Buffer<float, 4>> in{"in"};
  Input<int> group_outputs{"group_outputs"};
  Input<int> kernel_w{"kernel_w"}, kernel_h{"kernel_h"}, group_inputs{"group_inputs"};
  Input<int> rows{"rows"}, chunks{"chunks"};  // of y in a part, and parts of a sample
  Output<Buffer<float, 2>> dw{"dw"};          // (weight: kx, ky, c and o; part)

  void generate() {
    const Expr kx = x % kernel_w, ky = x / kernel_w % kernel_h;
    const Expr c = x / (kernel_w * kernel_h) % group_inputs;
    const Expr o = x / (kernel_w * kernel_h * group_inputs);
    const Expr sample = y / chunks;
    Func total("total");
    RDom r(0, dy.dim(0).extent(), 0, rows);
    const Expr row = y % chunks * rows + r.y;
    r.where(row < dy.dim(1).extent() && sample < dy.dim(3).extent());
    const Expr value =
        or_zero(in, r.x * stride_w + kx * dilation_w - left, row * stride_h + ky * dilation_h - top,
                o / group_outputs * group_inputs + c, sample);
    total(x, y) = 0.0f;
    total(x, y) = fma_f32(value, dy(r.x, row, o, sample), total(x, y));
    dw(x, y) = total(x, y);

    set_mins(dy, in, dw);
    const Var group("group"), item("item");
    dw.split(x, group, item, kItems, TailStrategy::GuardWithIf)
        .gpu_blocks(group, y)
        .gpu_threads(item)
        .never_partition_all();
    total.compute_at(dw, item).store_in(MemoryType::Stack).bound_extent(x, 1).bound_extent(y, 1);
  }

 private:
  Var x{"x"}, y{"y"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvGeneral, conv_general)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvInputGradGeneral, conv_input_grad_general)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWeightGradGeneral, conv_weight_grad_general)
