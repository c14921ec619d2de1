#include "bench/rows.h"

namespace ballast::bench {

// 512x784 lives in cache, 4096x1024 in memory. The last row is a network's many small tensors at
// once: sixteen of 64 x 64.
std::vector<Case> optimizer_rows() {
  const Operand weight = f32({512, 784}), large = f32({4096, 1024}), scalar = unit({});
  const Operand squares = positive({512, 784}), large_squares = positive({4096, 1024});
  const std::vector<Operand> scalars = {scalar, scalar, scalar, scalar, scalar, scalar};
  const auto adam = [&](std::vector<Operand> tensors) {
    tensors.insert(tensors.end(), scalars.begin(), scalars.end());
    return tensors;
  };
  std::vector<Operand> many;
  for (int i = 0; i < 16; ++i) {
    many.insert(many.end(), {f32({64, 64}), f32({64, 64}), positive({64, 64}), f32({64, 64})});
  }
  return {
      {"sgd_512x784", "apply_gradient_descent", {}, {weight, weight, scalar}},
      {"sgd_4096x1024", "apply_gradient_descent", {}, {large, large, scalar}},
      {"momentum_512x784", "apply_momentum", {}, {weight, weight, weight, scalar, scalar}},
      {"momentum_4096x1024", "apply_momentum", {}, {large, large, large, scalar, scalar}},
      {"adam_512x784", "apply_adam", {}, adam({weight, weight, squares, weight})},
      {"adam_4096x1024", "apply_adam", {}, adam({large, large, large_squares, large})},
      {"adam_16_of_64x64", "apply_adam", {}, adam(many)},
      {"global_norm_512x784", "global_norm", {}, {weight}},
      {"global_norm_4096x1024", "global_norm", {}, {large}},
  };
}

}  // namespace ballast::bench
