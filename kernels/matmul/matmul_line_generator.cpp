// A vector times a matrix where both are contiguous along k: x B' or A x. An element is a sum of as
// many fma chains as a vector has lanes, one per lane, over k in steps of so many; what is left is
// a last vector that begins before its end, whose lanes that were added already count nothing. A
// panel's chains are folded into one vector, whose lanes are its elements: shuffles are a quarter
// of those that turn the panel (matmul_vector_generator.cpp).
#include "kernels/matmul/matmul_kernel.h"
#include "kernels/recipe/shuffle.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

class MatmulLine : public MatmulKernel<MatmulLine> {
 public:
  GeneratorParam<int> lanes{"lanes", kLanes};  // of a vector; rows of the matrix in a panel

  Input<Buffer<float, 5>> a{"a"};        // [1][k], k at least the lanes
  Input<Buffer<float, 5>> b{"b"};        // [k][lane], as many lanes at least
  Input<Buffer<float, 1>> bias{"bias"};  // along the lanes
  Input<Buffer<float, 5>> extra{"extra"};
  Input<int> panels_per_group{"panels_per_group"};
  Input<int> has_bias{"has_bias"};
  Input<int> activation{"activation"};
  Input<int> extra_mode{"extra_mode"};
  Output<Buffer<float, 5>> out{"out"};  // [1][lane]

  void generate() {
    // Algorithm. The last panel begins before the end of the one before it.
    const Expr steps = a.dim(0).extent(), whole = steps / lanes, left = steps % lanes;
    const Expr last = b.dim(0).extent() - lanes;
    const auto first = [&](const Expr& panel) { return min(panel * lanes, last); };
    const RDom k({{0, kSteps}, {0, whole / kSteps}}, "k"), rest(0, whole % kSteps, "rest"),
        behind(0, min(left, 1), "behind");
    Func chains("chains"), staged("staged");
    const std::vector<Expr> at = std::vector<Expr>{c, l} + which;
    const auto a_at = [&](const Expr& step) { return Expr(a(std::vector<Expr>{step, 0} + batch)); };
    const auto b_at = [&](const Expr& step) {
      return Expr(b(std::vector<Expr>{first(p) + l, step} + batch));
    };
    const auto counted = [&](const Expr& value) { return select(c >= lanes - left, value, 0.0f); };
    const Expr rest_step = (whole / kSteps * kSteps + rest) * lanes + c,
               step = (k.y * kSteps + k.x) * lanes + c, last_step = steps - lanes + c + behind;
    chains(at) = 0.0f;
    chains(at) = fma_f32(a_at(step), b_at(step), chains(at));
    chains(at) = fma_f32(a_at(rest_step), b_at(rest_step), chains(at));
    chains(at) = fma_f32(counted(a_at(last_step)), counted(b_at(last_step)), chains(at));
    const std::vector<Func> folded = fold(chains);
    staged(std::vector<Expr>{l, v, y} + which) = folded.back()(std::vector<Expr>{l, 0} + which);
    MatmulEpilogue epilogue(staged, 1, 1, which);
    epilogue.add_bias(has_bias != 0, [&](const Expr& lane, const Expr&, const Expr&) {
      return bias(min(first(p) + lane, bias.dim(0).extent() - 1));
    });
    epilogue.add_activations(activation);
    epilogue.add_extra(extra_mode, false, [&](const Expr& lane, const Expr&, const Expr&) {
      return extra(std::vector<Expr>{first(p) + lane, 0} + batch);
    });
    const Expr panel = x / lanes;
    out(std::vector<Expr>{x, y} + batch) = staged(
        std::vector<Expr>{unsafe_promise_clamped(x - first(panel), 0, lanes - 1), 0, 0, panel, y} +
        batch);
    for (auto* tensor : {&a, &b, &extra}) set_any_layout(*tensor);
    a.dim(0).set_stride(1);
    b.dim(1).set_stride(1);
    set_any_layout(out);
    out.dim(1).set_extent(1);
    bias.dim(0).set_min(0);

    // Schedule: a group has some panels.
    Var group("group");
    Func store = out;
    store.split(x, xo, xi, lanes, TailStrategy::GuardWithIf)
        .split(xo, group, xo, panels_per_group, TailStrategy::GuardWithIf)
        .reorder(xi, y, xo, z1, z2, group, z0)
        .gpu_blocks(group, z0)
        .never_partition_all();
    staged.compute_at(store, y).store_in(MemoryType::Stack).vectorize(l);
    bound_tile(staged, which, lanes, 1, 1);
    staged.bound(l, 0, lanes);
    chains.compute_at(staged, Var::outermost()).store_in(MemoryType::Register);
    chains.bound_extent(c, lanes).bound_extent(l, lanes).vectorize(c).unroll(l);
    // Rows that are pages apart share a set of the first cache: some steps of each at a time.
    chains.update(0).reorder({c, k.x, l, k.y, p, t, z0, z1, z2});
    chains.update(1).reorder({c, l, rest, p, t, z0, z1, z2});
    chains.update(2).reorder({c, l, behind, p, t, z0, z1, z2});
    for (int i = 0; i < 3; ++i) chains.update(i).vectorize(c).unroll(l);
    chains.update(0).unroll(k.x);
    for (const Var& one : which) chains.bound_extent(one, 1);
    int vectors = lanes;
    for (Func sum : folded) {
      vectors /= 2;
      sum.compute_at(staged, Var::outermost()).store_in(MemoryType::Register);
      sum.bound_extent(c, lanes).bound_extent(g, vectors).vectorize(c).unroll(g);
      for (const Var& one : which) sum.bound_extent(one, 1);
    }
  }

 private:
  // Two vectors become one that has both halves' sums side by side: first of far vectors, whose
  // halves and then quarters are whole parts of 16 bytes, then within these, of neighbours. The
  // last vector's lanes are in order.
  std::vector<Func> fold(const Func& chains) {
    const int width = lanes;
    std::vector<Func> sums = {chains};
    for (int vectors = width / 2; vectors >= 1; vectors /= 2) {
      const bool is_far = vectors >= 4;
      const int part = is_far ? vectors : 0;  // lanes that stay together
      std::vector<int> low, high;
      for (int lane = 0; lane < width; ++lane) {
        const int block = lane / 4 * 4, within = lane % 4;
        if (is_far) {
          const int of_pair = lane / part % 2, first = lane / (2 * part) * 2 * part;
          low.push_back(of_pair * width + first + lane % part);
          high.push_back(low.back() + part);
        } else if (vectors == 2) {
          low.push_back(within % 2 * width + block + within / 2);
          high.push_back(low.back() + 2);
        } else {
          low.push_back(within / 2 * width + block + within % 2);
          high.push_back(low.back() + 2);
        }
      }
      const Func before = sums.back();
      const auto vector = [&](const Expr& number) {
        return Expr(before(std::vector<Expr>{c, number} + which));
      };
      const Expr first = vector(is_far ? g : g * 2),
                 second = vector(is_far ? g + vectors : g * 2 + 1);
      Func sum("fold" + std::to_string(vectors));
      sum(std::vector<Expr>{c, g} + which) =
          strict_float(take_lanes(first, second, low) + take_lanes(first, second, high));
      sums.push_back(sum);
    }
    sums.erase(sums.begin());
    return sums;
  }

  static constexpr int kSteps = 4;
  const std::vector<Var> which{p, t, z0, z1, z2};
  Var c{"c"}, g{"g"};  // a chain's lane, a vector of several
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulLine, matmul_line)
