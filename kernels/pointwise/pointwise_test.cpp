#include "kernels/pointwise/pointwise_ops.h"
#include "kernels/test_support.h"

#include <limits>
#include <map>

namespace ballast::kernels::testing {
namespace {

using Reference = std::function<double(double, double)>;

struct Row {
  Reference reference;
  double max_ulps = 0;  // 0: exact
  double atol = 0;      // where small results come from cancelling terms; of the largest operand
};

double nan_max(double a, double b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
}
double nan_min(double a, double b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b);
}
// x times a gate that vanishes faster than x grows.
double gated(double x, double gate) { return x < -200 ? 0 : x * gate; }
double normal(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }
double tanh_argument(double x) { return std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x); }
double tanh_gate(double x) { return 1 / (1 + std::exp(-2 * tanh_argument(x))); }
double gelu_slope(double x) {
  return normal(x) + (std::isinf(x) ? 0 : x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI));
}
double gelu_tanh_slope(double x) {
  const double gate = tanh_gate(x), slope = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
  return gate + (std::fabs(x) > 30 ? 0 : 2 * x * gate * (1 - gate) * slope);
}
// numpy's, from its documentation; fmod is exact.
double floor_mod(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return std::signbit(rest) != std::signbit(b) ? rest + b : rest;
}
double floor_div(double a, double b) {
  if (b == 0) return a / b;
  const double mod = floor_mod(a, b);
  return std::isinf(mod) ? -1 : std::nearbyint((a - mod) / b);
}
double sign_of(double a) { return std::isnan(a) ? a : (a > 0) - (a < 0); }

// References in double of every op over f32 (unary ops ignore b).
const std::map<std::string, Row>& float_rows() {
  static const std::map<std::string, Row> rows = {
      {"neg", {[](double a, double) { return -a; }}},
      {"abs", {[](double a, double) { return std::fabs(a); }}},
      {"sign", {[](double a, double) { return sign_of(a); }}},
      {"square", {[](double a, double) { return a * a; }, 0.5}},
      {"exp", {[](double a, double) { return std::exp(a); }, 2}},
      {"log", {[](double a, double) { return std::log(a); }, 2}},
      {"sqrt", {[](double a, double) { return std::sqrt(a); }, 1}},
      {"rsqrt", {[](double a, double) { return 1 / std::sqrt(a); }, 2}},
      {"reciprocal", {[](double a, double) { return 1 / a; }, 1}},
      {"tanh", {[](double a, double) { return std::tanh(a); }, 3}},
      {"sigmoid", {[](double a, double) { return 1 / (1 + std::exp(-a)); }, 4}},
      {"relu", {[](double a, double) { return a <= 0 ? 0 : a; }}},
      {"floor", {[](double a, double) { return std::floor(a); }}},
      {"ceil", {[](double a, double) { return std::ceil(a); }}},
      {"round", {[](double a, double) { return std::nearbyint(a); }}},
      {"trunc", {[](double a, double) { return std::trunc(a); }}},
      {"exp2", {[](double a, double) { return std::exp2(a); }, 2}},
      {"expm1", {[](double a, double) { return std::expm1(a); }, 2}},
      {"log2", {[](double a, double) { return std::log2(a); }, 2}},
      {"log10", {[](double a, double) { return std::log10(a); }, 2}},
      {"log1p", {[](double a, double) { return std::log1p(a); }, 2}},
      {"sin", {[](double a, double) { return std::sin(a); }, 3}},
      {"cos", {[](double a, double) { return std::cos(a); }, 3}},
      {"tan", {[](double a, double) { return std::tan(a); }, 4}},
      {"asin", {[](double a, double) { return std::asin(a); }, 4}},
      {"acos", {[](double a, double) { return std::acos(a); }, 4}},
      {"atan", {[](double a, double) { return std::atan(a); }, 3}},
      {"sinh", {[](double a, double) { return std::sinh(a); }, 3}},
      {"cosh", {[](double a, double) { return std::cosh(a); }, 3}},
      {"asinh", {[](double a, double) { return std::asinh(a); }, 4}},
      {"acosh", {[](double a, double) { return std::acosh(a); }, 4}},
      {"atanh", {[](double a, double) { return std::atanh(a); }, 4}},
      {"erf", {[](double a, double) { return std::erf(a); }, 4}},
      {"erfc", {[](double a, double) { return std::erfc(a); }, 5}},
      {"gelu", {[](double a, double) { return gated(a, normal(a)); }, 0, 3e-7}},
      {"gelu_tanh", {[](double a, double) { return gated(a, tanh_gate(a)); }, 0, 3e-7}},
      {"silu", {[](double a, double) { return gated(a, 1 / (1 + std::exp(-a))); }, 4}},
      {"softplus",
       {[](double a, double) {
          return std::isnan(a) ? a : std::max(a, 0.0) + std::log1p(std::exp(-std::fabs(a)));
        },
        3}},
      {"isnan", {[](double a, double) { return std::isnan(a); }}},
      {"isinf", {[](double a, double) { return std::isinf(a); }}},
      {"isfinite", {[](double a, double) { return std::isfinite(a); }}},
      {"atan2", {[](double a, double b) { return std::atan2(a, b); }, 4}},
      {"floor_div", {floor_div, 0}},
      {"floor_mod", {floor_mod, 0.5}},
      {"gelu_grad", {[](double a, double b) { return a * gelu_slope(b); }, 0, 1e-6}},
      {"gelu_tanh_grad", {[](double a, double b) { return a * gelu_tanh_slope(b); }, 0, 1e-6}},
      {"add", {[](double a, double b) { return a + b; }, 0.5}},
      {"sub", {[](double a, double b) { return a - b; }, 0.5}},
      {"mul", {[](double a, double b) { return a * b; }, 0.5}},
      {"div", {[](double a, double b) { return a / b; }, 1}},
      {"pow", {[](double a, double b) { return std::pow(a, b); }, 4}},
      {"maximum", {nan_max}},
      {"minimum", {nan_min}},
      {"relu_grad", {[](double a, double b) { return b > 0 ? a : 0; }}},
      {"equal", {[](double a, double b) { return a == b; }}},
      {"not_equal", {[](double a, double b) { return a != b; }}},
      {"less", {[](double a, double b) { return a < b; }}},
      {"less_equal", {[](double a, double b) { return a <= b; }}},
      {"greater", {[](double a, double b) { return a > b; }}},
      {"greater_equal", {[](double a, double b) { return a >= b; }}},
      {"identity", {[](double a, double) { return a; }}},
  };
  return rows;
}

bool gives_bool(const PointwiseOp& op) {
  return op.rule == PointwiseRule::kCompare || op.rule == PointwiseRule::kTest;
}

class PointwiseFloat : public ::testing::TestWithParam<std::string> {};

// All pairs of special values, which also covers NaN and infinity.
TEST_P(PointwiseFloat, MatchesDoubleOnSpecialValues) {
  const PointwiseOp& op = *find_pointwise(GetParam());
  const Row& row = float_rows().at(GetParam());
  const std::vector<float> values = special_values();
  std::vector<float> a, b;
  for (float x : values) {
    for (float y : values) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const Shape shape = {static_cast<int64_t>(a.size())};
  std::vector<HostTensor> inputs = {f32(shape, a)};
  if (op.arity == 2) inputs.push_back(f32(shape, b));
  const bool is_bool = gives_bool(op);
  const TensorType type{is_bool ? DType::kBool : DType::kF32, shape};
  std::vector<TensorType> types(inputs.size(), TensorType{DType::kF32, shape});
  for (DeviceClass c : kClasses) {
    const HostTensor got = run_plan(plan_pointwise(c, op.name, types, type), inputs, type);
    const std::vector<float> floats = is_bool ? std::vector<float>() : got.as<float>();
    for (size_t i = 0; i < a.size(); ++i) {
      const double want = row.reference(a[i], b[i]);
      const float value = is_bool ? static_cast<float>(got.bytes[i]) : floats[i];
      const double bound = row.atol * std::max({1.0, std::fabs(a[i]) + 0.0, std::fabs(b[i]) + 0.0});
      if (std::fabs(value - want) <= bound) continue;
      EXPECT_LE(ulps(value, want), row.max_ulps)
          << class_name(c) << " " << op.name << "(" << a[i] << ", " << b[i] << ") = " << value
          << ", expected " << want;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, PointwiseFloat, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& [name, row] : float_rows()) names.push_back(name);
                           return names;
                         }()),
                         [](const auto& test) { return test.param; });

// Each op has a reference, so that a new row of the table cannot go untested.
TEST(Pointwise, EveryRowIsTested) {
  for (const PointwiseOp& op : pointwise_ops()) {
    const bool is_float = float_rows().count(op.name) > 0;
    const bool is_other = op.rule == PointwiseRule::kLogical || op.rule == PointwiseRule::kSelect ||
                          op.rule == PointwiseRule::kCast || op.rule == PointwiseRule::kInteger;
    EXPECT_TRUE(is_float || is_other) << op.name;
  }
}

// A sweep over the whole range of the functions that we compute ourselves.
TEST(Pointwise, ElementaryFunctionsAreAccurateEverywhere) {
  constexpr uint64_t kStep = 40009;
  if (is_too_large((uint64_t{1} << 32) / kStep)) GTEST_SKIP() << "too slow on the simulator";
  std::vector<float> values;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += kStep) {
    values.push_back(float_of(static_cast<uint32_t>(bits)));
  }
  const Shape shape = {static_cast<int64_t>(values.size())};
  const TensorType type{DType::kF32, shape};
  for (const char* name :
       {"exp",   "log",   "tanh", "sigmoid", "exp2", "expm1",     "log2", "log10",   "log1p",
        "sin",   "cos",   "tan",  "asin",    "acos", "atan",      "sinh", "cosh",    "asinh",
        "acosh", "atanh", "erf",  "erfc",    "gelu", "gelu_tanh", "silu", "softplus"}) {
    const Row& row = float_rows().at(name);
    const Plan plan = plan_pointwise(DeviceClass::kCpu, name, {type}, type);
    const auto got = run_plan(plan, {f32(shape, values)}, type).as<float>();
    double worst = 0;
    float where = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double want = row.reference(values[i], 0);
      if (std::fabs(got[i] - want) <= row.atol * std::max(1.0, std::fabs(values[i]) + 0.0))
        continue;
      const double error = ulps(got[i], want);
      if (error > worst) worst = error, where = values[i];
    }
    EXPECT_LE(worst, row.max_ulps) << name << " at " << where;
    RecordProperty(std::string(name) + "_max_ulps", std::to_string(worst));
  }
}

struct Broadcast {
  Shape a, b, result;
};

// The source of a function may differ between vectors and single elements.
TEST(Pointwise, ElementsHaveTheSameBitsInVectorsAndAlone) {
  std::vector<float> x = special_values();
  for (int i = 0; x.size() % 16 != 0 || i < 32; ++i) x.push_back(3.7f * std::sin(float(i)) - 1.0f);
  const int64_t n = static_cast<int64_t>(x.size());
  const TensorType whole{DType::kF32, {n}}, single{DType::kF32, {1}};
  for (DeviceClass c : kClasses) {
    for (const char* op : {"exp", "exp2", "sigmoid", "silu", "gelu_tanh", "erfc", "log"}) {
      const auto together =
          run_plan(plan_pointwise(c, op, {whole}, whole), {f32({n}, x)}, whole).as<uint32_t>();
      for (int64_t i = 0; i < n; ++i) {
        const HostTensor alone =
            run_plan(plan_pointwise(c, op, {single}, single), {f32({1}, {x[i]})}, single);
        if (std::isnan(alone.as<float>()[0]) && std::isnan(float_of(together[i]))) continue;
        ASSERT_EQ(alone.as<uint32_t>()[0], together[i]) << op << " of " << x[i];
      }
    }
  }
}

TEST(Pointwise, Broadcasts) {
  const std::vector<Broadcast> cases = {
      {{}, {}, {}},
      {{1}, {1}, {1}},
      {{7}, {7}, {7}},
      {{16}, {16}, {16}},
      {{17}, {}, {17}},
      {{}, {48}, {48}},
      {{48}, {1}, {48}},
      {{5, 32}, {32}, {5, 32}},
      {{5, 32}, {5, 1}, {5, 32}},
      {{5, 1}, {1, 32}, {5, 32}},
      {{64, 10}, {10}, {64, 10}},
      {{13, 1}, {1, 11}, {13, 11}},
      {{3, 1, 16}, {1, 5, 1}, {3, 5, 16}},
      {{2, 3, 4, 5}, {3, 1, 5}, {2, 3, 4, 5}},
      {{2, 1, 3, 1, 2, 1, 16}, {1, 3, 1, 2, 1, 3, 1}, {2, 3, 3, 2, 2, 3, 16}},
      {{1, 3, 1, 2, 1, 5}, {2, 1, 2, 1, 3, 1}, {2, 3, 2, 2, 3, 5}},
      {{1}, {1}, {3, 5}},
      {{100003}, {100003}, {100003}},
      {{1 << 17}, {1}, {1 << 17}},
      {{4111}, {4111}, {4111}},  // from here on vectors, and what is left of lines
      {{4097}, {1}, {4097}},
      {{33, 131}, {131}, {33, 131}},
      {{33, 131}, {33, 1}, {33, 131}},
      {{3, 11, 143}, {3, 1, 143}, {3, 11, 143}},
      {{1500, 1511}, {1511}, {1500, 1511}},
      {{1500, 1511}, {1500, 1511}, {1500, 1511}},  // past the caches, on some machines
      {{0}, {1}, {0}},
      {{4, 0, 3}, {3}, {4, 0, 3}},
  };
  for (const Broadcast& shapes : cases) {
    if (is_too_large(elements(shapes.result))) continue;
    const HostTensor a = random_f32(shapes.a, 1), b = random_f32(shapes.b, 2);
    const TensorType type{DType::kF32, shapes.result};
    const auto va = a.as<float>(), vb = b.as<float>();
    for (DeviceClass c : kClasses) {
      const Plan plan = plan_pointwise(c, "sub", {a.type, b.type}, type);
      EXPECT_EQ(plan.launches.size(), type.elements() > 0 ? 1 : 0);
      const auto got = run_plan(plan, {a, b}, type).as<float>();
      size_t at = 0;
      for_each_index(shapes.result, [&](const std::vector<int64_t>& index) {
        const float want =
            va[broadcast_offset(shapes.a, index)] - vb[broadcast_offset(shapes.b, index)];
        EXPECT_EQ(got[at], want) << class_name(c) << " " << to_string(shapes.a) << " - "
                                 << to_string(shapes.b) << " at " << at;
        ++at;
      });
    }
  }
}

TEST(Pointwise, RunsInPlace) {
  for (int64_t n : {1, 15, 16, 1000, 4111, 30001, 1 << 16}) {
    if (is_too_large(n)) continue;
    const HostTensor a = random_f32({n}, 3), b = random_f32({n}, 4);
    const TensorType type{DType::kF32, {n}};
    for (DeviceClass c : kClasses) {
      for (int target : {0, 1}) {
        const Plan plan = plan_pointwise(c, "mul", {type, type}, type);
        const auto got = run_plan(plan, {a, b}, type, target).as<float>();
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(got[i], a.as<float>()[i] * b.as<float>()[i]) << n << " at " << i;
        }
      }
    }
  }
}

// Every pair of signs, sizes and kinds of exponents against C's pow, and the rules for special
// values.
TEST(Pointwise, PowerIsAccurateEverywhere) {
  constexpr uint32_t kBases = 1500, kExponents = 60;
  if (is_too_large(kBases * kExponents)) GTEST_SKIP() << "too slow on the simulator";
  std::mt19937 engine(3);
  std::vector<float> a, b;
  for (uint32_t i = 0; i < kBases; ++i) {
    const float base =
        i % 3 ? float_of(static_cast<uint32_t>(engine())) : 0.5f + static_cast<float>(i) / kBases;
    for (uint32_t k = 0; k < kExponents; ++k) {
      // Most of them such that the result is finite, many close to where it ends: there errors of
      // the logarithm count most.
      const double limit = 130 / std::max(1e-3, std::fabs(std::log2(std::fabs(double{base}))));
      const double unit = static_cast<double>(engine()) / 0x1p31 - 1;
      a.push_back(base);
      b.push_back(k % 4 == 0   ? float_of(static_cast<uint32_t>(engine()))
                  : k % 4 == 1 ? static_cast<float>(std::nearbyint(unit * limit))
                  : k % 4 == 2
                      ? static_cast<float>(unit * limit)
                      : static_cast<float>((0.95 + 0.05 * unit) * (k % 8 < 4 ? limit : -limit)));
    }
  }
  const std::vector<float> special = special_values();
  for (float x : special) {
    for (float y : {0.0f, -0.0f, 1.0f, -1.0f, 2.0f, 3.0f, -3.0f, 0.5f, -0.5f, 16777216.0f,
                    16777215.0f, INFINITY, -INFINITY, NAN}) {
      a.push_back(x), b.push_back(y);
    }
  }
  const Shape shape = {static_cast<int64_t>(a.size())};
  const TensorType type{DType::kF32, shape};
  for (DeviceClass c : kClasses) {
    const auto got =
        run_plan(plan_pointwise(c, "pow", {type, type}, type), {f32(shape, a), f32(shape, b)}, type)
            .as<float>();
    double worst = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const double want = std::pow(static_cast<double>(a[i]), static_cast<double>(b[i]));
      const double error = ulps(got[i], want);
      worst = std::max(worst, error);
      ASSERT_LE(error, 4) << a[i] << " to the power of " << b[i] << " is " << got[i]
                          << ", expected " << want;
      ASSERT_TRUE(want != 0 || std::signbit(got[i]) == std::signbit(want)) << a[i] << " ^ " << b[i];
    }
    RecordProperty(class_name(c) + "_max_ulps", std::to_string(worst));
  }
}

TEST(Pointwise, PlanningTwiceGivesEqualLaunches) {
  const TensorType type{DType::kF32, {5, 32}}, row{DType::kF32, {32}};
  for (DeviceClass c : kClasses) {
    EXPECT_TRUE(same_launches(plan_pointwise(c, "add", {type, row}, type),
                              plan_pointwise(c, "add", {type, row}, type)));
  }
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const device::Error& error) {
    return error.what();
  }
  return "";
}

TEST(Pointwise, RefusesWhatHasNoKernel) {
  const TensorType f{DType::kF32, {3}}, i{DType::kI32, {3}}, wide{DType::kF32, {4}};
  EXPECT_EQ(message_of([&] { plan_pointwise(DeviceClass::kCpu, "exp", {i}, i); }),
            "[exp] no kernel takes (i32) and gives i32");
  EXPECT_EQ(message_of([&] { plan_pointwise(DeviceClass::kCpu, "frobnicate", {f}, f); }),
            "[frobnicate] no such pointwise op");
  EXPECT_EQ(message_of([&] {
              plan_pointwise(DeviceClass::kCpu, "add", {f, wide}, wide);
            }),
            "[add] shape [3] does not broadcast to [4]");
}

}  // namespace
}  // namespace ballast::kernels::testing
