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
      {"sum_64x512_columns", "reduce_sum", over({0}), {f32({64, 512})}},
      {"argmax_1024_rows", "argmax", {{"axis", int64_t{1}}}, {matrix}},
      {"cumsum_1024_rows", "cumsum", {{"axis", int64_t{1}}}, {matrix}},
      {"cumsum_1024_columns", "cumsum", {{"axis", int64_t{0}}}, {matrix}},
  };
}

}  // namespace ballast::bench
