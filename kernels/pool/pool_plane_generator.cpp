// Averages of whole planes on CPUs, and their gradients, which are the same number for all of a
// plane. 16 planes at a time: each is summed into a vector, its last
// elements with those masked that were counted already; the 16 vectors are transposed in registers,
// and their sum is 16 averages. Planes of at least 16 elements, at least 16 of them.
#include "kernels/recipe/lanes.h"
#include "kernels/recipe/layout.h"
#include "kernels/recipe/pairwise_sum.h"

#include <Halide.h>

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

class PoolPlane : public Generator<PoolPlane> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> steps_per_group{"steps_per_group"};
  Input<float> share{"share"};
  Input<Buffer<float, 2>> in{"in"};  // (element, plane)
  Output<Buffer<float, 1>> out{"out"};

  void generate() {
    const Expr length = in.dim(0).extent(), planes = out.dim(0).extent();
    const Expr plane = min(v * kLanes, planes - kLanes) + r, rest = length % kLanes;
    whole = RDom(0, length / kLanes, "whole");
    part(l, r, v) = select(l >= kLanes - rest, in(length - kLanes + l, plane), 0.0f);
    part(l, r, v) = strict_float(part(l, r, v) + in(whole * kLanes + l, plane));
    turned = {part};
    // A perfect shuffle of the block's 256 elements, four times, is its transpose.
    for (int i = 1; i <= 4; ++i) {
      Func next("turned" + std::to_string(i));
      next(l, r, v) = turned.back()((r % 2) * 8 + l / 2, r / 2 + (l % 2) * 8, v);
      turned.push_back(next);
    }
    const Expr total = pairwise_sum(kLanes, [&](int i) { return Expr(turned.back()(l, i, v)); });
    mean(l, v) = strict_float(total * share);
    step = RDom(0, kLanes, 0, steps_per_group, 0,
                ((planes + kLanes - 1) / kLanes + steps_per_group - 1) / steps_per_group, "step");
    const Expr at = step.z * steps_per_group + step.y;
    step.where(at < (planes + kLanes - 1) / kLanes);
    out(p) = undef<float>();
    out(min(at * kLanes, planes - kLanes) + step.x) = mean(step.x, at);
  }

  void schedule() {
    set_mins(in, out);
    out.update().allow_race_conditions().vectorize(step.x).gpu_blocks(step.z).never_partition_all();
    const auto keep = [&](Func func) {
      func.compute_at(out, step.y).store_in(MemoryType::Register);
      func.bound_extent(l, kLanes).bound_extent(v, 1).vectorize(l);
    };
    for (Func func : turned) {
      keep(func);
      func.bound_extent(r, kLanes).unroll(r);
    }
    part.update().reorder(l, r, whole, v).vectorize(l).unroll(r);
    keep(mean);
  }

 private:
  Var l{"l"}, r{"r"}, v{"v"}, p{"p"};
  Func part{"part"}, mean{"mean"};
  std::vector<Func> turned;
  RDom whole, step;
};

class PoolPlaneGrad : public Generator<PoolPlaneGrad> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> planes_per_group{"planes_per_group"};
  Input<float> share{"share"};
  Input<Buffer<float, 1>> dy{"dy"};   // (plane)
  Output<Buffer<float, 2>> dx{"dx"};  // (element, plane)

  void generate() {
    const Expr length = dx.dim(0).extent();
    step = RDom(0, kLanes, 0, (length + kLanes - 1) / kLanes, "step");
    dx(x, p) = undef<float>();
    dx(min(step.y * kLanes, length - kLanes) + step.x, p) = strict_float(dy(p) * share);
  }

  void schedule() {
    set_mins(dy, dx);
    const Var group("group");
    dx.update()
        .allow_race_conditions()
        .split(p, group, p, planes_per_group, TailStrategy::GuardWithIf)
        .reorder(step.x, step.y, p, group)
        .vectorize(step.x)
        .gpu_blocks(group)
        .never_partition_all();
  }

 private:
  Var x{"x"}, p{"p"};
  RDom step;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PoolPlane, pool_plane)
HALIDE_REGISTER_GENERATOR(ballast::kernels::PoolPlaneGrad, pool_plane_grad)
