#include "bench/rows.h"

namespace ballast::bench {
namespace {

const Attrs kByRow = {{"axes", std::vector<int64_t>{-1}}, {"keep_dims", int64_t{1}}};

Case softmax_chain(const std::string& name, const Operand& x) {
  return chain(name, {x, f32({1})},
               {{"mul", {0, 1}, {}},
                {"reduce_max", {2}, kByRow},
                {"sub", {2, 3}, {}},
                {"exp", {4}, {}},
                {"reduce_sum", {5}, kByRow},
                {"div", {5, 6}, {}}});
}

// (x + residual) / sqrt(mean of squares + epsilon) gamma
Case rms_norm_chain(const std::string& name, const Operand& x, const Operand& row) {
  return chain(name, {x, x, f32({1}), row},
               {{"add", {0, 1}, {}},
                {"mul", {4, 4}, {}},
                {"reduce_mean", {5}, kByRow},
                {"add", {6, 2}, {}},
                {"rsqrt", {7}, {}},
                {"mul", {4, 8}, {}},
                {"mul", {9, 3}, {}}});
}

}  // namespace

std::vector<Case> softmax_rows() {
  const Attrs last = {{"axis", int64_t{-1}}};
  const Operand matrix = f32({1024, 1024}), large = f32({4096, 1024}), scores = f32({16, 196, 196});
  const Operand vocabulary = f32({64, 50257});
  return {
      {"softmax_1024", "softmax", last, {matrix}},
      {"softmax_4096x1024", "softmax", last, {large}},
      {"softmax_16x196x196", "softmax", last, {scores}},
      {"softmax_odd_509x1009", "softmax", last, {f32({509, 1009})}},
      {"softmax_64x50257", "softmax", last, {vocabulary}},
      {"softmax_100000x10", "softmax", last, {f32({100000, 10})}},
      {"log_softmax_1024", "log_softmax", last, {matrix}},
      {"log_softmax_64x50257", "log_softmax", last, {vocabulary}},
      softmax_chain("softmax_4096x1024", large),
      softmax_chain("softmax_16x196x196", scores),
      rms_norm_chain("rms_norm_4096x1024", large, f32({1024})),
      rms_norm_chain("rms_norm_1576x256", f32({1576, 256}), f32({256})),
      {"softmax_grad_1024", "softmax_grad", last, {matrix, matrix}},
      {"log_softmax_grad_1024", "log_softmax_grad", last, {matrix, matrix}},
      {"cross_entropy_64x10", "softmax_cross_entropy", {}, {f32({64, 10}), index({64}, 10)}},
      {"cross_entropy_grad_64x50257",
       "softmax_cross_entropy_grad",
       {},
       {f32({64}), vocabulary, index({64}, 50257)}},
      {"cross_entropy_64x50257", "softmax_cross_entropy", {}, {vocabulary, index({64}, 50257)}},
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
