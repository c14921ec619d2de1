#include "kernels/test_support.h"

#include <algorithm>

namespace ballast::kernels::testing {
namespace {

using Values = std::vector<double>;

// x[lines of `each` elements], where line l and position r within it have one parameter.
struct Lines {
  int64_t count, length;
  std::function<int64_t(int64_t line, int64_t r)> element, parameter;
};

Lines layers(int64_t rows, int64_t length) {
  return {rows, length, [=](int64_t l, int64_t r) { return l * length + r; },
          [](int64_t, int64_t r) { return r; }};
}

Lines grouped(const ChannelShape& s, int64_t groups) {
  const int64_t each = s.channels / groups, length = each * s.inner;
  return {s.batch * groups, length, [=](int64_t l, int64_t r) { return l * length + r; },
          [=](int64_t l, int64_t r) { return l % groups * each + r / s.inner; }};
}

Lines channels(const ChannelShape& s) {
  return {
      s.channels, s.batch * s.inner,
      [=](int64_t l, int64_t r) { return (r / s.inner * s.channels + l) * s.inner + r % s.inner; },
      [](int64_t l, int64_t) { return l; }};
}

struct Forward {
  Values y, mean, rstd, variance;
};

Forward forward(const Lines& lines, const std::vector<float>& x, const std::vector<float>& gamma,
                const std::vector<float>& beta, double epsilon, bool is_rms) {
  Forward result;
  result.y.resize(x.size());
  for (int64_t l = 0; l < lines.count; ++l) {
    double mean = 0, squares = 0;
    const auto n = static_cast<double>(lines.length);
    for (int64_t r = 0; r < lines.length && !is_rms; ++r) mean += x[lines.element(l, r)] / n;
    for (int64_t r = 0; r < lines.length; ++r) {
      squares += std::pow(x[lines.element(l, r)] - mean, 2) / n;
    }
    const double rstd = 1 / std::sqrt(squares + epsilon);
    for (int64_t r = 0; r < lines.length; ++r) {
      const int64_t at = lines.element(l, r), p = lines.parameter(l, r);
      result.y[at] = (x[at] - mean) * rstd * gamma[p] + (is_rms ? 0 : beta[p]);
    }
    result.mean.push_back(mean);
    result.rstd.push_back(rstd);
    result.variance.push_back(squares);
  }
  return result;
}

struct Backward {
  Values dx, dgamma, dbeta;
};

Backward backward(const Lines& lines, const std::vector<float>& dy, const std::vector<float>& x,
                  const std::vector<float>& gamma, const std::vector<float>& mean,
                  const std::vector<float>& rstd, bool is_rms) {
  Backward result;
  result.dx.resize(x.size());
  result.dgamma.resize(gamma.size());
  result.dbeta.resize(gamma.size());
  for (int64_t l = 0; l < lines.count; ++l) {
    double slopes = 0, products = 0;
    const auto normal = [&](int64_t at) {
      return (double{x[at]} - (is_rms ? 0 : mean[l])) * rstd[l];
    };
    for (int64_t r = 0; r < lines.length; ++r) {
      const int64_t at = lines.element(l, r), p = lines.parameter(l, r);
      slopes += is_rms ? 0 : double{dy[at]} * gamma[p];
      products += double{dy[at]} * gamma[p] * normal(at);
      result.dgamma[p] += dy[at] * normal(at);
      result.dbeta[p] += dy[at];
    }
    for (int64_t r = 0; r < lines.length; ++r) {
      const int64_t at = lines.element(l, r), p = lines.parameter(l, r);
      const double shared = (slopes + normal(at) * products) / static_cast<double>(lines.length);
      result.dx[at] = rstd[l] * (double{dy[at]} * gamma[p] - shared);
    }
  }
  return result;
}

std::vector<float> rounded(const Values& values) { return {values.begin(), values.end()}; }

void expect_near(const HostTensor& got, const Values& want, double atol, const std::string& what) {
  const auto values = got.as<float>();
  ASSERT_EQ(values.size(), want.size()) << what;
  int shown = 0;
  for (size_t i = 0; i < want.size() && shown < 3; ++i) {
    const double bound = atol + 1e-5 * std::fabs(want[i]);
    if (!(std::fabs(values[i] - want[i]) <= bound)) ++shown;
    EXPECT_NEAR(values[i], want[i], bound) << what << " at " << i;
  }
}

TensorType f32_type(Shape shape) { return {DType::kF32, std::move(shape)}; }

// What the checks of all kinds share: inputs, the reference, and how it compares.
struct Sample {
  Lines lines;
  HostTensor x, dy, gamma, beta;
  Forward fore;
  Backward back;
  double sums_atol;

  Sample(Lines l, int64_t elements, int64_t parameters, bool is_rms, float offset = 0)
      : lines(std::move(l)),
        x(random_f32({elements}, 61, offset - 2, offset + 2)),
        dy(random_f32({elements}, 62)),
        gamma(random_f32({parameters}, 63, 0.5f, 1.5f)),
        beta(random_f32({parameters}, 64)),
        fore(forward(lines, x.as<float>(), gamma.as<float>(), beta.as<float>(), 1e-5, is_rms)),
        back(backward(lines, dy.as<float>(), x.as<float>(), gamma.as<float>(), rounded(fore.mean),
                      rounded(fore.rstd), is_rms)),
        sums_atol(2e-6 *
                      std::sqrt(static_cast<double>(elements / std::max<int64_t>(parameters, 1))) +
                  2e-6) {}
  HostTensor mean() const { return f32({lines.count}, rounded(fore.mean)); }
  HostTensor rstd() const { return f32({lines.count}, rounded(fore.rstd)); }
  TensorType per_line() const { return f32_type({lines.count}); }

  void expect_gradients(const std::vector<HostTensor>& got, const std::string& what) const {
    expect_near(got[0], back.dx, 1e-5, "dx of " + what);
    expect_near(got[1], back.dgamma, sums_atol, "dgamma of " + what);
    if (got.size() > 2) expect_near(got[2], back.dbeta, sums_atol, "dbeta of " + what);
  }
};

const std::vector<std::pair<int64_t, int64_t>>& layer_shapes() {
  static const std::vector<std::pair<int64_t, int64_t>> all = {
      {1, 1},     {1, 7},    {5, 3},    {33, 10},   {2, 16},   {7, 17},
      {3, 31},    {17, 64},  {9, 65},   {40, 79},   {31, 127}, {392, 256},
      {128, 300}, {5, 1024}, {2, 5003}, {1000, 20}, {9, 256},  {9, 257}};
  return all;
}

TEST(NormLayer, MatchesDouble) {
  for (const auto& [rows, length] : layer_shapes()) {
    if (is_too_large(8 * rows * length)) continue;  // the simulator: several kernels by case
    const Sample s(layers(rows, length), rows * length, length, false);
    for (DeviceClass c : kClasses) {
      const std::string what =
          class_name(c) + " layer " + std::to_string(rows) + "x" + std::to_string(length);
      const auto got = run_plan(plan_layer_norm(c, rows, length, 1e-5f), {s.x, s.gamma, s.beta},
                                {s.x.type, s.per_line(), s.per_line()});
      expect_near(got[0], s.fore.y, 1e-5, "y of " + what);
      expect_near(got[1], s.fore.mean, 1e-6, "mean of " + what);
      expect_near(got[2], s.fore.rstd, 1e-6, "rstd of " + what);
      s.expect_gradients(
          run_plan(plan_layer_norm_grad(c, rows, length), {s.dy, s.x, s.gamma, s.mean(), s.rstd()},
                   {s.x.type, s.gamma.type, s.gamma.type}),
          what);
    }
  }
}

TEST(NormRms, MatchesDouble) {
  for (const auto& [rows, length] : layer_shapes()) {
    if (is_too_large(8 * rows * length)) continue;  // the simulator: several kernels by case
    const Sample s(layers(rows, length), rows * length, length, true);
    for (DeviceClass c : kClasses) {
      const std::string what =
          class_name(c) + " rms " + std::to_string(rows) + "x" + std::to_string(length);
      const auto got = run_plan(plan_rms_norm(c, rows, length, 1e-5f), {s.x, s.gamma},
                                std::vector<TensorType>{s.x.type, s.per_line()});
      expect_near(got[0], s.fore.y, 1e-5, "y of " + what);
      expect_near(got[1], s.fore.rstd, 1e-6, "rstd of " + what);
      s.expect_gradients(
          run_plan(plan_rms_norm_grad(c, rows, length), {s.dy, s.x, s.gamma, s.rstd()},
                   std::vector<TensorType>{s.x.type, s.gamma.type}),
          what);
    }
  }
}

// A mean a thousand times the deviation costs no more digits than the numbers themselves have lost.
TEST(NormLayer, LargeMeanKeepsTheVariance) {
  for (int64_t length : {10, 200}) {
    const Sample s(layers(4, length), 4 * length, length, false, 2000);
    for (DeviceClass c : kClasses) {
      const auto got = run_plan(plan_layer_norm(c, 4, length, 1e-5f), {s.x, s.gamma, s.beta},
                                {s.x.type, s.per_line(), s.per_line()});
      for (size_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(got[2].as<float>()[i], s.fore.rstd[i], 1e-5) << class_name(c);
      }
      expect_near(got[0], s.fore.y, 1e-3, class_name(c));
    }
  }
}

TEST(NormLayer, NaNStaysInItsRow) {
  for (int64_t length : {5, 40}) {
    std::vector<float> values(3 * length, 0.5f);
    values[length + 3] = NAN;
    const HostTensor x = f32({3, length}, values);
    const HostTensor ones = f32({length}, std::vector<float>(length, 1));
    for (DeviceClass c : kClasses) {
      const auto y = run_plan(plan_layer_norm(c, 3, length, 1e-5f), {x, ones, ones},
                              {x.type, f32_type({3}), f32_type({3})})[0]
                         .as<float>();
      for (int64_t i = 0; i < 3 * length; ++i) EXPECT_EQ(std::isnan(y[i]), i / length == 1) << i;
    }
  }
}

TEST(NormLayer, NoRowsGiveZeroParameterGradients) {
  for (DeviceClass c : kClasses) {
    EXPECT_TRUE(plan_layer_norm(c, 0, 5, 1e-5f).launches.empty());
    const HostTensor none(f32_type({0, 5})), gamma = f32({5}, std::vector<float>(5, 1));
    const HostTensor no_line(f32_type({0}));
    const auto got = run_plan(plan_layer_norm_grad(c, 0, 5), {none, none, gamma, no_line, no_line},
                              {none.type, gamma.type, gamma.type});
    EXPECT_EQ(got[1].as<float>(), std::vector<float>(5, 0));
    EXPECT_EQ(got[2].as<float>(), std::vector<float>(5, 0));
  }
}

struct GroupCase {
  ChannelShape shape;
  int64_t groups;
};

TEST(NormGroup, MatchesDouble) {
  for (const auto& [shape, groups] : std::vector<GroupCase>{{{1, 1, 1}, 1},
                                                            {{2, 4, 1}, 2},
                                                            {{3, 6, 5}, 3},
                                                            {{2, 6, 16}, 1},
                                                            {{2, 8, 49}, 8},
                                                            {{1, 4, 64}, 2},
                                                            {{5, 32, 1}, 4},
                                                            {{2, 3, 33}, 3},
                                                            {{2, 10, 7}, 5},
                                                            {{4, 64, 196}, 8},
                                                            {{2, 32, 400}, 4}}) {
    const int64_t n = shape.batch * shape.channels * shape.inner;
    if (is_too_large(8 * n)) continue;
    const Sample s(grouped(shape, groups), n, shape.channels, false);
    for (DeviceClass c : kClasses) {
      const std::string what = class_name(c) + " group " +
                               to_string({shape.batch, shape.channels, shape.inner}) + " in " +
                               std::to_string(groups);
      const auto got = run_plan(plan_group_norm(c, shape, groups, 1e-5f), {s.x, s.gamma, s.beta},
                                {s.x.type, s.per_line(), s.per_line()});
      expect_near(got[0], s.fore.y, 1e-5, "y of " + what);
      expect_near(got[1], s.fore.mean, 1e-6, "mean of " + what);
      expect_near(got[2], s.fore.rstd, 1e-6, "rstd of " + what);
      s.expect_gradients(
          run_plan(plan_group_norm_grad(c, shape, groups), {s.dy, s.x, s.gamma, s.mean(), s.rstd()},
                   {s.x.type, s.gamma.type, s.gamma.type}),
          what);
    }
  }
}

TEST(NormBatch, MatchesDouble) {
  for (const ChannelShape& shape : std::vector<ChannelShape>{{2, 1, 1},
                                                             {5, 3, 1},
                                                             {64, 10, 1},
                                                             {33, 48, 1},
                                                             {1, 4, 9},
                                                             {3, 5, 7},
                                                             {2, 16, 16},
                                                             {4, 3, 49},
                                                             {7, 1, 20},
                                                             {20, 1, 3},
                                                             {2, 64, 196},
                                                             {8, 16, 400}}) {
    const int64_t n = shape.batch * shape.channels * shape.inner;
    if (is_too_large(8 * n)) continue;
    const Sample s(channels(shape), n, shape.channels, false);
    const HostTensor old_mean = random_f32({shape.channels}, 65);
    const HostTensor old_var = random_f32({shape.channels}, 66, 0.5f, 2);
    Values new_mean, new_var;
    const double count = static_cast<double>(shape.batch * shape.inner);
    for (int64_t k = 0; k < shape.channels; ++k) {
      new_mean.push_back(0.8 * old_mean.as<float>()[k] + 0.2 * s.fore.mean[k]);
      new_var.push_back(0.8 * old_var.as<float>()[k] +
                        0.2 * s.fore.variance[k] * count / (count - 1));
    }
    for (DeviceClass c : kClasses) {
      const std::string what =
          class_name(c) + " batch " + to_string({shape.batch, shape.channels, shape.inner});
      const TensorType line = s.per_line();
      const auto got =
          run_plan(plan_batch_norm(c, shape, 1e-5f, 0.2f),
                   {s.x, s.gamma, s.beta, old_mean, old_var}, {s.x.type, line, line, line, line});
      expect_near(got[0], s.fore.y, 1e-5, "y of " + what);
      expect_near(got[1], new_mean, 1e-6, "running mean of " + what);
      expect_near(got[2], new_var, 1e-6, "running variance of " + what);
      expect_near(got[3], s.fore.mean, 1e-6, "mean of " + what);
      expect_near(got[4], s.fore.rstd, 1e-5, "rstd of " + what);
      s.expect_gradients(
          run_plan(plan_batch_norm_grad(c, shape), {s.dy, s.x, s.gamma, s.mean(), s.rstd()},
                   {s.x.type, s.gamma.type, s.gamma.type}),
          what);
      const HostTensor variance = f32({shape.channels}, rounded(s.fore.variance));
      expect_near(run_plan(plan_batch_norm_inference(c, shape, 1e-5f),
                           {s.x, s.gamma, s.beta, s.mean(), variance}, s.x.type),
                  s.fore.y, 2e-5, "inference of " + what);
    }
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
