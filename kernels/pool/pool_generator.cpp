// Pooling over planes. One result per lane: along x in vectors of 16 on CPUs where a row has as
// many, one per work-item on GPUs.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pool/pool_recipe.h"
#include "kernels/recipe/lanes.h"
#include "kernels/recipe/layout.h"

#include <cmath>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

template <class Derived>
class PoolGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

 protected:
  GeneratorInput<int> kernel_h{"kernel_h"}, kernel_w{"kernel_w"}, stride_h{"stride_h"},
      stride_w{"stride_w"}, top{"top"}, left{"left"}, dilation_h{"dilation_h"},
      dilation_w{"dilation_w"}, rows_per_group{"rows_per_group"};
  Var x{"x"}, y{"y"}, p{"p"};

  bool is_gpu() const { return device_class.value() == "gpu"; }

  // t / stride for 0 <= t < 2^21, without the integer division that vectors do not have: the
  // quotient of t + 1/2 is at least 1 / (2 stride) away from a whole number, its error is smaller.
  static Expr quotient(const Expr& t, const Expr& stride) {
    return cast<int>(floor((cast<float>(t) + 0.5f) * (1.0f / cast<float>(stride))));
  }

  // One axis of the windows that hold an element.
  struct Axis {
    GeneratorInput<int>&kernel, &stride, &before;
    Expr dilation, windows;
  };

  // What is visited to find them: on CPUs their taps; on GPUs the windows that reach as far, which
  // are fewer where there are strides or few windows. In the same order.
  Expr visits(const Axis& axis) const {
    if (!is_gpu()) return axis.kernel;
    return min(quotient(reach(axis) + axis.stride - 1, axis.stride), axis.windows);
  }

  // The windows that hold the element at `at`: the number of the one visited as number `visit`,
  // and whether it does.
  struct Hit {
    Expr window, exists;
  };
  Hit window_at(const Axis& axis, const Expr& at, const Expr& visit) const {
    if (is_gpu()) {
      const Expr before = at + axis.before;
      const Expr window = min(quotient(before, axis.stride), axis.windows - 1) - visit;
      const Expr offset = before - window * axis.stride;
      const Expr is_tap = quotient(offset, axis.dilation) * axis.dilation == offset;
      return {max(window, 0), window >= 0 && offset < reach(axis) && is_tap};
    }
    const Expr t = at + axis.before - visit * axis.dilation;
    const Expr window = quotient(max(t, 0), axis.stride);
    return {min(window, axis.windows - 1),
            t >= 0 && window * axis.stride == t && window < axis.windows};
  }
  static Expr reach(const Axis& axis) { return (axis.kernel - 1) * axis.dilation + 1; }

  void schedule_rows(Func out, const std::vector<Func>& stages, const std::vector<RDom>& domains,
                     const Expr& width) {
    Var xo("xo"), xi("xi"), group("group");
    if (is_gpu()) {
      Var xy("xy");
      out.fuse(x, y, xy).split(xy, xo, xi, 64, TailStrategy::GuardWithIf);
      out.gpu_blocks(xo, p).gpu_threads(xi);
      out.never_partition_all();
      for (Func stage : stages) stage.compute_at(out, xi).store_in(MemoryType::Stack);
      return;
    }
    out.split(y, group, y, rows_per_group, TailStrategy::GuardWithIf);
    out.specialize(width >= kLanes)
        .split(x, xo, xi, kLanes, TailStrategy::ShiftInwards)
        .vectorize(xi)
        .reorder(xi, xo, y, group, p)
        .gpu_blocks(group, p);
    out.split(x, xo, xi, 1, TailStrategy::RoundUp)
        .reorder(xi, xo, y, group, p)
        .gpu_blocks(group, p);
    out.never_partition_all();
    for (size_t i = 0; i < stages.size(); ++i) {
      Func stage = stages[i];
      stage.compute_at(out, xo).store_in(MemoryType::Stack);
      stage.specialize(width >= kLanes).vectorize(x, kLanes);
      stage.update().reorder(x, domains[i].x, domains[i].y);
      stage.update().specialize(width >= kLanes).vectorize(x, kLanes);
    }
  }
};

// Of every window the largest element, or its index in the plane (-1: none), or the element that
// `other` has there (0: none).
class MaxPool : public PoolGenerator<MaxPool> {
 public:
  GeneratorParam<std::string> result{"result", "value"};
  Input<Buffer<float, 3>> in{"in"};

  void configure() {
    if (result.value() == "other") other_ = add_input<Buffer<float>>("other", 2);
    const Type type = result.value() == "index" ? Int(32) : Float(32);
    out_ = add_output<Buffer<>>("out", type, 3);
  }

  void generate() {
    const Expr width = in.dim(0).extent(), height = in.dim(1).extent();
    taps_ = RDom(0, kernel_w, 0, kernel_h, "taps");
    const Expr at_x = x * stride_w + taps_.x * dilation_w - left,
               at_y = y * stride_h + taps_.y * dilation_h - top;
    const Expr is_inside = at_x >= 0 && at_x < width && at_y >= 0 && at_y < height;
    const Expr value = in(clamp(at_x, 0, width - 1), clamp(at_y, 0, height - 1), p);
    best_(x, y, p) = Tuple(Expr(-INFINITY), -1);
    const Expr old = best_(x, y, p)[0], index = best_(x, y, p)[1];
    const Expr wins =
        is_inside && (index < 0 || lt(old, value) || (ne(value, value) && eq(old, old)));
    best_(x, y, p) = Tuple(select(wins, value, old), select(wins, at_y * width + at_x, index));
    if (result.value() == "value") {
      (*out_)(x, y, p) = best_(x, y, p)[0];
    } else if (result.value() == "index") {
      (*out_)(x, y, p) = best_(x, y, p)[1];
    } else {
      const Expr winner = best_(x, y, p)[1];
      const Expr value_there = (*other_)(clamp(winner, 0, width * height - 1), p);
      (*out_)(x, y, p) = select(winner >= 0, value_there, 0.0f);
    }
  }

  void schedule() {
    set_mins(in, *out_);
    if (other_ != nullptr) set_mins(*other_);
    schedule_rows(*out_, {best_}, {taps_}, out_->dim(0).extent());
  }

 private:
  GeneratorInput<Buffer<float>>* other_ = nullptr;
  GeneratorOutput<Buffer<>>* out_ = nullptr;
  Func best_{"best"};
  RDom taps_;
};

// dx from dy and the winners' indices: every element looks for the windows it won.
class MaxPoolGrad : public PoolGenerator<MaxPoolGrad> {
 public:
  Input<Buffer<float, 3>> dy{"dy"};
  Input<Buffer<int32_t, 3>> index{"index"};
  Output<Buffer<float, 3>> dx{"dx"};

  void generate() {
    const Axis across = {kernel_w, stride_w, left, dilation_w, dy.dim(0).extent()};
    const Axis down = {kernel_h, stride_h, top, dilation_h, dy.dim(1).extent()};
    taps_ = RDom(0, visits(across), 0, visits(down), "taps");
    const Hit h = window_at(across, x, taps_.x), v = window_at(down, y, taps_.y);
    taps_.where(v.exists);
    const Expr is_won = h.exists && index(h.window, v.window, p) == y * dx.dim(0).extent() + x;
    total_(x, y, p) = 0.0f;
    total_(x, y, p) =
        strict_float(total_(x, y, p) + select(is_won, dy(h.window, v.window, p), 0.0f));
    dx(x, y, p) = total_(x, y, p);
  }

  void schedule() {
    set_mins(dy, index, dx);
    schedule_rows(dx, {total_}, {taps_}, dx.dim(0).extent());
  }

 private:
  Func total_{"total"};
  RDom taps_;
};

template <class Derived>
class AvgPoolGenerator : public PoolGenerator<Derived> {
 protected:
  GeneratorInput<int> bottom{"bottom"}, right{"right"}, counts_padding{"counts_padding"};

  // The elements that the window starting at (x, y) of a plane averages over.
  Expr count(const Expr& x, const Expr& y, const Expr& width, const Expr& height) const {
    return count_along(x, this->kernel_w, width, right, counts_padding) *
           count_along(y, this->kernel_h, height, bottom, counts_padding);
  }
};

class AvgPool : public AvgPoolGenerator<AvgPool> {
 public:
  Input<Buffer<float, 3>> in{"in"};
  Output<Buffer<float, 3>> out{"out"};

  void generate() {
    const Expr width = in.dim(0).extent(), height = in.dim(1).extent();
    const Expr start_x = x * stride_w - left, start_y = y * stride_h - top;
    taps_ = RDom(0, kernel_w, 0, kernel_h, "taps");
    const Expr at_x = start_x + taps_.x, at_y = start_y + taps_.y;
    const Expr is_inside = at_x >= 0 && at_x < width && at_y >= 0 && at_y < height;
    const Expr value = in(clamp(at_x, 0, width - 1), clamp(at_y, 0, height - 1), p);
    total_(x, y, p) = 0.0f;
    total_(x, y, p) = strict_float(total_(x, y, p) + select(is_inside, value, 0.0f));
    out(x, y, p) =
        strict_float(total_(x, y, p) / cast<float>(count(start_x, start_y, width, height)));
  }

  void schedule() {
    set_mins(in, out);
    schedule_rows(out, {total_}, {taps_}, out.dim(0).extent());
  }

 private:
  Func total_{"total"};
  RDom taps_;
};

class AvgPoolGrad : public AvgPoolGenerator<AvgPoolGrad> {
 public:
  Input<Buffer<float, 3>> dy{"dy"};
  Output<Buffer<float, 3>> dx{"dx"};

  void generate() {
    const Expr width = dx.dim(0).extent(), height = dx.dim(1).extent();
    const Axis across = {kernel_w, stride_w, left, 1, dy.dim(0).extent()};
    const Axis down = {kernel_h, stride_h, top, 1, dy.dim(1).extent()};
    taps_ = RDom(0, visits(across), 0, visits(down), "taps");
    const Hit h = window_at(across, x, taps_.x), v = window_at(down, y, taps_.y);
    taps_.where(v.exists);
    const Expr counted =
        count(h.window * stride_w - left, v.window * stride_h - top, width, height);
    const Expr share = strict_float(dy(h.window, v.window, p) / cast<float>(counted));
    total_(x, y, p) = 0.0f;
    total_(x, y, p) = strict_float(total_(x, y, p) + select(h.exists, share, 0.0f));
    dx(x, y, p) = total_(x, y, p);
  }

  void schedule() {
    set_mins(dy, dx);
    schedule_rows(dx, {total_}, {taps_}, dx.dim(0).extent());
  }

 private:
  Func total_{"total"};
  RDom taps_;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::MaxPool, max_pool)
HALIDE_REGISTER_GENERATOR(ballast::kernels::MaxPoolGrad, max_pool_grad)
HALIDE_REGISTER_GENERATOR(ballast::kernels::AvgPool, avg_pool)
HALIDE_REGISTER_GENERATOR(ballast::kernels::AvgPoolGrad, avg_pool_grad)
