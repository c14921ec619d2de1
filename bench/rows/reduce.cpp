#include "bench/rows.h"

namespace ballast::bench {
namespace {

Attrs over(std::vector<int64_t> axes) { return {{"axes", std::move(axes)}}; }

}  // namespace

std::vector<Case> reduce_rows() {
  const Operand matrix = f32({1024, 1024});
  return {
      {"sum_1024_columns", "reduce_sum", over({0}), {matrix}},
      {"sum_1024_rows", "reduce_sum", over({1}), {matrix}},
      {"sum_1024_all", "reduce_sum", over({}), {matrix}},
      {"sum_4096x1024_all", "reduce_sum", over({}), {f32({4096, 1024})}},
      {"mean_8x64x56x56_channels", "reduce_mean", over({0, 2, 3}), {f32({8, 64, 56, 56})}},
      {"max_1024_rows", "reduce_max", over({1}), {matrix}},
      {"max_1009_columns", "reduce_max", over({0}), {f32({1009, 1009})}},
      {"max_100000x3_rows", "reduce_max", over({1}), {f32({100000, 3})}},
      {"sum_100000x3_rows", "reduce_sum", over({1}), {f32({100000, 3})}},
      {"max_100000x10_rows", "reduce_max", over({1}), {f32({100000, 10})}},
      {"sum_64x512_columns", "reduce_sum", over({0}), {f32({64, 512})}},
      // Global average pooling, and an axis in the middle.
      {"mean_8x2048x49_rows", "reduce_mean", over({2}), {f32({8, 2048, 49})}},
      {"max_2000x7x30_middle", "reduce_max", over({1}), {f32({2000, 7, 30})}},
      {"argmax_1024_rows", "argmax", {{"axis", int64_t{1}}}, {matrix}},
      // A loss (mean squared error), and the gradient of a scale that columns share.
      chain("mean_squares_4096x1024", {f32({4096, 1024}), f32({4096, 1024})},
            {{"sub", {0, 1}, {}}, {"mul", {2, 2}, {}}, {"reduce_mean", {3}, over({})}}),
      chain("sum_products_1576x256_columns", {f32({1576, 256}), f32({1576, 256})},
            {{"mul", {0, 1}, {}}, {"reduce_sum", {2}, over({0})}}),
      {"cumsum_1024_rows", "cumsum", {{"axis", int64_t{1}}}, {matrix}},
      {"cumsum_1024_columns", "cumsum", {{"axis", int64_t{0}}}, {matrix}},
      {"cumsum_1000000", "cumsum", {{"axis", int64_t{0}}}, {f32({1000000})}},
      {"cumsum_100000x10_rows", "cumsum", {{"axis", int64_t{1}}}, {f32({100000, 10})}},
  };
}

}  // namespace ballast::bench
