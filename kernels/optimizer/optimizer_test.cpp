#include "kernels/optimizer/step_rules.h"
#include "kernels/plan/merge_launches.h"
#include "kernels/test_support.h"

#include <algorithm>

namespace ballast::kernels::testing {
namespace {

std::vector<int64_t> sizes_of_one() {
  if (is_simulated()) return {0, 1, 7, 16, 100};
  return {0,   1,   2,   7,   15,  16,   17,   31,   32,   48,    63,
          100, 127, 128, 256, 257, 1009, 4095, 4096, 4111, 100003};
}

// Sensible scalars of a rule, in the order of optimizer.h.
std::vector<float> scalars_of(const std::string& rule) {
  if (rule == "scale") return {-0.7f};
  if (rule == "sgd" || rule == "adagrad") return {0.03f};
  if (rule == "rmsprop") return {0.01f, 0.9f, 0.5f, 1e-6f};
  if (rule == "adam_weight_decay") return {0.01f, 0.9f, 0.99f, 1e-6f, 0.1f};
  std::vector<float> values = {0.9f * 0.9f, 0.99f * 0.99f, 0.01f, 0.9f, 0.99f, 1e-6f};
  if (rule == "adamw") values.push_back(0.1f);
  return rule.rfind("adam", 0) == 0 ? values : std::vector<float>{0.01f, 0.9f};
}

struct Element {
  double p, m, v;
};

// The largest errors of a step, of numbers up to some 10.
constexpr double kStepError = 2e-6;

bool is_near(float got, double want) {
  if (std::isnan(want)) return std::isnan(got);
  return got == static_cast<float>(want) || std::fabs(got - want) <= kStepError;
}

// The formulas of optimizer.h for one element.
Element stepped(const std::string& rule, Element e, double g, const std::vector<float>& values) {
  const std::vector<double> s(values.begin(), values.end());
  if (rule == "scale") return {e.p * s[0], 0, 0};
  if (rule == "sgd") return {e.p - s[0] * g, 0, 0};
  if (rule == "adagrad") {
    const double m = e.m + g * g;
    return {e.p - s[0] * g / std::sqrt(m), m, 0};
  }
  if (rule == "rmsprop") {
    const double m = s[1] * e.m + (1 - s[1]) * g * g;
    const double v = s[2] * e.v + s[0] * g / std::sqrt(m + s[3]);
    return {e.p - v, m, v};
  }
  if (rule == "momentum" || rule == "momentum_nesterov") {
    const double m = s[1] * e.m + g;
    return {e.p - s[0] * (rule == "momentum" ? m : g + s[1] * m), m, 0};
  }
  const bool is_plain = rule == "adam_weight_decay";
  const double beta1 = is_plain ? s[1] : s[3], beta2 = is_plain ? s[2] : s[4];
  const double epsilon = is_plain ? s[3] : s[5], rate = is_plain ? s[0] : s[2];
  const double m = beta1 * e.m + (1 - beta1) * g, v = beta2 * e.v + (1 - beta2) * g * g;
  if (is_plain) return {e.p * (1 - rate * s[4]) - rate * m / (std::sqrt(v) + epsilon), m, v};
  if (rule == "adamw") {
    const double scale = std::sqrt(v / (1 - s[1])) + epsilon;
    return {e.p * (1 - rate * s[6]) - rate / (1 - s[0]) * m / scale, m, v};
  }
  const double direction = rule == "adam" ? m : beta1 * m + (1 - beta1) * g;
  const double r = rate * std::sqrt(1 - s[1]) / (1 - s[0]);
  return {e.p - r * direction / (std::sqrt(v) + epsilon), m, v};
}

struct Operands {
  std::vector<HostTensor> inputs;
  std::vector<TensorType> outputs;
  std::vector<int> in_place;
};

Operands operands_of(const StepRule& rule, const std::vector<int64_t>& sizes) {
  Operands all;
  uint32_t seed = 1;
  for (int64_t n : sizes) {
    for (uint32_t k = 0; k < 1 + rule.states; ++k) {
      all.in_place.push_back(static_cast<int>(all.inputs.size()));
      // States are squares in most rules.
      all.inputs.push_back(random_f32({n}, seed++, k == 0 ? -2.0f : 0.1f));
      all.outputs.push_back(all.inputs.back().type);
    }
    if (rule.has_gradient) all.inputs.push_back(random_f32({n}, seed++));
  }
  for (float value : scalars_of(rule.name)) all.inputs.push_back(f32({}, {value}));
  return all;
}

void expect_step(const StepRule& rule, const std::vector<int64_t>& sizes, const Operands& given,
                 const std::vector<HostTensor>& got, const std::string& what) {
  const size_t ins = 1 + rule.states + (rule.has_gradient ? 1 : 0), outs = 1 + rule.states;
  for (size_t t = 0; t < sizes.size(); ++t) {
    const auto in = [&](size_t k) { return given.inputs[ins * t + k].as<float>(); };
    const auto out = [&](size_t k) { return got[outs * t + k].as<float>(); };
    const std::vector<float> p = in(0), none(sizes[t]);
    const std::vector<float> m = rule.states > 0 ? in(1) : none, v = rule.states > 1 ? in(2) : none;
    const std::vector<float> g = rule.has_gradient ? in(ins - 1) : none, new_p = out(0);
    const std::vector<float> new_m = rule.states > 0 ? out(1) : none;
    const std::vector<float> new_v = rule.states > 1 ? out(2) : none;
    for (int64_t i = 0; i < sizes[t]; ++i) {
      const Element want = stepped(rule.name, {p[i], m[i], v[i]}, g[i], scalars_of(rule.name));
      const bool is_right = is_near(new_p[i], want.p) &&
                            (rule.states < 1 || is_near(new_m[i], want.m)) &&
                            (rule.states < 2 || is_near(new_v[i], want.v));
      ASSERT_TRUE(is_right) << what << " tensor " << t << " element " << i << " of gradient "
                            << g[i] << ": " << new_p[i] << " " << new_m[i] << " " << new_v[i]
                            << ", expected " << want.p << " " << want.m << " " << want.v;
    }
  }
}

TEST(Optimizer, EveryRuleInPlaceAndApart) {
  for (const StepRule& rule : kStepRules) {
    for (int64_t n : sizes_of_one()) {
      const Operands given = operands_of(rule, {n});
      for (DeviceClass c : device_classes()) {
        const Plan plan = plan_step(c, rule.name, {n});
        EXPECT_TRUE(same_launches(plan, plan_step(c, rule.name, {n})));
        const auto apart = run_plan(plan, given.inputs, given.outputs);
        expect_step(rule, {n}, given, apart, rule.name);
        const auto in_place = run_plan(plan, given.inputs, given.outputs, given.in_place);
        for (size_t k = 0; k < apart.size(); ++k) EXPECT_EQ(apart[k].bytes, in_place[k].bytes);
      }
    }
  }
}

// Where every sum begins at zero, and numbers that are none: what IEEE gives, in these elements
// alone.
TEST(Optimizer, ZeroStatesAndNumbersThatAreNone) {
  const float odd[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1.0f};
  for (const StepRule& rule : kStepRules) {
    for (int64_t n : {5, 16, 37}) {
      if (is_simulated()) continue;  // no address depends on a number
      Operands given = operands_of(rule, {n});
      for (uint32_t k = 0; k <= rule.states + (rule.has_gradient ? 1 : 0); ++k) {
        auto values = given.inputs[k].as<float>();
        const bool is_state = k > 0 && k <= rule.states;
        for (int64_t i = 0; i < n; ++i) {
          if (is_state) values[i] = 0;
          if (k == rule.states + 1 && i % 3 == 0) values[i] = odd[i / 3 % 6];
          if (k == 0 && i % 5 == 4) values[i] = odd[i / 5 % 6];
        }
        given.inputs[k] = f32({n}, values);
      }
      for (DeviceClass c : device_classes()) {
        const auto got = run_plan(plan_step(c, rule.name, {n}), given.inputs, given.outputs);
        expect_step(rule, {n}, given, got, class_name(c) + " " + rule.name);
      }
    }
  }
}

// Ten tensors: one merged launch of eight and one of the two others, each for whole vectors and for
// what is left of them.
TEST(Optimizer, ListsGiveTheBitsOfSingleTensors) {
  const std::vector<int64_t> sizes =
      is_simulated() ? std::vector<int64_t>{5, 16, 0, 1, 33, 3, 32, 1, 2, 4, 48}
                     : std::vector<int64_t>{5, 4096, 0, 16, 100, 3, 20000, 1, 33, 64, 48};
  for (const StepRule& rule : kStepRules) {
    const std::string name = rule.name;
    const Operands given = operands_of(rule, sizes);
    const size_t ins = 1 + rule.states + (rule.has_gradient ? 1 : 0), outs = 1 + rule.states;
    for (DeviceClass c : device_classes()) {
      if (is_simulated() && name != "momentum") continue;
      const Plan plan = plan_step(c, name, sizes);
      EXPECT_LE(plan.launches.size(), 4u);
      EXPECT_TRUE(same_launches(plan, plan_step(c, name, sizes)));
      for (const auto& in_place : {std::vector<int>{}, given.in_place}) {
        const auto got = run_plan(plan, given.inputs, given.outputs, in_place);
        expect_step(rule, sizes, given, got, name);
        for (size_t t = 0; t < sizes.size(); ++t) {
          std::vector<HostTensor> inputs(given.inputs.begin() + ins * t,
                                         given.inputs.begin() + ins * (t + 1));
          inputs.insert(inputs.end(), given.inputs.begin() + ins * sizes.size(),
                        given.inputs.end());
          const std::vector<TensorType> types(given.outputs.begin() + outs * t,
                                              given.outputs.begin() + outs * (t + 1));
          const auto alone = run_plan(plan_step(c, name, {sizes[t]}), inputs, types);
          for (size_t k = 0; k < outs; ++k) {
            EXPECT_EQ(got[outs * t + k].bytes, alone[k].bytes) << name << " tensor " << t;
          }
        }
      }
    }
  }
}

TEST(Optimizer, SmallListsMerge) {
  const Operands given = operands_of(step_rule("adam"), {16, 5, 40});
  for (DeviceClass c : device_classes()) {
    const auto got = run_plan(plan_step(c, "adam", {16, 5, 40}), given.inputs, given.outputs);
    expect_step(step_rule("adam"), {16, 5, 40}, given, got, class_name(c));
  }
}

TEST(Optimizer, EqualLaunchesShareOneSource) {
  const auto source_of = [](const std::vector<int64_t>& sizes) {
    return plan_step(DeviceClass::kCpu, "adam", sizes).launches.at(0).source->id;
  };
  EXPECT_EQ(source_of({16, 16}), source_of({32, 64, 128}));
  EXPECT_EQ(merge_launches({}).size(), 0u);
}

TEST(Optimizer, GlobalNormAndFiniteness) {
  const std::vector<std::vector<int64_t>> lists = {
      {},       {0},         {1},       {63},          {64},
      {65},     {100, 7},    {16384},   {16385, 0, 3}, {50000, 16384, 1, 2, 3, 4, 5, 6, 7, 8},
      {2},      {127, 128},  {1009},    {4111, 31},    {16383},
      {32768},  {32771, 16}, {1, 1, 1}, {640, 0},      {100003},
      {0, 0, 7}};
  for (const auto& sizes : lists) {
    std::vector<HostTensor> tensors;
    double sum = 0;
    int64_t total = 0;
    for (int64_t n : sizes) {
      tensors.push_back(random_f32({n}, static_cast<uint32_t>(n) + 3));
      for (float x : tensors.back().as<float>()) sum += double{x} * x;
      total += n;
    }
    if (is_too_large(20 * total)) continue;
    for (DeviceClass c : device_classes()) {
      const auto norm = [&] {
        return run_plan(plan_global_norm(c, sizes), tensors, TensorType{DType::kF32, {}})
            .as<float>()[0];
      };
      EXPECT_NEAR(norm(), std::sqrt(sum), 1e-6 * std::sqrt(sum)) << class_name(c) << " " << total;
      EXPECT_EQ(norm(), norm());
      const auto is_finite = [&] {
        return run_plan(plan_all_finite(c, sizes), tensors, TensorType{DType::kBool, {}}).bytes[0];
      };
      EXPECT_EQ(is_finite(), 1);
      if (total == 0 || is_simulated()) continue;  // no address depends on a number
      const auto holder = std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
      const HostTensor kept = tensors[holder];
      for (float bad : {NAN, INFINITY, -INFINITY}) {
        auto values = kept.as<float>();
        values[values.size() / 2] = bad;
        tensors[holder] = f32({sizes[holder]}, values);
        EXPECT_EQ(is_finite(), 0) << bad;
        EXPECT_TRUE(std::isnan(bad) ? std::isnan(norm()) : norm() == INFINITY) << bad;
      }
      // Finite, but their squares are not; and so small that these are nothing.
      for (const auto& [size, want] : {std::pair{3e38f, INFINITY}, std::pair{1e-30f, 0.0f}}) {
        tensors[holder] = f32({sizes[holder]}, std::vector<float>(kept.as<float>().size(), size));
        EXPECT_EQ(is_finite(), 1);
        if (sizes.size() == 1) {
          EXPECT_EQ(norm(), want) << class_name(c) << " " << size;
        }
      }
      tensors[holder] = kept;
    }
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
