// Long short-term memory as a cell.
#pragma once

#include "frontend/nn/cell.h"

#include <utility>
#include <vector>

namespace ballast::nn {

// mindspore.nn.LSTM, each layer and direction one scan over the steps:
//   i, f, g, o = parts of x W_ih^T + b_ih + h W_hh^T + b_hh        (in this order)
//   c' = sigmoid(f) c + sigmoid(i) tanh(g)
//   h' = sigmoid(o) tanh(c')
// x is [L, B, input_size], or [B, L, input_size] with batch_first. Layer k > 0 reads the outputs of
// layer k - 1, to which dropout applies in training; a bidirectional layer joins the outputs of its
// two directions along the last axis.
// Parameters of layer k: weight_ih_lk [4 H, in], weight_hh_lk [4 H, H], bias_ih_lk [4 H] and
// bias_hh_lk [4 H], all uniform in +-1/sqrt(H); of its second direction the same with "_reverse".
class LSTM : public Cell {
 public:
  using State = std::pair<Tensor, Tensor>;  // h and c, each [layers * directions, B, H]

  LSTM(int64_t input_size, int64_t hidden_size, int64_t num_layers = 1, bool has_bias = true,
       bool batch_first = false, double dropout = 0, bool bidirectional = false,
       Where where = Where::here());

  // {output, {h_n, c_n}}: output is [L, B, directions * H] (or [B, L, ...]), the other two are the
  // states after the last step. They begin as `hx`, else as zeros. seq_length, i32[B], says how
  // many steps each sequence has: after them its state stays and its output is zero. Where a cell
  // is called as one of a container, its result is the output alone.
  std::pair<Tensor, State> operator()(const Operand& x);
  std::pair<Tensor, State> operator()(const Operand& x, const State& hx);
  std::pair<Tensor, State> operator()(const Operand& x, const State& hx, const Operand& seq_length);
  std::pair<Tensor, State> operator()(const Operand& x, const Operand& seq_length);

 protected:
  // {x}, {x, seq_length}, {x, h, c} or {x, h, c, seq_length} -> {output, h_n, c_n}
  std::vector<Tensor> construct_all(const std::vector<Tensor>& inputs) override;

 private:
  // One direction of one layer.
  struct Weights {
    Parameter input, hidden, input_bias, hidden_bias;  // biases: undefined without them
  };
  void check_inputs(const Tensor& x, const Tensor& h, const Tensor& c,
                    const Tensor& seq_length) const;
  std::pair<Tensor, State> run_direction(const Weights& weights, const Tensor& x,
                                         const State& before, const Tensor& is_alive,
                                         bool is_reverse) const;

  int64_t input_size_, hidden_size_, directions_;
  bool batch_first_;
  double dropout_;
  std::vector<Weights> weights_;  // by layer, then by direction
};

}  // namespace ballast::nn
