#include "bench/rows.h"

#include <cmath>

namespace ballast::bench {
namespace {

const Attrs kTa = {{"transpose_a", int64_t{1}}}, kTb = {{"transpose_b", int64_t{1}}},
            kLast = {{"axis", int64_t{-1}}};

Attrs scale(int64_t depth) { return {{"value", 1 / std::sqrt(static_cast<double>(depth))}}; }

// Scores, their softmax, and the weighted values, each by an op of its own.
std::vector<Step> unfused(int64_t depth) {
  return {{"matmul", {0, 1}, kTb},  // 3
          {"constant", {}, scale(depth)},
          {"mul", {3, 4}, {}},
          {"softmax", {5}, kLast},  // 6
          {"matmul", {6, 2}, {}}};
}

// From dout, q, k, v: the weights again, then dv, dq and dk.
std::vector<Step> unfused_grad(int64_t depth) {
  return {{"matmul", {1, 2}, kTb},                                                          // 6
          {"constant", {}, scale(depth)},   {"mul", {6, 7}, {}},  {"softmax", {8}, kLast},  // 9
          {"matmul", {9, 0}, kTa},                                                          // dv
          {"matmul", {0, 3}, kTb},                                                          // 11
          {"softmax_grad", {11, 9}, kLast}, {"mul", {12, 7}, {}},                           // 13
          {"matmul", {13, 2}, {}},                                                          // dq
          {"matmul", {13, 1}, kTa}};                                                        // dk
}

void add_pair(std::vector<Case>& rows, const std::string& name, std::vector<int64_t> shape) {
  const Operand x = f32(shape), row = f32({shape[0], shape[1], shape[2]});
  const int64_t depth = shape[3];
  Case forward{"attention_" + name, "scaled_dot_product_attention", {}, {x, x, x}};
  forward.unfused = unfused(depth);
  Case backward{"attention_grad_" + name, "attention_grad", {}, {x, x, x, x, row, row}};
  backward.unfused = unfused_grad(depth);
  backward.is_compared = false;  // the statistics given here are not those of the scores
  Case causal = forward;
  causal.name += "_causal";
  causal.attrs = {{"causal", int64_t{1}}};
  causal.unfused.clear();
  rows.insert(rows.end(), {forward, causal, backward});
}

}  // namespace

std::vector<Case> attention_rows() {
  std::vector<Case> rows;
  add_pair(rows, "2x8x196x32", {2, 8, 196, 32});
  add_pair(rows, "1x8x1024x64", {1, 8, 1024, 64});
  add_pair(rows, "8x8x197x32", {8, 8, 197, 32});
  // A token after 512 others.
  const Operand others = f32({8, 12, 512, 64});
  rows.push_back({"attention_decode_8x12x512x64",
                  "scaled_dot_product_attention",
                  {},
                  {f32({8, 12, 1, 64}), others, others}});
  return rows;
}

}  // namespace ballast::bench
