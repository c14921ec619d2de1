#include "bench/rows.h"

namespace ballast::bench {

// Operands of 1024x1024 live in the last level of cache, of 4096x1024 in memory.
std::vector<Case> pointwise_rows() {
  const Operand matrix = f32({1024, 1024}), large = f32({4096, 1024}), row = f32({1024}),
                odd = f32({1021, 1021}), small = f32({64, 512});
  std::vector<Case> rows;
  for (const char* op : {"relu", "exp", "tanh", "sigmoid", "erf", "gelu", "gelu_tanh", "silu"}) {
    rows.push_back({std::string(op) + "_1024", op, {}, {matrix}});
  }
  for (const char* op : {"log", "sqrt"}) {
    rows.push_back({std::string(op) + "_1024", op, {}, {positive({1024, 1024})}});
  }
  for (const char* op : {"add", "mul", "maximum"}) {
    rows.push_back({std::string(op) + "_1024", op, {}, {matrix, matrix}});
  }
  rows.insert(
      rows.end(),
      {
          {"div_1024", "div", {}, {matrix, positive({1024, 1024})}},
          {"pow_1024", "pow", {}, {positive({1024, 1024}), matrix}},
          {"add_row_1024", "add", {}, {matrix, row}},
          {"add_odd_1021", "add", {}, {odd, odd}},
          {"exp_odd_1021", "exp", {}, {odd}},
          {"gelu_odd_1021", "gelu", {}, {odd}},
          {"add_row_odd_1021", "add", {}, {odd, f32({1021})}},
          {"log_odd_1021", "log", {}, {positive({1021, 1021})}},
          {"add_64x512", "add", {}, {small, small}},
          {"add_4096x1024", "add", {}, {large, large}},
          {"relu_4096x1024", "relu", {}, {large}},
          {"less_1024", "less", {}, {matrix, matrix}},
          {"equal_1024", "equal", {}, {positive({1024, 1024}), positive({1024, 1024})}},
          {"relu_grad_64x512", "relu_grad", {}, {small, small}},
          {"chain_add_mul_1024",
           "chain_add_mul",
           {},
           {matrix, matrix, matrix},
           {{"add", {0, 1}, {}}, {"mul", {3, 2}, {}}}},
          // x * scale + shift, gelu, + residual: what stands between two products of a network.
          {"chain_scale_gelu_residual",
           "chain_scale_gelu_residual",
           {},
           {large, row, row, large},
           {{"mul", {0, 1}, {}}, {"add", {4, 2}, {}}, {"gelu_tanh", {5}, {}}, {"add", {6, 3}, {}}}},
      });
  return rows;
}

}  // namespace ballast::bench
