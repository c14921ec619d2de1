// Convolution and its gradients for any shape, one work-item per element of the result (of the
// weights', for each part of the sum). Indices outside x (or between the strides) count as zeros.
#include "kernels/conv/conv_window.h"
#include "kernels/pointwise/pointwise_math.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

template <class Derived>
class GeneralGenerator : public WindowGenerator<Derived> {
 protected:
  Var x{"x"}, y{"y"}, z{"z"}, n{"n"};

  // `inner` dimensions side by side are shared out among items, the others among groups.
  void schedule_elements(Func out, Func total, std::vector<Var> inner, std::vector<Var> outer) {
    constexpr int kItems = 64;
    const auto fused = [&](const std::vector<Var>& vars) {
      Var all = vars[0];
      for (size_t i = 1; i < vars.size(); ++i) {
        const Var both("both");
        out.fuse(all, vars[i], both);
        all = both;
      }
      return all;
    };
    const Var items = fused(inner), groups = fused(outer), group("group"), item("item");
    out.split(items, group, item, kItems, TailStrategy::GuardWithIf)
        .gpu_blocks(group, groups)
        .gpu_threads(item)
        .never_partition_all();
    total.compute_at(out, item).store_in(MemoryType::Stack);
    for (const std::vector<Var>& vars : {inner, outer}) {
      for (const Var& one : vars) total.bound_extent(one, 1);
    }
  }
};

class ConvGeneral : public ForwardOperands<GeneralGenerator<ConvGeneral>> {
 public:
  void generate() {
    const Expr group_inputs = weights.dim(2).extent();
    RDom r(0, weights.dim(0).extent(), 0, weights.dim(1).extent(), 0, group_inputs);
    const Expr value =
        or_zero(in, x * stride_w + r.x * dilation_w - left, y * stride_h + r.y * dilation_h - top,
                (z / group_outputs) * group_inputs + r.z, n);
    total_(x, y, z, n) = 0.0f;
    total_(x, y, z, n) = fma_f32(value, weights(r.x, r.y, r.z, z), total_(x, y, z, n));
    out(x, y, z, n) =
        epilogue.with_relu(epilogue.with_terms(total_(x, y, z, n), {z}, {x, y, z, n}));
  }

  void schedule() {
    set_layouts();
    schedule_elements(out, total_, {x, y}, {z, n});
  }

 private:
  Func total_{"total"};
};

class ConvInputGradGeneral : public InputGradOperands<GeneralGenerator<ConvInputGradGeneral>> {
 public:
  void generate() {
    const Expr group_inputs = weights.dim(2).extent();
    RDom r(0, weights.dim(0).extent(), 0, weights.dim(1).extent(), 0, group_outputs);
    const Expr at_x = x + left - r.x * dilation_w, at_y = y + top - r.y * dilation_h;
    const Expr o = (z / group_inputs) * group_outputs + r.z;
    const Expr is_hit = at_x % stride_w == 0 && at_y % stride_h == 0;
    const Expr value = select(is_hit, or_zero(dy, at_x / stride_w, at_y / stride_h, o, n), 0.0f);
    total_(x, y, z, n) = 0.0f;
    total_(x, y, z, n) = fma_f32(value, weights(r.x, r.y, z % group_inputs, o), total_(x, y, z, n));
    dx(x, y, z, n) = total_(x, y, z, n);
  }

  void schedule() {
    set_layouts();
    schedule_elements(dx, total_, {x, y}, {z, n});
  }

 private:
  Func total_{"total"};
};

class ConvWeightGradGeneral : public GeneralGenerator<ConvWeightGradGeneral> {
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
    RDom r(0, dy.dim(0).extent(), 0, rows);
    const Expr row = y % chunks * rows + r.y;
    r.where(row < dy.dim(1).extent() && sample < dy.dim(3).extent());
    const Expr value =
        or_zero(in, r.x * stride_w + kx * dilation_w - left, row * stride_h + ky * dilation_h - top,
                o / group_outputs * group_inputs + c, sample);
    total_(x, y) = 0.0f;
    total_(x, y) = fma_f32(value, dy(r.x, row, o, sample), total_(x, y));
    dw(x, y) = total_(x, y);
  }

  void schedule() {
    set_mins(dy, in, dw);
    schedule_elements(dw, total_, {x}, {y});
  }

 private:
  Func total_{"total"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvGeneral, conv_general)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvInputGradGeneral, conv_input_grad_general)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWeightGradGeneral, conv_weight_grad_general)
