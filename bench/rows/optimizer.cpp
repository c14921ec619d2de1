#include "bench/rows.h"

namespace ballast::bench {

std::vector<Case> optimizer_rows() {
  const Operand weight = f32({512, 784}), large = f32({4096, 1024}), scalar = unit({});
  return {
      {"sgd_512x784", "apply_gradient_descent", {}, {weight, weight, scalar}},
      {"momentum_512x784", "apply_momentum", {}, {weight, weight, weight, scalar, scalar}},
      {"momentum_4096x1024", "apply_momentum", {}, {large, large, large, scalar, scalar}},
  };
}

}  // namespace ballast::bench
