// nn::LSTM against plain loops in double: outputs, last states and all gradients, for every option;
// and the same bits in every mode.
#include "frontend/ballast_frontend.h"
#include "frontend/test_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace ballast::tests {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr int64_t kLength = 4, kBatch = 3, kInput = 2, kHidden = 3;

struct Row {
  const char* name;
  int64_t layers = 1;
  bool has_bias = true, batch_first = false, is_bidirectional = false;
  bool has_state = false, has_lengths = false;

  int64_t directions() const { return is_bidirectional ? 2 : 1; }
  nn::LSTM cell() const {
    return {kInput, kHidden, layers, has_bias, batch_first, /*dropout=*/0, is_bidirectional};
  }
};

std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

const std::vector<Row> kRows = {
    {"OneLayer"},
    {"WithoutBias", 1, false},
    {"BatchFirst", 1, true, true},
    {"TwoLayers", 2, true, false, false, true},
    {"Bidirectional", 1, true, false, true, true},
    {"Lengths", 1, true, false, false, false, true},
    {"Everything", 2, true, true, true, true, true},
};

const std::vector<int32_t>& lengths() {
  static const std::vector<int32_t> values = {2, 4, 1};
  return values;
}

using Values = std::vector<double>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One direction of one layer on sequences [L, B, in]; `h` and `c` [B, H] become the last states.
// The biases are one: b_ih + b_hh.
Values run_direction(const Values& xs, int64_t inputs, const Values& w_ih, const Values& w_hh,
                     const Values& bias, const Row& row, bool is_reverse, Values& h, Values& c) {
  Values ys(kLength * kBatch * kHidden);
  for (int64_t step = 0; step < kLength; ++step) {
    const int64_t t = is_reverse ? kLength - 1 - step : step;
    for (int64_t b = 0; b < kBatch; ++b) {
      if (row.has_lengths && t >= lengths()[b]) continue;
      auto gate = [&](int64_t g) {
        double sum = bias.empty() ? 0 : bias[g];
        for (int64_t i = 0; i < inputs; ++i) {
          sum += w_ih[g * inputs + i] * xs[(t * kBatch + b) * inputs + i];
        }
        for (int64_t i = 0; i < kHidden; ++i) sum += w_hh[g * kHidden + i] * h[b * kHidden + i];
        return sum;
      };
      Values next(kHidden);
      for (int64_t i = 0; i < kHidden; ++i) {
        double& cell = c[b * kHidden + i];
        const double in = sigmoid(gate(i)), forget = sigmoid(gate(kHidden + i));
        const double out = sigmoid(gate(3 * kHidden + i));
        cell = forget * cell + in * std::tanh(gate(2 * kHidden + i));
        next[i] = out * std::tanh(cell);
      }
      std::copy(next.begin(), next.end(), h.begin() + b * kHidden);
      std::copy(next.begin(), next.end(), ys.begin() + (t * kBatch + b) * kHidden);
    }
  }
  return ys;
}

// [A, B, n] -> [B, A, n]
Values swapped(const Values& x, int64_t a, int64_t b) {
  const int64_t n = static_cast<int64_t>(x.size()) / (a * b);
  Values y(x.size());
  for (int64_t i = 0; i < a; ++i) {
    for (int64_t j = 0; j < b; ++j) {
      std::copy_n(x.begin() + (i * b + j) * n, n, y.begin() + (j * a + i) * n);
    }
  }
  return y;
}

struct Results {
  Values output, h, c;
};

// `leaves`: x, h, c, then the parameters in the cell's order.
Results reference(const Row& row, const std::vector<Values>& leaves) {
  const int64_t directions = row.directions(), state = kBatch * kHidden;
  Values x = row.batch_first ? swapped(leaves[0], kBatch, kLength) : leaves[0];
  Results results;
  auto next = leaves.begin() + 3;
  int64_t inputs = kInput;
  for (int64_t layer = 0; layer < row.layers; ++layer) {
    Values joined(kLength * kBatch * kHidden * directions);
    for (int64_t direction = 0; direction < directions; ++direction) {
      const Values& w_ih = *next++;
      const Values& w_hh = *next++;
      Values bias;
      if (row.has_bias) {
        bias = *next++;
        for (size_t i = 0; i < bias.size(); ++i) bias[i] += (*next)[i];
        ++next;
      }
      const auto first = (layer * directions + direction) * state;
      Values h(leaves[1].begin() + first, leaves[1].begin() + first + state);
      Values c(leaves[2].begin() + first, leaves[2].begin() + first + state);
      const Values ys = run_direction(x, inputs, w_ih, w_hh, bias, row, direction == 1, h, c);
      for (int64_t i = 0; i < kLength * kBatch; ++i) {
        std::copy_n(ys.begin() + i * kHidden, kHidden,
                    joined.begin() + (i * directions + direction) * kHidden);
      }
      results.h.insert(results.h.end(), h.begin(), h.end());
      results.c.insert(results.c.end(), c.begin(), c.end());
    }
    x = joined;
    inputs = kHidden * directions;
  }
  results.output = row.batch_first ? swapped(x, kLength, kBatch) : x;
  return results;
}

// A weight for each element, so that every one of them matters.
double weight(size_t i) { return std::cos(0.7 * static_cast<double>(i) + 0.4); }

double reference_loss(const Row& row, const std::vector<Values>& leaves) {
  const Results results = reference(row, leaves);
  double loss = 0;
  for (const Values* values : {&results.output, &results.h, &results.c}) {
    for (size_t i = 0; i < values->size(); ++i) loss += weight(i) * (*values)[i];
  }
  return loss;
}

Tensor weighted_sum(const Tensor& y) {
  std::vector<float> weights;
  for (int64_t i = 0; i < y.elements(); ++i) {
    weights.push_back(static_cast<float>(weight(static_cast<size_t>(i))));
  }
  return ops::sum(y * Tensor::from_host(weights, y.shape()));
}

Parameter leaf(const Shape& shape, double phase, const std::string& name, bool is_zero = false) {
  std::vector<float> values;
  for (int64_t i = 0; i < TensorType{DType::kF32, shape}.elements(); ++i) {
    const double wave = std::sin(1.3 * static_cast<double>(i) + phase);
    values.push_back(is_zero ? 0 : static_cast<float>(wave));
  }
  return {Tensor::from_host(values, shape), name};
}

Values values_of(const Tensor& tensor) {
  const std::vector<float> values = tensor.to_host<float>();
  return {values.begin(), values.end()};
}

void expect_near(const Tensor& got, const Values& expected, double tolerance,
                 const std::string& what) {
  const Values values = values_of(got);
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i], tolerance) << what << ", element " << i;
  }
}

class LstmTest : public testing::TestWithParam<Row> {
 protected:
  LstmTest() : cell_((set_seed(3), GetParam().cell())) {
    const Row& row = GetParam();
    const Shape x =
        row.batch_first ? Shape{kBatch, kLength, kInput} : Shape{kLength, kBatch, kInput};
    const Shape state = {row.layers * row.directions(), kBatch, kHidden};
    leaves_ = {leaf(x, 0.2, "x"), leaf(state, 0.9, "h", !row.has_state),
               leaf(state, 1.7, "c", !row.has_state)};
    for (const Parameter& parameter : cell_.trainable_params()) leaves_.push_back(parameter);
  }

  std::vector<Tensor> run() {
    const Tensor seq_length = Tensor::from_host(lengths(), {kBatch});
    const nn::LSTM::State hx = {leaves_[1], leaves_[2]};
    auto [output, state] = GetParam().has_lengths && GetParam().has_state
                               ? cell_(leaves_[0], hx, seq_length)
                           : GetParam().has_lengths ? cell_(leaves_[0], seq_length)
                           : GetParam().has_state   ? cell_(leaves_[0], hx)
                                                    : cell_(leaves_[0]);
    return {output, state.first, state.second};
  }
  std::vector<Values> leaf_values() const {
    std::vector<Values> values;
    for (const Parameter& parameter : leaves_) values.push_back(values_of(parameter));
    return values;
  }

  nn::LSTM cell_;
  std::vector<Parameter> leaves_;  // x, h, c, the cell's
};

TEST_P(LstmTest, IsTheFormula) {
  const std::vector<Tensor> results = run();
  const Results expected = reference(GetParam(), leaf_values());
  expect_near(results[0], expected.output, 1e-5, "output");
  expect_near(results[1], expected.h, 1e-5, "h_n");
  expect_near(results[2], expected.c, 1e-5, "c_n");
  EXPECT_EQ(results[1].shape(), leaves_[1].shape());
}

TEST_P(LstmTest, GradientsAreTheReferences) {
  auto loss = [&] {
    const std::vector<Tensor> results = run();
    return weighted_sum(results[0]) + weighted_sum(results[1]) + weighted_sum(results[2]);
  };
  std::vector<Parameter> wanted = leaves_;
  if (!GetParam().has_state) wanted.erase(wanted.begin() + 1, wanted.begin() + 3);
  const std::vector<Tensor> gradients = grad(loss, std::nullopt, wanted)();
  std::vector<Values> values = leaf_values();
  size_t number = 0;
  for (size_t at = 0; at < leaves_.size(); ++at) {
    if (!GetParam().has_state && (at == 1 || at == 2)) continue;
    Values expected;
    for (double& value : values[at]) {
      const double original = value;
      value = original + 1e-5;
      const double above = reference_loss(GetParam(), values);
      value = original - 1e-5;
      expected.push_back((above - reference_loss(GetParam(), values)) / 2e-5);
      value = original;
    }
    expect_near(gradients[number++], expected, 2e-5, leaves_[at].name());
  }
}

TEST_P(LstmTest, EagerJitAndSinkAgree) {
  const std::vector<Tensor> eager = run();
  JitOptions options;
  options.level = JitLevel::kO0;
  auto compiled = jit([&](const Tensor&) { return run(); }, options);
  const Tensor unused = Tensor::scalar(0);
  const std::vector<Tensor> jitted = compiled(unused);
  const std::vector<Tensor> sunk = sink(compiled)(1, repeat(unused));
  set_context({Mode::kGraph, JitLevel::kO0, {}, {}});
  const std::vector<Tensor> graph = run();
  set_context({Mode::kPyNative, JitLevel::kO1, {}, {}});
  for (size_t i = 0; i < eager.size(); ++i) {
    EXPECT_EQ(jitted[i].to_host_bytes(), eager[i].to_host_bytes()) << i;
    EXPECT_EQ(sunk[i].to_host_bytes(), eager[i].to_host_bytes()) << i;
    EXPECT_EQ(graph[i].to_host_bytes(), eager[i].to_host_bytes()) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Options, LstmTest, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(LstmTest, ParametersHaveMindSporesNamesAndBounds) {
  set_seed(1);
  nn::LSTM cell(5, 4, 2, true, false, 0, true);
  const auto parameters = cell.parameters_dict();
  EXPECT_EQ(parameters.size(), 16u);
  EXPECT_EQ(parameters.at("weight_ih_l0").shape(), (Shape{16, 5}));
  EXPECT_EQ(parameters.at("weight_ih_l1_reverse").shape(), (Shape{16, 8}));
  EXPECT_EQ(parameters.at("weight_hh_l1").shape(), (Shape{16, 4}));
  EXPECT_EQ(parameters.at("bias_hh_l0_reverse").shape(), (Shape{16}));
  double largest = 0;
  for (const auto& [name, parameter] : parameters) {
    for (double value : values_of(parameter)) largest = std::max(largest, std::abs(value));
  }
  EXPECT_LE(largest, 0.5);
  EXPECT_GT(largest, 0.48);
}

TEST(LstmTest, DropsOutputsBetweenLayersInTrainingOnly) {
  set_seed(1);
  nn::LSTM cell(2, 3, 2, true, false, /*dropout=*/0.5);
  const Tensor x = leaf({4, 3, 2}, 0.1, "x");
  const std::vector<float> plain = cell(x).first.to_host<float>();
  EXPECT_EQ(cell(x).first.to_host<float>(), plain);
  cell.set_train();
  EXPECT_NE(cell(x).first.to_host<float>(), plain);
  nn::LSTM last(2, 3, 1, true, false, /*dropout=*/0.5);  // nothing comes after its only layer
  const std::vector<float> before = last(x).first.to_host<float>();
  last.set_train();
  EXPECT_EQ(last(x).first.to_host<float>(), before);
}

TEST(LstmTest, GivesItsOutputToTheNextCellOfARow) {
  set_seed(1);
  nn::LSTM cell(2, 3);
  nn::SequentialCell row(cell, nn::ReLU());
  const Tensor x = leaf({4, 3, 2}, 0.1, "x");
  EXPECT_EQ(row(x).to_host<float>(), ops::relu(cell(x).first).to_host<float>());
}

// A step of Adam moves the loss down, jitted and sunk, through the gradient of a scan.
TEST(LstmTest, LearnsToSumASequence) {
  set_seed(2);
  nn::LSTM cell(1, 8);
  nn::Dense head(8, 1);
  std::vector<Parameter> parameters = cell.trainable_params();
  for (const Parameter& parameter : head.trainable_params()) parameters.push_back(parameter);
  nn::Adam optimizer(parameters, 0.02);
  auto forward = [cell, head](const Tensor& x, const Tensor& y) mutable {
    const Tensor last = ops::squeeze(cell(x).second.first, {0});
    return nn::MSELoss()(head(last), y);
  };
  auto grad_fn = value_and_grad(forward, std::nullopt, optimizer.parameters());
  auto step = jit([grad_fn, optimizer](const Tensor& x, const Tensor& y) mutable {
    auto [loss, gradients] = grad_fn(x, y);
    return depend(loss, optimizer(gradients));
  });
  const Tensor x = leaf({6, 16, 1}, 0.3, "x");
  const std::vector<float> losses =
      sink(step)(100, repeat(x), repeat(ops::sum(x, {0}))).to_host<float>();
  EXPECT_LT(losses.back(), losses.front() / 20);
}

TEST(LstmTest, ErrorsNameTheArgument) {
  EXPECT_THAT(message_of([] { nn::LSTM(0, 3); }),
              HasSubstr("[LSTM] input_size 0, hidden_size 3, num_layers 1: expected at least 1"));
  EXPECT_THAT(message_of([] { nn::LSTM(2, 3, 1, true, false, 1); }),
              HasSubstr("[LSTM] dropout is 1, expected 0 up to but not 1"));
  nn::LSTM cell(2, 3);
  const Tensor x = Tensor::ones({4, 5, 2}), h = Tensor::ones({1, 5, 3});
  EXPECT_THAT(message_of([&] {
                cell(Tensor::ones({4, 5, 3}));
              }),
              HasSubstr("[LSTM] takes [L, B, 2], got f32[4, 5, 3]"));
  EXPECT_THAT(message_of([&] {
                nn::LSTM(2, 3, 1, true, true)(Tensor::ones({4, 2}));
              }),
              HasSubstr("[LSTM] takes [B, L, 2], got f32[4, 2]"));
  EXPECT_THAT(message_of([&] {
                cell(x, {Tensor::ones({1, 4, 3}), h});
              }),
              HasSubstr("[LSTM] h is f32[1, 4, 3], expected f32[1, 5, 3]"));
  EXPECT_THAT(message_of([&] {
                cell(x, {h, Tensor::ones({5, 3})});
              }),
              HasSubstr("[LSTM] c is f32[5, 3], expected f32[1, 5, 3]"));
  EXPECT_THAT(message_of([&] { cell(x, Tensor::ones({5})); }),
              HasSubstr("[LSTM] seq_length is f32[5], expected i32[5]"));
}

}  // namespace
}  // namespace ballast::tests
