// The losses of class numbers, with weights, smoothing and labels to ignore, against their
// definition as loops in double: values, gradients by differences, and second derivatives.
#include "frontend/ballast_frontend.h"
#include "tests/reference_ops.h"
#include "tests/samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

namespace ballast::tests {
namespace {

using Loss = std::function<Tensor(const Tensor& x, const ops::ClassLossOptions&)>;

struct Losses {
  Elements each;
  double total = 0, weights = 0;  // what a mean divides and what by

  double mean() const { return total / weights; }
};

struct Case {
  Shape shape;  // [B, C, ...]
  bool is_cross_entropy, has_probabilities, has_weight, ignores;
  double smoothing;
};

class ClassLossTest : public testing::TestWithParam<Case> {
 protected:
  static constexpr int64_t kIgnored = -100;

  size_t classes() const { return static_cast<size_t>(GetParam().shape[1]); }

  void SetUp() override {
    const Case& c = GetParam();
    Shape rows = c.shape;
    rows.erase(rows.begin() + 1);
    labels_ = c.has_probabilities ? real(c.shape, 0, 1) : whole(rows, c.shape[1], DType::kI64);
    for (size_t row = 0; c.ignores && row < labels_.values.size(); row += 3) {
      labels_.values[row] = static_cast<double>(kIgnored);
    }
    weight_ = c.has_weight ? real({c.shape[1]}, 0.5, 2)
                           : HostArray{{DType::kF32, {c.shape[1]}}, Elements(classes(), 1)};
  }

  ops::ClassLossOptions options(const std::string& reduction) const {
    const Case& c = GetParam();
    ops::ClassLossOptions options{reduction};
    if (c.has_weight) options.weight = to_tensor(weight_);
    if (c.ignores) options.ignore_index = kIgnored;
    options.label_smoothing = c.smoothing;
    return options;
  }

  Tensor call(const Tensor& x, const std::string& reduction) const {
    const Tensor labels = to_tensor(labels_);
    return GetParam().is_cross_entropy ? ops::cross_entropy(x, labels, options(reduction))
                                       : ops::nll_loss(x, labels, options(reduction));
  }

  // x[row, c] of [B, C, inner].
  static double at(const Elements& x, size_t row, size_t c, size_t classes, size_t inner) {
    return x[(row / inner * classes + c) * inner + row % inner];
  }

  Losses defined(const Elements& x) const {
    const Case& param = GetParam();
    const size_t rows = x.size() / classes(), inner = rows / static_cast<size_t>(param.shape[0]);
    const double s = param.smoothing, share = s / static_cast<double>(classes());
    Losses result;
    for (size_t row = 0; row < rows; ++row) {
      double exps = 0, loss = 0, weight = 1;
      for (size_t c = 0; c < classes(); ++c) exps += std::exp(at(x, row, c, classes(), inner));
      const double label = param.has_probabilities ? 0 : labels_.values[row];
      for (size_t c = 0; c < classes() && label >= 0; ++c) {
        const double log_p =
            at(x, row, c, classes(), inner) - (param.is_cross_entropy ? std::log(exps) : 0);
        const double hard = param.has_probabilities ? at(labels_.values, row, c, classes(), inner)
                                                    : truth(static_cast<double>(c) == label);
        // PyTorch smooths labels with the other classes' weights, not with the label's.
        loss -= weight_.values[c] * ((1 - s) * hard + share) * log_p;
      }
      if (!param.has_probabilities) {
        weight = label < 0 ? 0 : weight_.values[static_cast<size_t>(label)];
      }
      result.each.push_back(loss);
      result.total += loss;
      result.weights += weight;
    }
    return result;
  }

  HostArray labels_, weight_;
};

TEST_P(ClassLossTest, IsItsDefinition) {
  const HostArray x = real(GetParam().shape, -3, 0);
  const Losses expected = defined(x.values);
  Shape shape = GetParam().shape;
  shape.erase(shape.begin() + 1);
  const Tensor in = to_tensor(x);
  const auto scalar = [](double value) { return HostArray{{DType::kF32, {}}, {value}}; };
  EXPECT_EQ(
      difference(to_array(call(in, "none")), {{DType::kF32, shape}, expected.each}, 1e-5, 1e-6),
      "");
  EXPECT_EQ(difference(to_array(call(in, "sum")), scalar(expected.total), 1e-5, 1e-5), "");
  EXPECT_EQ(difference(to_array(call(in, "mean")), scalar(expected.mean()), 1e-5, 1e-6), "");
}

// The gradient of the mean, and the second derivative along a direction.
TEST_P(ClassLossTest, DerivativesMatchDifferences) {
  constexpr double kStep = 1e-4;
  HostArray x = real(GetParam().shape, -3, 0);
  const HostArray v = real(GetParam().shape, -1, 1);
  HostArray slopes = x;
  for (size_t i = 0; i < x.values.size(); ++i) {
    Elements above = x.values, below = x.values;
    above[i] += kStep;
    below[i] -= kStep;
    slopes.values[i] = (defined(above).mean() - defined(below).mean()) / (2 * kStep);
  }
  const auto mean = [&](Tensor t) { return call(t, "mean"); };
  const auto [gradient, bend] = jvp(grad(mean), to_tensor(x), to_tensor(v));
  EXPECT_EQ(difference(to_array(gradient), slopes, 1e-4, 1e-5), "");
  Elements ahead = x.values, behind = x.values;
  double along = 0;
  const Elements bends = to_array(bend).values;
  for (size_t i = 0; i < bends.size(); ++i) {
    ahead[i] += kStep * v.values[i];
    behind[i] -= kStep * v.values[i];
    along += bends[i] * v.values[i];
  }
  const double second =
      (defined(ahead).mean() - 2 * defined(x.values).mean() + defined(behind).mean()) /
      (kStep * kStep);
  EXPECT_NEAR(along, second, 1e-5);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (bool is_cross_entropy : {false, true}) {
    for (bool has_weight : {false, true}) {
      for (double smoothing : {0.0, 0.2}) {
        for (bool ignores : {false, true}) {
          const Shape shape = ignores ? Shape{2, 4, 3} : Shape{5, 3};
          all.push_back({shape, is_cross_entropy, false, has_weight, ignores, smoothing});
        }
        if (is_cross_entropy) all.push_back({{2, 3, 2}, true, true, has_weight, false, smoothing});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, ClassLossTest, testing::ValuesIn(cases()), [](const auto& row) {
  const Case& c = row.param;
  return std::string(c.is_cross_entropy ? "CrossEntropy" : "Nll") +
         (c.has_probabilities ? "Probabilities" : "") + (c.has_weight ? "Weight" : "") +
         (c.ignores ? "Ignore" : "") + (c.smoothing > 0 ? "Smooth" : "");
});

const Tensor& logits() {
  static const Tensor all = Tensor::from_host<float>({1, 2, -3, 0, 5, 0.5f, 2, 1, 0}, {3, 3});
  return all;
}

// Without weights the losses are the kernel's, bit for bit.
TEST(ClassLossValueTest, PlainCrossEntropyIsTheKernel) {
  const Tensor labels = Tensor::from_host<int32_t>({2, 0, 1}, {3});
  for (double smoothing : {0.0, 0.1}) {
    const auto losses = ops::softmax_cross_entropy(logits(), labels, smoothing).to_host<float>();
    const ops::ClassLossOptions options{"none", {}, {}, smoothing};
    EXPECT_EQ(ops::cross_entropy(logits(), labels, options).to_host<float>(), losses);
    EXPECT_EQ(nn::CrossEntropyLoss("none", smoothing)(logits(), labels).to_host<float>(), losses);
    EXPECT_EQ(nn::CrossEntropyLoss("none", smoothing, -100)(logits(), labels).to_host<float>(),
              losses);
  }
}

// In cross_entropy a label that is no class is a mistake, in nll_loss it costs and weighs nothing.
TEST(ClassLossValueTest, LabelsThatAreNoClass) {
  const Tensor labels = Tensor::from_host<int64_t>({-1, 1, (int64_t{1} << 32) + 1}, {3}),
               weight = Tensor::from_host<float>({1, 2, 4}, {3});
  const ops::ClassLossOptions each{"none", weight}, mean{"mean", weight};
  const auto losses = ops::cross_entropy(logits(), labels, each).to_host<float>();
  EXPECT_TRUE(std::isnan(losses[0]) && std::isnan(losses[2]));
  EXPECT_FALSE(std::isnan(losses[1]));
  EXPECT_EQ(ops::nll_loss(logits(), labels, each).to_host<float>(),
            (std::vector<float>{0, -10, 0}));
  EXPECT_EQ(nn::NLLLoss(mean)(logits(), labels).item<float>(), -5);
}

// A mean over nothing is NaN, as in PyTorch; the losses themselves are 0.
TEST(ClassLossValueTest, AllLabelsIgnored) {
  const Tensor labels = Tensor::full({3}, 7, DType::kI32);
  const ops::ClassLossOptions each{"none", {}, 7}, mean{"mean", {}, 7};
  for (auto* loss : {+[](const Tensor&l, const ops::ClassLossOptions&o) {
                       return ops::cross_entropy(logits(), l, o);
                     },
                     +[](const Tensor&l, const ops::ClassLossOptions&o) {
                       return ops::nll_loss(logits(), l, o);
                     }}) {
    EXPECT_EQ(loss(labels, each).to_host<float>(), (std::vector<float>{0, 0, 0}));
    EXPECT_TRUE(std::isnan(loss(labels, mean).item<float>()));
  }
}

// Of narrow floats the losses are f32's, rounded once.
TEST(ClassLossValueTest, NarrowFloatsAreComputedInF32) {
  const Tensor labels = Tensor::from_host<int32_t>({2, 0, 1}, {3}),
               weight = Tensor::from_host<float>({1, 2, 4}, {3});
  const ops::ClassLossOptions wide{"mean", weight, 0, 0.25};
  const float expected = ops::cross_entropy(logits(), labels, wide).item<float>();
  for (DType narrow : {DType::kBF16, DType::kF16}) {
    const ops::ClassLossOptions options{"mean", ops::cast(weight, narrow), 0, 0.25};
    const Tensor loss = ops::cross_entropy(ops::cast(logits(), narrow), labels, options);
    EXPECT_EQ(loss.dtype(), narrow);
    EXPECT_EQ(loss.item<float>(), ops::cast(Tensor::scalar(expected), narrow).item<float>());
  }
}

TEST(ClassLossValueTest, NamesTheLineOfTheCall) {
  const auto all = [](const std::vector<Tensor>& in) {
    const ops::ClassLossOptions options{"mean", in[2], 1, 0.1}, soft{"mean", in[2], {}, 0.1};
    return std::vector<Tensor>{
        ops::cross_entropy(in[0], in[1], options), ops::cross_entropy(in[0], in[0], soft),
        ops::nll_loss(in[0], in[1], options), ops::kl_div(in[0], in[0], "batchmean"),
        ops::binary_cross_entropy(in[0], in[0], ops::BinaryLossOptions{"sum", in[0]})};
  };
  const Program program =
      trace(all, {{DType::kF32, {2, 3, 4}}, {DType::kI64, {2, 4}}, {DType::kF32, {3}}});
  for (const Equation& equation : program.equations) {
    EXPECT_STREQ(equation.where.file, __FILE__) << equation.primitive;
  }
}

}  // namespace
}  // namespace ballast::tests
