#include "kernels/test_support.h"

#include <algorithm>
#include <functional>

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
    const bool is_near = std::isfinite(want[i]) ? std::fabs(values[i] - want[i]) <= bound
                                                : ulps(values[i], want[i]) == 0;
    if (!is_near) ++shown;
    EXPECT_TRUE(is_near) << what << " at " << i << ": " << values[i] << " for " << want[i];
  }
}

TensorType f32_type(Shape shape) { return {DType::kF32, std::move(shape)}; }

// One of the four, of one shape.
struct Norm {
  enum Kind { kLayer, kRms, kGroup, kBatch } kind;
  std::string name;
  Lines lines;
  int64_t parameters;
  std::function<Plan(DeviceClass)> forward, backward, inference;

  int64_t elements() const { return lines.count * lines.length; }
};

constexpr float kEpsilon = 1e-5f, kMomentum = 0.2f;

Norm layer(int64_t rows, int64_t length) {
  return {Norm::kLayer,
          "layer " + to_string({rows, length}),
          layers(rows, length),
          length,
          [=](DeviceClass c) { return plan_layer_norm(c, rows, length, kEpsilon); },
          [=](DeviceClass c) { return plan_layer_norm_grad(c, rows, length); },
          {}};
}

Norm rms(int64_t rows, int64_t length) {
  return {Norm::kRms,
          "rms " + to_string({rows, length}),
          layers(rows, length),
          length,
          [=](DeviceClass c) { return plan_rms_norm(c, rows, length, kEpsilon); },
          [=](DeviceClass c) { return plan_rms_norm_grad(c, rows, length); },
          {}};
}

Norm group(const ChannelShape& s, int64_t groups) {
  return {Norm::kGroup,
          "group " + to_string({s.batch, s.channels, s.inner}) + " in " + std::to_string(groups),
          grouped(s, groups),
          s.channels,
          [=](DeviceClass c) { return plan_group_norm(c, s, groups, kEpsilon); },
          [=](DeviceClass c) { return plan_group_norm_grad(c, s, groups); },
          {}};
}

Norm batch(const ChannelShape& s) {
  return {Norm::kBatch,
          "batch " + to_string({s.batch, s.channels, s.inner}),
          channels(s),
          s.channels,
          [=](DeviceClass c) { return plan_batch_norm(c, s, kEpsilon, kMomentum); },
          [=](DeviceClass c) { return plan_batch_norm_grad(c, s); },
          [=](DeviceClass c) { return plan_batch_norm_inference(c, s, kEpsilon); }};
}

// Inputs, the reference, and how results compare with it.
struct Sample {
  using Edit = std::function<void(std::vector<float>& x, std::vector<float>& dy)>;

  Norm norm;
  HostTensor x, dy, gamma, beta;
  Forward fore;
  Backward back;

  explicit Sample(Norm n, float offset = 0, const Edit& edit = {})
      : norm(std::move(n)),
        x(random_f32({norm.elements()}, 61, offset - 2, offset + 2)),
        dy(random_f32({norm.elements()}, 62)),
        gamma(random_f32({norm.parameters}, 63, 0.5f, 1.5f)),
        beta(random_f32({norm.parameters}, 64)) {
    auto values = x.as<float>(), slopes = dy.as<float>();
    if (edit) edit(values, slopes);
    x = f32(x.type.shape, values);
    dy = f32(dy.type.shape, slopes);
    fore = forward(norm.lines, values, gamma.as<float>(), beta.as<float>(), kEpsilon, is_rms());
    back = backward(norm.lines, slopes, values, gamma.as<float>(), rounded(fore.mean),
                    rounded(fore.rstd), is_rms());
  }

  // What is allowed of y and of the second moments, beside what is relative.
  void check(double atol = 1e-5, double moment_atol = 1e-6) const {
    for (DeviceClass c : device_classes()) {
      check_forward(c, atol, moment_atol);
      if (norm.kind == Norm::kBatch) check_inference(c, 2 * atol);
      const std::string what = class_name(c) + " " + norm.name;
      std::vector<HostTensor> inputs{dy, x, gamma, mean(), rstd()};
      std::vector<TensorType> types{x.type, gamma.type, gamma.type};
      if (is_rms()) inputs.erase(inputs.begin() + 3), types.pop_back();
      const auto got = run_plan(norm.backward(c), inputs, types);
      const int64_t shares = norm.elements() / std::max<int64_t>(norm.parameters, 1);
      const double sums_atol = 2e-6 * (1 + std::sqrt(static_cast<double>(shares)));
      expect_near(got[0], back.dx, 1e-5, "dx of " + what);
      expect_near(got[1], back.dgamma, sums_atol, "dgamma of " + what);
      if (!is_rms()) expect_near(got[2], back.dbeta, sums_atol, "dbeta of " + what);
    }
  }

 private:
  bool is_rms() const { return norm.kind == Norm::kRms; }
  HostTensor mean() const { return f32({norm.lines.count}, rounded(fore.mean)); }
  HostTensor rstd() const { return f32({norm.lines.count}, rounded(fore.rstd)); }

  void check_forward(DeviceClass c, double atol, double moment_atol) const {
    const std::string what = class_name(c) + " " + norm.name;
    const TensorType line = f32_type({norm.lines.count});
    const bool is_batch = norm.kind == Norm::kBatch;
    std::vector<HostTensor> inputs{x, gamma};
    std::vector<TensorType> types{x.type, line};
    if (!is_rms()) inputs.push_back(beta), types.push_back(line);
    const HostTensor old_mean = random_f32(line.shape, 65);
    const HostTensor old_var = random_f32(line.shape, 66, 0.5f, 2);
    if (is_batch) {
      inputs.insert(inputs.end(), {old_mean, old_var});
      types.insert(types.end(), {line, line});
    }
    const auto got = run_plan(norm.forward(c), inputs, types);
    expect_near(got.front(), fore.y, atol, "y of " + what);
    expect_near(got.back(), fore.rstd, moment_atol, "rstd of " + what);
    if (!is_rms()) expect_near(got[got.size() - 2], fore.mean, 1e-6, "mean of " + what);
    if (!is_batch) return;
    const auto count = static_cast<double>(norm.lines.length);
    const auto moved = [&](const HostTensor& old, Values now, double factor) {
      for (size_t k = 0; k < now.size(); ++k) {
        now[k] = (1 - kMomentum) * old.as<float>()[k] + kMomentum * now[k] * factor;
      }
      return now;
    };
    expect_near(got[1], moved(old_mean, fore.mean, 1), 1e-6, "running mean of " + what);
    expect_near(got[2], moved(old_var, fore.variance, count / (count - 1)), moment_atol,
                "running variance of " + what);
  }

  void check_inference(DeviceClass c, double atol) const {
    const HostTensor variance = f32({norm.lines.count}, rounded(fore.variance));
    expect_near(run_plan(norm.inference(c), {x, gamma, beta, mean(), variance}, x.type), fore.y,
                atol, "inference of " + class_name(c) + " " + norm.name);
  }
};

void check_all(const std::vector<Norm>& norms) {
  for (const Norm& norm : norms) {
    if (!is_too_large(12 * norm.elements())) Sample(norm).check();
  }
}

std::vector<Norm> by_rows(Norm (*make)(int64_t rows, int64_t length)) {
  std::vector<Norm> norms;
  for (const auto& [rows, length] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1},   {1, 7},   {5, 3},    {33, 10},   {2, 16},    {7, 17},   {3, 31},   {17, 64},
           {9, 65},  {40, 79}, {31, 127}, {392, 256}, {128, 300}, {5, 1024}, {2, 5003}, {1000, 20},
           {9, 256}, {9, 257}, {3, 64},   {1, 320},   {1, 261},   {70, 1},   {2, 4096}}) {
    norms.push_back(make(rows, length));
  }
  return norms;
}

TEST(NormLayer, MatchesDouble) { check_all(by_rows(layer)); }
TEST(NormRms, MatchesDouble) { check_all(by_rows(rms)); }

TEST(NormGroup, MatchesDouble) {
  check_all({group({1, 1, 1}, 1),    group({2, 4, 1}, 2),    group({3, 6, 5}, 3),
             group({2, 6, 16}, 1),   group({2, 8, 49}, 8),   group({1, 4, 64}, 2),
             group({5, 32, 1}, 4),   group({2, 3, 33}, 3),   group({2, 10, 7}, 5),
             group({2, 5, 1}, 5),    group({1, 7, 13}, 1),   group({3, 12, 9}, 4),
             group({2, 16, 64}, 2),  group({6, 4, 17}, 2),   group({1, 64, 3}, 64),
             group({2, 15, 31}, 3),  group({33, 6, 1}, 2),   group({1, 3, 1009}, 1),
             group({4, 48, 8}, 6),   group({4, 64, 196}, 8), group({2, 32, 400}, 4),
             group({1, 4, 2050}, 2), group({33, 4, 70}, 2)});
}

TEST(NormBatch, MatchesDouble) {
  check_all({batch({2, 1, 1}),    batch({5, 3, 1}),    batch({64, 10, 1}),  batch({33, 48, 1}),
             batch({1, 4, 9}),    batch({3, 5, 7}),    batch({2, 16, 16}),  batch({4, 3, 49}),
             batch({7, 1, 20}),   batch({20, 1, 3}),   batch({1, 1, 2}),    batch({3, 17, 1}),
             batch({2, 7, 33}),   batch({1, 20, 64}),  batch({128, 3, 1}),  batch({5, 31, 4}),
             batch({4, 65, 3}),   batch({2, 3, 1009}), batch({1, 129, 5}),  batch({2, 64, 196}),
             batch({8, 16, 400}), batch({2, 3, 2047}), batch({2, 2, 2048}), batch({256, 33, 1}),
             batch({509, 7, 1}),  batch({40, 70, 4}),  batch({300, 1, 1})});
}

// By columns and rows, whole steps and what is left, one line and several of a channel.
std::vector<Norm> some_of_each() {
  return {layer(4, 10),         layer(3, 40),        layer(2, 64),        layer(4, 200),
          layer(2, 320),        rms(4, 10),          rms(3, 40),          rms(2, 64),
          rms(4, 200),          rms(2, 320),         group({3, 6, 5}, 3), group({2, 4, 1}, 2),
          group({2, 6, 40}, 2), group({2, 3, 9}, 1), batch({4, 3, 1}),    batch({40, 20, 1}),
          batch({3, 5, 7}),     batch({2, 3, 33}),   batch({2, 20, 3}),   batch({1, 3, 70})};
}

// A mean a thousand times the deviation costs no more digits than the numbers themselves have lost:
// batches add up distances between the means of lines, which are such numbers.
TEST(Norms, LargeMeanKeepsTheVariance) {
  constexpr float kOffset = 2000;
  for (const Norm& norm : some_of_each()) {
    Sample(norm, kOffset).check(1e-3, norm.kind == Norm::kBatch ? kOffset * 0x1p-23 : 1e-5);
  }
}

TEST(Norms, NaNAndInfinityStayInTheirLines) {
  for (const Norm& norm : some_of_each()) {
    const auto at = static_cast<size_t>(norm.lines.element(1, norm.lines.length / 2));
    for (const float special : {NAN, INFINITY, -INFINITY}) {
      Sample(norm, 0, [&](auto& x, auto&) { x[at] = special; }).check();
      Sample(norm, 0, [&](auto&, auto& dy) { dy[at] = special; }).check();
    }
  }
}

TEST(NormBatch, InferenceKeepsNaNInItsElementOrChannel) {
  for (const ChannelShape& s : std::vector<ChannelShape>{{3, 5, 7}, {2, 20, 3}, {4, 33, 1}}) {
    const int64_t n = s.batch * s.channels * s.inner;
    auto x = random_f32({n}, 67).as<float>();
    x[3] = NAN, x[n - 1] = INFINITY;
    std::vector<float> variance(s.channels, 1.0f), ones(s.channels, 1.0f);
    variance[1] = NAN;
    for (DeviceClass c : device_classes()) {
      const HostTensor one = f32({s.channels}, ones);
      const auto y =
          run_plan(plan_batch_norm_inference(c, s, kEpsilon),
                   {f32({n}, x), one, one, one, f32({s.channels}, variance)}, f32_type({n}))
              .as<float>();
      for (int64_t i = 0; i < n; ++i) {
        const bool is_nan = i == 3 || i / s.inner % s.channels == 1;
        EXPECT_EQ(std::isnan(y[i]), is_nan) << class_name(c) << " " << i;
        EXPECT_EQ(std::isinf(y[i]), i == n - 1 && !is_nan) << class_name(c) << " " << i;
      }
    }
  }
}

TEST(Norms, NoLinesGiveZeroParameterGradients) {
  for (const Norm& norm : {layer(0, 5), layer(0, 64), rms(0, 5), rms(0, 64), group({0, 6, 4}, 2)}) {
    for (DeviceClass c : device_classes())
      EXPECT_TRUE(norm.forward(c).launches.empty()) << norm.name;
    Sample(norm).check();
  }
  for (const ChannelShape& s : std::vector<ChannelShape>{{0, 4, 3}, {2, 4, 0}}) {
    for (DeviceClass c : device_classes()) EXPECT_TRUE(batch(s).inference(c).launches.empty());
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
