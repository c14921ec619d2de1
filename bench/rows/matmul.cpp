#include "bench/rows.h"

namespace ballast::bench {
namespace {

const Attrs kTa = {{"transpose_a", int64_t{1}}}, kTb = {{"transpose_b", int64_t{1}}};

Attrs dense(const char* activation, bool is_transposed = true) {
  return {{"transpose_b", int64_t{is_transposed}},
          {"has_bias", int64_t{1}},
          {"activation", std::string(activation)}};
}

Attrs relu_grad() { return {{"activation", std::string("relu_grad")}}; }

}  // namespace

// "dense" is a layer of 784 -> 512 -> 512 -> 10 at batch 64 with weights [out, in]: forward,
// dx = dy w, dw = dy' x. "vit" are the products of the transformer's block over 2 x 196 tokens.
std::vector<Case> matmul_rows() {
  const auto square = [](int64_t n) { return std::vector<Operand>{f32({n, n}), f32({n, n})}; };
  return {
      {"gemm_512", "matmul", {}, square(512)},
      {"gemm_1024", "matmul", {}, square(1024)},
      {"gemm_2048", "matmul", {}, square(2048)},
      {"gemm_1024_ta", "matmul", kTa, square(1024)},
      {"gemm_1024_tb", "matmul", kTb, square(1024)},
      {"gemm_1009", "matmul", {}, square(1009)},
      {"gemm_bias_relu_1024",
       "matmul",
       dense("relu", false),
       {f32({1024, 1024}), f32({1024, 1024}), f32({1024})}},
      {"gemm_bias_gelu_1024",
       "matmul",
       dense("gelu_tanh", false),
       {f32({1024, 1024}), f32({1024, 1024}), f32({1024})}},
      {"dense1024_forward",
       "matmul",
       dense("relu"),
       {f32({32, 1024}), f32({1024, 1024}), f32({1024})}},
      {"dense1_forward", "matmul", dense("relu"), {f32({64, 784}), f32({512, 784}), f32({512})}},
      {"dense2_forward", "matmul", dense("relu"), {f32({64, 512}), f32({512, 512}), f32({512})}},
      {"dense3_forward", "matmul", dense("none"), {f32({64, 512}), f32({10, 512}), f32({10})}},
      {"dense1_dx", "matmul", {}, {f32({64, 512}), f32({512, 784})}},
      {"dense2_dx", "matmul", relu_grad(), {f32({64, 512}), f32({512, 512}), f32({64, 512})}},
      {"dense1_dw", "matmul", kTa, {f32({64, 512}), f32({64, 784})}},
      {"dense2_dw", "matmul", kTa, {f32({64, 512}), f32({64, 512})}},
      {"dense1024_dx", "matmul", {}, {f32({32, 1024}), f32({1024, 1024})}},
      {"dense4096_1024_dx", "matmul", {}, {f32({32, 4096}), f32({4096, 1024})}},
      {"ffn_128x3072x768_dx", "matmul", {}, {f32({128, 3072}), f32({3072, 768})}},
      {"decode_1x1024x4096", "matmul", {}, {f32({1, 1024}), f32({1024, 4096})}},
      {"decode_4x1024x4096", "matmul", {}, {f32({4, 1024}), f32({1024, 4096})}},
      {"decode_5x1024x4096", "matmul", {}, {f32({5, 1024}), f32({1024, 4096})}},
      {"decode_8x2048x2048", "matmul", {}, {f32({8, 2048}), f32({2048, 2048})}},
      {"decode_16x1024x4096", "matmul", {}, {f32({16, 1024}), f32({1024, 4096})}},
      {"dense3_dw", "matmul", kTa, {f32({64, 10}), f32({64, 512})}},
      {"mnist_64x512x784", "matmul", {}, {f32({64, 784}), f32({784, 512})}},
      {"vit_qkv", "matmul", dense("none"), {f32({392, 256}), f32({768, 256}), f32({768})}},
      {"vit_392x768x256", "matmul", {}, {f32({392, 256}), f32({256, 768})}},
      {"vit_392x256x256", "matmul", {}, {f32({392, 256}), f32({256, 256})}},
      {"vit_mlp_gelu",
       "matmul",
       dense("gelu_tanh"),
       {f32({1576, 256}), f32({1024, 256}), f32({1024})}},
      // A scaled residual, back through a gelu, a gated unit: no epilogue built ahead of time.
      chain("matmul_scale_residual_392x256x256",
            {f32({392, 256}), f32({256, 256}), f32({256}), f32({392, 256})},
            {{"matmul", {0, 1}, {}}, {"mul", {4, 2}, {}}, {"add", {5, 3}, {}}}),
      chain("matmul_gelu_grad_1576x1024x256",
            {f32({1576, 256}), f32({256, 1024}), f32({1576, 1024})},
            {{"matmul", {0, 1}, {}}, {"gelu_tanh_grad", {3, 2}, {}}}),
      chain("matmul_silu_gate_1576x1024x256",
            {f32({1576, 256}), f32({1024, 256}), f32({1576, 1024})},
            {{"matmul", {0, 1}, kTb}, {"silu", {3}, {}}, {"mul", {4, 2}, {}}}),
      {"vit_scores", "matmul", kTb, {f32({16, 196, 32}), f32({16, 196, 32})}},
      {"vit_weighted", "matmul", {}, {f32({16, 196, 196}), f32({16, 196, 32})}},
      {"batched_odd_7x61x67x53", "matmul", {}, {f32({7, 61, 53}), f32({7, 53, 67})}},
      {"matvec_1024", "matmul", {}, {f32({1024, 1024}), f32({1024, 1})}},
      {"vecmat_1024", "matmul", {}, {f32({1, 1024}), f32({1024, 1024})}},
      {"vecmat_1024_tb", "matmul", kTb, {f32({1, 1024}), f32({1024, 1024})}},
      // Few classes: logits, their gradients; few coordinates: points into features and back.
      {"batched_small_1000x8x8x8", "matmul", {}, {f32({1000, 8, 8}), f32({1000, 8, 8})}},
      // A layer of one output, and a token's scores over 256 others in 128 heads.
      {"matvec_10000x20", "matmul", {}, {f32({10000, 20}), f32({20, 1})}},
      {"decode_scores_128x1x64x256", "matmul", kTb, {f32({128, 1, 64}), f32({128, 256, 64})}},
      {"skinny_64x512x10", "matmul", {}, {f32({64, 512}), f32({512, 10})}},
      {"skinny_4096x512x10", "matmul", {}, {f32({4096, 512}), f32({512, 10})}},
      {"skinny_4096x512x10_tb", "matmul", kTb, {f32({4096, 512}), f32({10, 512})}},
      {"skinny_4096x10x512", "matmul", {}, {f32({4096, 10}), f32({10, 512})}},
      {"skinny_512x4096x10_ta", "matmul", kTa, {f32({4096, 512}), f32({4096, 10})}},
      {"skinny_10x4096x512_ta", "matmul", kTa, {f32({4096, 10}), f32({4096, 512})}},
      {"skinny_100000x3x64", "matmul", {}, {f32({100000, 3}), f32({3, 64})}},
      {"skinny_100000x64x3", "matmul", {}, {f32({100000, 64}), f32({64, 3})}},
      {"linreg_forward", "matmul", dense("none"), {f32({32, 10}), f32({1, 10}), f32({1})}},
  };
}

}  // namespace ballast::bench
