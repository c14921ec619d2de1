#include "bench/rows.h"

namespace ballast::bench {

std::vector<Case> softmax_rows() {
  const Attrs last = {{"axis", int64_t{-1}}};
  const Operand matrix = f32({1024, 1024}), large = f32({4096, 1024}), scores = f32({16, 196, 196});
  return {
      {"softmax_1024", "softmax", last, {matrix}},
      {"softmax_4096x1024", "softmax", last, {large}},
      {"softmax_16x196x196", "softmax", last, {scores}},
      {"softmax_odd_509x1009", "softmax", last, {f32({509, 1009})}},
      {"log_softmax_1024", "log_softmax", last, {matrix}},
      {"softmax_grad_1024", "softmax_grad", last, {matrix, matrix}},
      {"log_softmax_grad_1024", "log_softmax_grad", last, {matrix, matrix}},
      {"cross_entropy_64x10", "softmax_cross_entropy", {}, {f32({64, 10}), index({64}, 10)}},
      {"cross_entropy_1024x1000",
       "softmax_cross_entropy",
       {},
       {f32({1024, 1000}), index({1024}, 1000)}},
      {"cross_entropy_grad_64x10",
       "softmax_cross_entropy_grad",
       {},
       {f32({64}), f32({64, 10}), index({64}, 10)}},
      {"cross_entropy_grad_1024x1000",
       "softmax_cross_entropy_grad",
       {},
       {f32({1024}), f32({1024, 1000}), index({1024}, 1000)}},
  };
}

}  // namespace ballast::bench
