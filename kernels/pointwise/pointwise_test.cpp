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
  return std::nearbyint((a - floor_mod(a, b)) / b);
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

std::vector<float> special_values() {
  using L = std::numeric_limits<float>;
  return {0.0f,     -0.0f,         1.0f,           -1.0f,          0.5f,     -2.5f,
          3.0f,     L::infinity(), -L::infinity(), L::quiet_NaN(), L::min(), L::denorm_min(),
          L::max(), -L::max(),     88.7f,          -88.7f,         -100.0f,  1e-3f,
          0.624f,   0.626f,        -0.3f,          9.5f,           1e30f,    1e-30f};
}

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
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
  for (int64_t n : {1, 15, 16, 1000, 30001, 1 << 16}) {
    if (is_too_large(n)) continue;
    const HostTensor a = random_f32({n}, 3), b = random_f32({n}, 4);
    const TensorType type{DType::kF32, {n}};
    for (DeviceClass c : kClasses) {
      for (int target : {0, 1}) {
        const Plan plan = plan_pointwise(c, "mul", {type, type}, type);
        const auto got = run_plan(plan, {a, b}, type, target).as<float>();
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(got[i], a.as<float>()[i] * b.as<float>()[i]) << n << " at " << i;
          if (n > 1000) i += 97;
        }
      }
    }
  }
}

template <class T>
void check_integers(DType dtype) {
  const Shape shape = {35};
  std::vector<T> a, b;
  for (int i = 0; i < 35; ++i) {
    a.push_back(static_cast<T>(i * 7919 % 23 - 11)),
        b.push_back(static_cast<T>(i * 104729 % 17 - 8));
  }
  a[5] = std::numeric_limits<T>::min(), b[5] = static_cast<T>(-1);
  a[6] = std::numeric_limits<T>::max(), b[6] = 0;
  const auto wrapped = [](uint64_t x) { return static_cast<T>(x); };
  const int bits = static_cast<int>(sizeof(T)) * 8;
  const std::map<std::string, std::function<T(T, T)>> references = {
      {"neg", [&](T x, T) { return wrapped(0 - static_cast<uint64_t>(x)); }},
      {"abs", [&](T x, T) { return x < 0 ? wrapped(0 - static_cast<uint64_t>(x)) : x; }},
      {"sign", [](T x, T) { return static_cast<T>((x > 0) - (x < 0)); }},
      {"square",
       [&](T x, T) { return wrapped(static_cast<uint64_t>(x) * static_cast<uint64_t>(x)); }},
      {"add",
       [&](T x, T y) { return wrapped(static_cast<uint64_t>(x) + static_cast<uint64_t>(y)); }},
      {"sub",
       [&](T x, T y) { return wrapped(static_cast<uint64_t>(x) - static_cast<uint64_t>(y)); }},
      {"mul",
       [&](T x, T y) { return wrapped(static_cast<uint64_t>(x) * static_cast<uint64_t>(y)); }},
      {"maximum", [](T x, T y) { return std::max(x, y); }},
      {"minimum", [](T x, T y) { return std::min(x, y); }},
      {"floor_div",
       [&](T x, T y) {
         if (y == 0) return T{0};
         if (std::is_signed_v<T> && y == static_cast<T>(-1))
           return wrapped(0 - static_cast<uint64_t>(x));
         return static_cast<T>(x / y - (x % y != 0 && (x % y < 0) != (y < 0)));
       }},
      {"floor_mod",
       [](T x, T y) {
         if (y == 0 || (std::is_signed_v<T> && y == static_cast<T>(-1))) return T{0};
         const T rest = static_cast<T>(x % y);
         return static_cast<T>(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
       }},
      {"bitwise_and", [](T x, T y) { return static_cast<T>(x & y); }},
      {"bitwise_or", [](T x, T y) { return static_cast<T>(x | y); }},
      {"bitwise_xor", [](T x, T y) { return static_cast<T>(x ^ y); }},
      {"bitwise_not", [](T x, T) { return static_cast<T>(~x); }},
      {"left_shift",
       [&](T x, T y) {
         return y < 0 || y >= bits ? T{0} : wrapped(static_cast<uint64_t>(x) << y);
       }},
      {"right_shift",
       [&](T x, T y) { return static_cast<T>(y < 0 || y >= bits ? (x < 0 ? -1 : 0) : x >> y); }},
      {"identity", [](T x, T) { return x; }},
      {"equal", [](T x, T y) { return static_cast<T>(x == y); }},
      {"not_equal", [](T x, T y) { return static_cast<T>(x != y); }},
      {"less", [](T x, T y) { return static_cast<T>(x < y); }},
      {"less_equal", [](T x, T y) { return static_cast<T>(x <= y); }},
      {"greater", [](T x, T y) { return static_cast<T>(x > y); }},
      {"greater_equal", [](T x, T y) { return static_cast<T>(x >= y); }},
  };
  const TensorType type{dtype, shape};
  size_t tested = 0;
  for (const PointwiseOp& op : pointwise_ops()) {
    const TensorType out{gives_bool(op) ? DType::kBool : dtype, shape};
    const std::vector<DType> dtypes(static_cast<size_t>(op.arity), dtype);
    if (op.rule == PointwiseRule::kCast || !accepts(op, dtypes, out.dtype)) continue;
    ASSERT_EQ(references.count(op.name), 1u) << op.name;
    ++tested;
    std::vector<HostTensor> inputs = {HostTensor(dtype, shape, a)};
    if (op.arity == 2) inputs.emplace_back(dtype, shape, b);
    for (DeviceClass c : kClasses) {
      const Plan plan =
          plan_pointwise(c, op.name, std::vector<TensorType>(inputs.size(), type), out);
      const HostTensor got = run_plan(plan, inputs, out);
      for (size_t i = 0; i < a.size(); ++i) {
        const T value = gives_bool(op) ? static_cast<T>(got.bytes[i]) : got.as<T>()[i];
        EXPECT_EQ(value, references.at(op.name)(a[i], b[i]))
            << op.name << "(" << +a[i] << ", " << +b[i] << ") of " << name_of(dtype);
      }
    }
  }
  EXPECT_EQ(tested, references.size());
}

TEST(Pointwise, Integers) {
  check_integers<int32_t>(DType::kI32);
  check_integers<int64_t>(DType::kI64);
  check_integers<uint8_t>(DType::kU8);
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
      // Half of them such that the result is finite.
      const double limit = 130 / std::max(1e-3, std::fabs(std::log2(std::fabs(double{base}))));
      const double unit = static_cast<double>(engine()) / 0x1p31 - 1;
      a.push_back(base);
      b.push_back(k % 4 == 0   ? float_of(static_cast<uint32_t>(engine()))
                  : k % 4 == 1 ? static_cast<float>(std::nearbyint(unit * limit))
                               : static_cast<float>(unit * limit));
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

TEST(Pointwise, LogicalOps) {
  for (int64_t n : {4, 16, 37}) {
    std::vector<uint8_t> a, b;
    for (int64_t i = 0; i < n; ++i) a.push_back(i & 1), b.push_back(i >> 1 & 1);
    const TensorType type{DType::kBool, {n}};
    const HostTensor ta(DType::kBool, {n}, a), tb(DType::kBool, {n}, b);
    for (DeviceClass c : kClasses) {
      const auto both =
          run_plan(plan_pointwise(c, "logical_and", {type, type}, type), {ta, tb}, type);
      const auto any =
          run_plan(plan_pointwise(c, "logical_or", {type, type}, type), {ta, tb}, type);
      const auto no = run_plan(plan_pointwise(c, "logical_not", {type}, type), {ta}, type);
      const auto one =
          run_plan(plan_pointwise(c, "logical_xor", {type, type}, type), {ta, tb}, type);
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(one.bytes[i], a[i] != b[i]);
        EXPECT_EQ(both.bytes[i], a[i] && b[i]);
        EXPECT_EQ(any.bytes[i], a[i] || b[i]);
        EXPECT_EQ(no.bytes[i], !a[i]);
      }
    }
  }
}

TEST(Pointwise, Selects) {
  for (int64_t n : {1, 16, 33, 64}) {
    std::vector<uint8_t> choice;
    for (int64_t i = 0; i < n; ++i) choice.push_back(i % 3 == 0);
    const HostTensor condition(DType::kBool, {n}, choice);
    const HostTensor x = random_f32({n}, 5), y = random_f32({}, 6);
    for (DeviceClass c : kClasses) {
      const Plan plan = plan_pointwise(c, "select", {condition.type, x.type, y.type}, x.type);
      const auto got = run_plan(plan, {condition, x, y}, x.type).as<float>();
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(got[i], choice[i] ? x.as<float>()[i] : y.as<float>()[0]);
      }
    }
  }
}

template <class T>
HostTensor typed(DType dtype, const std::vector<double>& values) {
  std::vector<T> converted;
  for (double v : values) converted.push_back(static_cast<T>(v));
  return {dtype, {static_cast<int64_t>(values.size())}, converted};
}

HostTensor typed(DType dtype, const std::vector<double>& values) {
  switch (dtype) {
    case DType::kF32:
      return typed<float>(dtype, values);
    case DType::kI32:
      return typed<int32_t>(dtype, values);
    case DType::kI64:
      return typed<int64_t>(dtype, values);
    case DType::kU8:
      return typed<uint8_t>(dtype, values);
    default: {
      std::vector<double> truth;
      for (double v : values) truth.push_back(v != 0);
      return typed<uint8_t>(DType::kBool, truth);
    }
  }
}

TEST(Pointwise, CastsAllPairs) {
  const std::vector<DType> types = {DType::kF32, DType::kI32, DType::kI64, DType::kU8,
                                    DType::kBool};
  for (int count : {5, 16}) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back(i * 9);
    values[1] = 1;
    for (DType from : types) {
      for (DType to : types) {
        // What the source holds, so that bool sources give 0 and 1.
        std::vector<double> held = values;
        if (from == DType::kBool) {
          for (double& v : held) v = v != 0;
        }
        const HostTensor input = typed(from, values), want = typed(to, held);
        for (DeviceClass c : kClasses) {
          const Plan plan = plan_pointwise(c, "cast", {input.type}, want.type);
          EXPECT_EQ(run_plan(plan, {input}, want.type).bytes, want.bytes)
              << name_of(from) << " to " << name_of(to);
        }
      }
    }
  }
  const HostTensor halves = f32({4}, {2.7f, -2.7f, -0.5f, std::nanf("")});
  const TensorType ints{DType::kI32, {3}}, bools{DType::kBool, {4}};
  const HostTensor three = f32({3}, {2.7f, -2.7f, -0.5f});
  const auto cut =
      run_plan(plan_pointwise(DeviceClass::kCpu, "cast", {three.type}, ints), {three}, ints);
  EXPECT_EQ(cut.as<int32_t>(), (std::vector<int32_t>{2, -2, 0}));
  const auto truth =
      run_plan(plan_pointwise(DeviceClass::kCpu, "cast", {halves.type}, bools), {halves}, bools);
  EXPECT_EQ(truth.bytes, (std::vector<uint8_t>{1, 1, 1, 1}));
}

// bf16 and f16 by plain arithmetic on the value, independent of the bit tricks of the kernels.
struct NarrowFormat {
  DType dtype;
  int digits, lowest;  // of the significand; exponent of the smallest normal number
  double largest;

  double decode(uint16_t bits) const {
    const int fraction_bits = digits - 1, top = 0x7fff >> fraction_bits;
    const int exponent = (bits & 0x7fff) >> fraction_bits;
    const int fraction = bits & ((1 << fraction_bits) - 1);
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == top) return fraction ? std::nan("") : sign * INFINITY;
    const int units = exponent ? fraction + (1 << fraction_bits) : fraction;
    return sign * std::ldexp(units, lowest - fraction_bits + std::max(exponent, 1) - 1);
  }
  // The nearest value, ties to the even fraction.
  double round(double x) const {
    if (!std::isfinite(x) || x == 0) return x;
    const int unit = std::max(std::ilogb(x), lowest) - (digits - 1);
    const double nearest = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
    return std::fabs(nearest) > largest ? std::copysign(INFINITY, x) : nearest;
  }
};
const NarrowFormat kNarrowFormats[] = {{DType::kBF16, 8, -126, std::ldexp(255, 120)},
                                       {DType::kF16, 11, -14, 65504}};

TEST(Narrow, WidensEveryValueExactly) {
  std::vector<uint16_t> all;
  for (uint32_t bits = 0; bits < 65536; bits += is_too_large(65536) ? 37 : 1) {
    all.push_back(static_cast<uint16_t>(bits));
  }
  const Shape shape = {static_cast<int64_t>(all.size())};
  for (const NarrowFormat& format : kNarrowFormats) {
    const TensorType narrow{format.dtype, shape}, wide{DType::kF32, shape};
    const HostTensor input(format.dtype, shape, all);
    for (DeviceClass c : kClasses) {
      const HostTensor floats = run_plan(plan_pointwise(c, "cast", {narrow}, wide), {input}, wide);
      const std::vector<float> got = floats.as<float>();
      for (size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(ulps(got[i], format.decode(all[i])), 0) << name_of(format.dtype) << " " << all[i];
      }
      // And back; a NaN comes back quiet.
      const HostTensor back = run_plan(plan_pointwise(c, "cast", {wide}, narrow), {floats}, narrow);
      const std::vector<uint16_t> bits = back.as<uint16_t>();
      for (size_t i = 0; i < all.size(); ++i) {
        const bool is_nan = std::isnan(format.decode(all[i]));
        const int quiet = is_nan ? 1 << (format.digits - 2) : 0;
        ASSERT_EQ(bits[i], all[i] | quiet) << name_of(format.dtype);
      }
    }
  }
}

// All of f32 in steps, and the neighbours of every boundary between two narrow values.
TEST(Narrow, RoundsToNearestEven) {
  std::vector<float> values;
  const uint64_t step = is_too_large(65536) ? 40000003 : 40009;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += step) {
    values.push_back(float_of(static_cast<uint32_t>(bits)));
  }
  for (uint32_t i = 0; i < 65536; i += is_too_large(65536) ? 1021 : 1) {
    for (uint32_t low : {0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      values.push_back(float_of(i << 16 | low));
    for (uint32_t low : {0x0fffu, 0x1000u, 0x1001u}) {  // f16's, of the exponents that it has
      values.push_back(float_of((i << 13 | low) + (i & 0x8000 ? 0x80000000u : 0u) + 0x32000000u));
    }
  }
  const Shape shape = {static_cast<int64_t>(values.size())};
  const HostTensor input = f32(shape, values);
  for (const NarrowFormat& format : kNarrowFormats) {
    const TensorType narrow{format.dtype, shape};
    for (DeviceClass c : kClasses) {
      const auto got =
          run_plan(plan_pointwise(c, "cast", {input.type}, narrow), {input}, narrow).as<uint16_t>();
      for (size_t i = 0; i < values.size(); ++i) {
        const double want = format.round(values[i]), value = format.decode(got[i]);
        ASSERT_TRUE(value == want || (std::isnan(value) && std::isnan(want)))
            << name_of(format.dtype) << "(" << values[i] << ") is " << value << ", expected "
            << want;
        ASSERT_EQ(got[i] >> 15, std::signbit(values[i])) << values[i];
      }
    }
  }
}

// A narrow op is the f32 op on the widened values, rounded once.
TEST(Narrow, OpsComputeInF32) {
  const std::vector<float> values = special_values();
  std::vector<float> a, b;
  for (float x : values) {
    for (float y : values) a.push_back(x), b.push_back(y);
  }
  const Shape shape = {static_cast<int64_t>(a.size())};
  const TensorType wide{DType::kF32, shape};
  for (const NarrowFormat& format : kNarrowFormats) {
    const TensorType narrow{format.dtype, shape};
    const auto convert = [&](const HostTensor& from, const TensorType& to) {
      return run_plan(plan_pointwise(DeviceClass::kCpu, "cast", {from.type}, to), {from}, to);
    };
    const HostTensor narrow_a = convert(f32(shape, a), narrow),
                     narrow_b = convert(f32(shape, b), narrow);
    const HostTensor wide_a = convert(narrow_a, wide), wide_b = convert(narrow_b, wide);
    for (const auto& [name, row] : float_rows()) {
      const PointwiseOp& op = *find_pointwise(name);
      // f16 runs between casts; a few ops of each kind show that.
      const bool is_chosen = name == "exp" || name == "div" || name == "less" || name == "isnan";
      if (format.dtype == DType::kF16 && !is_chosen) continue;
      const bool is_bool = gives_bool(op);
      const TensorType result = is_bool ? TensorType{DType::kBool, shape} : narrow;
      const TensorType wide_result = is_bool ? result : wide;
      const size_t count = static_cast<size_t>(op.arity);
      for (DeviceClass c : kClasses) {
        std::vector<HostTensor> in = {narrow_a, narrow_b}, wide_in = {wide_a, wide_b};
        in.resize(count, narrow_a), wide_in.resize(count, wide_a);
        const auto plan = plan_pointwise(c, name, std::vector<TensorType>(count, narrow), result);
        if (format.dtype == DType::kBF16) {
          EXPECT_EQ(plan.launches.size(), 1) << name;
        }
        const HostTensor got = run_plan(plan, in, result);
        const HostTensor exact =
            run_plan(plan_pointwise(c, name, std::vector<TensorType>(count, wide), wide_result),
                     wide_in, wide_result);
        if (is_bool) {
          EXPECT_EQ(got.bytes, exact.bytes) << class_name(c) << " " << name;
          continue;
        }
        const auto bits = got.as<uint16_t>(), want = convert(exact, narrow).as<uint16_t>();
        for (size_t i = 0; i < bits.size(); ++i) {  // a NaN is a NaN
          const bool are_nan =
              std::isnan(format.decode(bits[i])) && std::isnan(format.decode(want[i]));
          ASSERT_TRUE(bits[i] == want[i] || are_nan)
              << class_name(c) << " " << name_of(format.dtype) << " " << name << "(" << a[i] << ", "
              << b[i] << ") is " << bits[i] << ", expected " << want[i];
        }
      }
    }
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
