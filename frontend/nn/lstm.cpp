#include "frontend/nn/lstm.h"

#include "frontend/control_flow/control_flow.h"
#include "frontend/nn/initializer.h"
#include "frontend/ops/ops.h"

#include <cmath>
#include <string>

namespace ballast::nn {

namespace {

std::pair<Tensor, LSTM::State> paired(const std::vector<Tensor>& results) {
  return {results[0], {results[1], results[2]}};
}

// bool[L, B, 1]: whether a sequence has this step.
Tensor steps_alive(const Tensor& seq_length, int64_t length) {
  const Tensor steps =
      ops::reshape(ops::arange(0, static_cast<double>(length), 1, DType::kI32), {length, 1, 1});
  return ops::less(steps, ops::reshape(seq_length, {1, -1, 1}));
}

LSTM::State next_state(const Tensor& gates, const Tensor& c) {
  const std::vector<Tensor> parts = ops::split(gates, 4, 1);
  const Tensor remembered = ops::sigmoid(parts[1]) * c;
  const Tensor next = remembered + ops::sigmoid(parts[0]) * ops::tanh(parts[2]);
  return {ops::sigmoid(parts[3]) * ops::tanh(next), next};
}

}  // namespace

LSTM::LSTM(int64_t input_size, int64_t hidden_size, int64_t num_layers, bool has_bias,
           bool batch_first, double dropout, bool bidirectional, Where where)
    : input_size_(input_size),
      hidden_size_(hidden_size),
      directions_(bidirectional ? 2 : 1),
      batch_first_(batch_first),
      dropout_(dropout) {
  if (input_size < 1 || hidden_size < 1 || num_layers < 1) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[LSTM] input_size {}, hidden_size {}, num_layers {}: expected at least 1 of each (at {})",
         input_size, hidden_size, num_layers, to_string(where));
  }
  if (!(dropout >= 0 && dropout < 1)) {
    fail(BALLAST_INVALID_ARGUMENT, "[LSTM] dropout is {}, expected 0 up to but not 1 (at {})",
         dropout, to_string(where));
  }
  const Initializer draw = Uniform(1 / std::sqrt(static_cast<double>(hidden_size)));
  const int64_t gates = 4 * hidden_size;
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    for (int64_t direction = 0; direction < directions_; ++direction) {
      const std::string suffix = "_l" + std::to_string(layer) + (direction > 0 ? "_reverse" : "");
      const int64_t inputs = layer == 0 ? input_size : hidden_size * directions_;
      Weights weights;
      weights.input = add("weight_ih" + suffix, draw({gates, inputs}));
      weights.hidden = add("weight_hh" + suffix, draw({gates, hidden_size}));
      if (has_bias) {
        weights.input_bias = add("bias_ih" + suffix, draw({gates}));
        weights.hidden_bias = add("bias_hh" + suffix, draw({gates}));
      }
      weights_.push_back(weights);
    }
  }
}

std::pair<Tensor, LSTM::State> LSTM::operator()(const Operand& x) { return paired(call_all({x})); }

std::pair<Tensor, LSTM::State> LSTM::operator()(const Operand& x, const State& hx) {
  return paired(call_all({x, hx.first, hx.second}));
}

std::pair<Tensor, LSTM::State> LSTM::operator()(const Operand& x, const State& hx,
                                                const Operand& seq_length) {
  return paired(call_all({x, hx.first, hx.second, seq_length}));
}

std::pair<Tensor, LSTM::State> LSTM::operator()(const Operand& x, const Operand& seq_length) {
  return paired(call_all({x, seq_length}));
}

void LSTM::check_inputs(const Tensor& x, const Tensor& h, const Tensor& c,
                        const Tensor& seq_length) const {
  if (x.rank() != 3 || x.shape()[2] != input_size_) {
    fail(BALLAST_INVALID_ARGUMENT, "[LSTM] takes [{}, {}], got {}", batch_first_ ? "B, L" : "L, B",
         input_size_, to_string(x.type()));
  }
  const int64_t batch = x.shape()[batch_first_ ? 0 : 1];
  const TensorType state{x.dtype(), {static_cast<int64_t>(weights_.size()), batch, hidden_size_}};
  for (const Tensor* given : {&h, &c}) {
    if (!given->defined() || given->type() == state) continue;
    fail(BALLAST_INVALID_ARGUMENT, "[LSTM] {} is {}, expected {}", given == &h ? "h" : "c",
         to_string(given->type()), to_string(state));
  }
  const TensorType lengths{DType::kI32, {batch}};
  if (seq_length.defined() && seq_length.type() != lengths) {
    fail(BALLAST_INVALID_ARGUMENT, "[LSTM] seq_length is {}, expected {}",
         to_string(seq_length.type()), to_string(lengths));
  }
}

std::pair<Tensor, LSTM::State> LSTM::run_direction(const Weights& weights, const Tensor& x,
                                                   const State& before, const Tensor& is_alive,
                                                   bool is_reverse) const {
  // What does not depend on the state is one product for all steps.
  Tensor projected = ops::matmul(x, weights.input, /*transpose_a=*/false, /*transpose_b=*/true);
  if (weights.input_bias.defined()) {
    projected = projected + (Tensor(weights.input_bias) + weights.hidden_bias);
  }
  std::vector<Tensor> xs = {projected};
  if (is_alive.defined()) xs.push_back(is_alive);
  const Tensor hidden = weights.hidden;
  auto step = [&](const State& state, const std::vector<Tensor>& now) {
    const auto& [h, c] = state;
    State next = next_state(now[0] + ops::matmul(h, hidden, false, /*transpose_b=*/true), c);
    Tensor output = next.first;
    if (now.size() == 2) {
      output = ops::select(now[1], output, 0);
      next = {ops::select(now[1], next.first, h), ops::select(now[1], next.second, c)};
    }
    return std::pair(next, output);
  };
  auto [after, outputs] = scan(step, before, xs, {}, is_reverse);
  return {outputs, after};
}

std::vector<Tensor> LSTM::construct_all(const std::vector<Tensor>& inputs) {
  const bool has_state = inputs.size() >= 3, has_lengths = inputs.size() % 2 == 0;
  const Tensor h = has_state ? inputs[1] : Tensor(), c = has_state ? inputs[2] : Tensor();
  const Tensor seq_length = has_lengths ? inputs.back() : Tensor();
  check_inputs(inputs[0], h, c, seq_length);
  Tensor x = batch_first_ ? ops::transpose(inputs[0], {1, 0, 2}) : inputs[0];
  const Tensor is_alive = has_lengths ? steps_alive(seq_length, x.shape()[0]) : Tensor();
  const Tensor zero = Tensor::zeros({x.shape()[1], hidden_size_}, x.dtype());
  auto row = [&](const Tensor& all, size_t i) {
    const auto first = static_cast<int64_t>(i);
    return all.defined() ? ops::squeeze(ops::strided_slice(all, {first}, {first + 1}), {0}) : zero;
  };
  std::vector<Tensor> last_h, last_c, outputs;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const size_t direction = i % static_cast<size_t>(directions_);
    auto [output, state] =
        run_direction(weights_[i], x, {row(h, i), row(c, i)}, is_alive, direction == 1);
    outputs.push_back(output);
    last_h.push_back(state.first);
    last_c.push_back(state.second);
    if (outputs.size() < static_cast<size_t>(directions_)) continue;
    x = outputs.size() == 1 ? outputs[0] : ops::concat(outputs, 2);
    outputs.clear();
    const bool is_last = i + 1 == weights_.size();
    if (is_training() && dropout_ > 0 && !is_last) x = ops::dropout(x, dropout_);
  }
  return {batch_first_ ? ops::transpose(x, {1, 0, 2}) : x, ops::stack(last_h), ops::stack(last_c)};
}

}  // namespace ballast::nn
