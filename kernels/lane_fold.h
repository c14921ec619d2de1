// Folding the lanes of a vector into one value: half with half, until one is left, so that each
// step is one shuffle and one instruction.
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

 private:
  int lanes_;
  Halide::Var lane_{"lane"};
  std::vector<Halide::Func> steps_;
  std::vector<Halide::Expr> total_;
};

}  // namespace ballast::kernels
