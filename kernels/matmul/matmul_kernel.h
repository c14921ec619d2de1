// What the generators of matmul kernels share.
#pragma once

#include "kernels/matmul/matmul_epilogue.h"
#include "kernels/recipe/fma.h"
#include "kernels/recipe/layout.h"

#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {

inline std::vector<Halide::Expr> operator+(std::vector<Halide::Expr> head,
                                           const std::vector<Halide::Var>& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

// What both kernels share: operands and the run-time choice of the epilogue. `extra` has C's
// layout; operands that the epilogue does not use may be anything.
template <class Derived>
class MatmulKernel : public Halide::Generator<Derived> {
 public:
  Halide::GeneratorParam<std::string> device_class{"device_class", "cpu"};

  // Set where the kernel is compiled at run time (matmul_fused.h): what follows the sums instead of
  // the epilogue that arguments choose. Gives a Func of a tile's coordinates `at`, as `sums` is
  // one, that is inlined where it is used; these are at `place` in C.
  using Chain = std::function<Halide::Func(Halide::Func sums, const std::vector<Halide::Var>& at,
                                           const std::vector<Halide::Expr>& place)>;
  Chain chain;
  // With it: `value`, and requests for what the chain reads at `place` in C, made before the sums.
  using Ask = std::function<Halide::Expr(const Halide::Expr& value,
                                         const std::vector<Halide::Expr>& place)>;
  Ask ask;
  // With it, in matmul_tiles whose stores are dense: what the chain reads at `place` that is to be
  // kept beside the sums, as their Func's further values.
  using Keep = std::function<std::vector<Halide::Expr>(const std::vector<Halide::Expr>& place)>;
  Keep keep;

 protected:
  Halide::Var l{"l"}, v{"v"}, x{"x"}, y{"y"}, p{"p"}, t{"t"};
  Halide::Var xo{"xo"}, xi{"xi"}, yo{"yo"}, yi{"yi"};
  // A work-item loops over the second and third dimension of the batch.
  Halide::Var z0{"z0"}, z1{"z1"}, z2{"z2"};
  std::vector<Halide::Var> batch{z0, z1, z2};

  // The accumulators of a tile stay in registers over the whole of k.
  void schedule_product(Halide::Func product, const std::vector<Halide::Var>& which, int lanes,
                        int vectors, int rows) {
    product.store_in(Halide::MemoryType::Register).vectorize(l).unroll(v).unroll(y);
    bound_tile(product, which, lanes, vectors, rows);
  }
  void unroll_steps(Halide::Stage update, const std::vector<Halide::VarOrRVar>& order) {
    update.reorder(order).vectorize(l).unroll(v).unroll(y);
  }

  // Then they go through the stack, where loops instead of unrolled code apply the epilogue.
  void schedule_staged(Halide::Func product, Halide::Func staged,
                       const std::vector<Halide::Var>& which, int lanes, int vectors, int rows) {
    product.compute_at(staged, Halide::Var::outermost());
    staged.store_in(Halide::MemoryType::Stack).vectorize(l).unroll(v).unroll(y);
    bound_tile(staged, which, lanes, vectors, rows);
  }

  void bound_tile(Halide::Func f, const std::vector<Halide::Var>& which, int lanes, int vectors,
                  int rows) {
    f.bound_extent(l, lanes).bound_extent(v, vectors).bound_extent(y, rows);
    for (const Halide::Var& one : which) f.bound_extent(one, 1);
  }
};

// What the kernels that read panels of B share: their arguments, and the sums of a tile.
template <class Derived>
class MatmulPanels : public MatmulKernel<Derived> {
 public:
  // [first row of a tile][row][k]; where tiles may pass an edge, all rows are first ones.
  Halide::GeneratorInput<Halide::Buffer<float, 6>> a{"a"};
  // [k][first lane of a panel][vector][lane]: vectors lie a constant apart, so that a step of k is
  // one address.
  Halide::GeneratorInput<Halide::Buffer<float, 7>> b{"b"};
  Halide::GeneratorInput<Halide::Buffer<float, 1>> bias{"bias"};
  Halide::GeneratorInput<Halide::Buffer<float, 5>> extra{"extra"};
  Halide::GeneratorInput<int> panel_step{"panel_step"};  // from one panel of B to the next
  Halide::GeneratorInput<int> last_panel{"last_panel"};  // where the last one begins
  Halide::GeneratorInput<int> first_panel{"first_panel"}, panels{"panels"};  // which to compute
  Halide::GeneratorInput<int> tiles_per_group{"tiles_per_group"};
  Halide::GeneratorInput<int> panels_per_group{"panels_per_group"};  // of matmul_tiles
  Halide::GeneratorInput<int> bias_mode{"bias_mode"};                // a MatmulBias
  Halide::GeneratorInput<int> activation{"activation"};
  Halide::GeneratorInput<int> extra_mode{"extra_mode"};
  Halide::GeneratorOutput<Halide::Buffer<float, 5>> out{"out"};

 protected:
  using MatmulKernel<Derived>::l;
  using MatmulKernel<Derived>::v;
  using MatmulKernel<Derived>::p;
  using MatmulKernel<Derived>::batch;
  static constexpr int kUnrolledSteps = 4;  // of k

  Halide::Expr is_bias(MatmulBias mode) const { return bias_mode == static_cast<int>(mode); }
  Halide::Expr first_of_panel() const { return Halide::min(p * panel_step, last_panel); }
  Halide::Expr first_of_next_panel() const {
    return Halide::min(first_of_panel() + panel_step, last_panel);
  }

  // At least so many of the last steps take B's element from element(step).
  struct LastSteps {
    Halide::Expr count;
    std::function<Halide::Expr(const Halide::Expr& step)> element;
  };

  // product(at), whose first coordinates are lane and vector: the fma chain over k from +0.
  // place(step): of A's element, without the batch; b_at(step): B's element.
  template <class Place, class Element>
  void sum_over_k(Halide::Func product, const std::vector<Halide::Expr>& at, const Place& place,
                  const Element& b_at, int unrolled = kUnrolledSteps,
                  const Halide::Expr& zero = 0.0f, const LastSteps& last = {}) {
    using Halide::Expr;
    const Expr steps = a.dim(0).extent();
    const Expr turns = last.element ? max(steps - last.count, 0) / unrolled : steps / unrolled;
    k = Halide::RDom({{0, unrolled}, {0, turns}}, "k");
    rest = Halide::RDom(0, last.element ? steps - turns * unrolled : steps % unrolled, "rest");
    product(at) = zero;
    const auto add = [&](const Expr& step, const Expr& element) {
      product(at) = fma_f32(a(place(step) + batch), element, product(at));
    };
    const Expr step = k.y * unrolled + k.x, rest_step = turns * unrolled + rest;
    add(step, b_at(step));
    add(rest_step, last.element ? last.element(rest_step) : Expr(b_at(rest_step)));
  }
  Halide::Expr b_at(const Halide::Expr& step) const {
    return b(std::vector<Halide::Expr>{l, v, first_of_panel(), step} + batch);
  }

  // The bias of a panel's lanes, or what can be added without a change.
  Halide::Func bias_of_lanes(int vectors, const Halide::Expr& first_lane, int lanes = kLanes) {
    Halide::Func lane_bias("lane_bias");
    const Halide::Expr count = Halide::select(is_bias(MatmulBias::kLanes), vectors, 0);
    const Halide::RDom i({{0, lanes}, {0, count}}, "i");
    lane_bias(l, v, p) = -0.0f;
    lane_bias(i.x, i.y, p) =
        bias(Halide::min(first_lane + i.y * lanes + i.x, bias.dim(0).extent() - 1));
    lane_bias.bound_extent(l, lanes).bound_extent(v, vectors).vectorize(l);
    lane_bias.update().unscheduled();
    return lane_bias;
  }
  // Appends it to an epilogue, and returns it.
  Halide::Func add_lane_bias(MatmulEpilogue& epilogue, int vectors, const Halide::Expr& first_lane,
                             int lanes = kLanes) {
    const Halide::Func lane_bias = bias_of_lanes(vectors, first_lane, lanes);
    epilogue.add_bias(is_bias(MatmulBias::kLanes),
                      [&](const Halide::Expr& lane, const Halide::Expr& vector,
                          const Halide::Expr&) { return lane_bias(lane, vector, p); });
    return lane_bias;
  }

  void set_panel_layouts(int vectors, int lanes = kLanes) {
    set_any_layout(a, b, extra, out);
    b.dim(0).set_stride(1).set_extent(lanes);
    b.dim(1).set_stride(lanes).set_extent(vectors);
    b.dim(2).set_stride(1);
    bias.dim(0).set_min(0);
  }

  Halide::RDom k, rest;
};

}  // namespace ballast::kernels
