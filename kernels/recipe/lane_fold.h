// Folding the lanes of a vector into one value: half with half, until one is left, so that each
// step is one shuffle and one instruction. On a GPU the lanes are work-items, which share their
// values in local memory.
#pragma once

#include <Halide.h>

#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {

// What two elements, each of one or more values, become together.
using Combine = std::function<std::vector<Halide::Expr>(const std::vector<Halide::Expr>& a,
                                                        const std::vector<Halide::Expr>& b)>;

// The values of a Func, one or a Tuple.
inline std::vector<Halide::Expr> values_at(const Halide::Func& func,
                                           const std::vector<Halide::Expr>& at) {
  if (func.outputs() == 1) return {func(at)};
  std::vector<Halide::Expr> values;
  for (int k = 0; k < func.outputs(); ++k) values.push_back(func(at)[k]);
  return values;
}

class LaneFold {
 public:
  // `vector`: a value by lane (its first dimension, of `lanes`) and place.
  LaneFold(const Halide::Func& vector, int lanes, const std::vector<Halide::Var>& place,
           const Combine& combine)
      : lanes_(lanes), steps_{vector} {
    const std::vector<Halide::Expr> here(place.begin(), place.end());
    const auto at = [&](const Halide::Expr& lane) {
      std::vector<Halide::Expr> indices{lane};
      indices.insert(indices.end(), here.begin(), here.end());
      return values_at(steps_.back(), indices);
    };
    for (int left = lanes / 2; left > 1; left /= 2) {
      std::vector<Halide::Var> to{lane_};
      to.insert(to.end(), place.begin(), place.end());
      Halide::Func step(vector.name() + "_" + std::to_string(left));
      step(to) = Halide::Tuple(combine(at(lane_), at(lane_ + left)));
      steps_.push_back(step);
    }
    total_ = combine(at(0), at(1));
  }

  const std::vector<Halide::Expr>& total() const { return total_; }
  // Computes the steps as vectors inside the loop `at` of `consumer`.
  void keep(Halide::Func consumer, const Halide::Var& at) {
    int lanes = lanes_;
    for (Halide::Func& step : steps_) {
      const std::vector<Halide::Var> vars = step.args();
      step.compute_at(consumer, at).store_in(Halide::MemoryType::Stack);
      step.bound(vars[0], 0, lanes).vectorize(vars[0]);
      for (size_t d = 1; d < vars.size(); ++d) step.bound_storage(vars[d], 1);
      lanes /= 2;
    }
  }

  // The same on a GPU, whose work-group is a pass of the loop `at`: an item for each lane makes its
  // value from `each`, which it keeps for itself; then about the square root of as many items take
  // equal shares, and one item what they leave.
  void share(Halide::Func consumer, const Halide::Var& at, Halide::Func each) {
    size_t halvings = 0;
    while (lanes_ >> halvings > 1 << halvings) ++halvings;
    for (size_t k : {size_t{0}, halvings}) {
      const Halide::Var lane = steps_[k].args()[0];
      steps_[k].compute_at(consumer, at).bound(lane, 0, lanes_ >> k).gpu_threads(lane);
      steps_[k].store_in(Halide::MemoryType::GPUShared);
    }
    each.compute_at(steps_[0], steps_[0].args()[0]).store_in(Halide::MemoryType::Stack);
  }

 private:
  int lanes_;
  Halide::Var lane_{"lane"};
  std::vector<Halide::Func> steps_;
  std::vector<Halide::Expr> total_;
};

}  // namespace ballast::kernels
