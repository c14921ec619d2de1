// The pointwise ops in double and the shapes that they are tested on; for tests.
#pragma once

#include "kernels/pointwise/pointwise_ops.h"
#include "kernels/test_support.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace ballast::kernels::testing {

using Reference = std::function<double(double, double)>;

struct FloatRow {
  Reference reference;
  double max_ulps = 0;  // 0: exact
  double atol = 0;      // where small results come from cancelling terms; of the largest operand
  bool signs_zeros = true;  // else either zero will do, where C has no rule
};

// What a result may be off by whatever its size.
inline double bound_of(const FloatRow& row, double a, double b) {
  const auto size = [](double x) { return std::isfinite(x) ? std::fabs(x) : 0; };
  return row.atol * std::max({1.0, size(a), size(b)});
}

inline bool is_right(const FloatRow& row, float got, double a, double b) {
  const double want = row.reference(a, b);
  const bool are_zeros = got == 0 && static_cast<float>(want) == 0;
  if (are_zeros && row.signs_zeros && std::signbit(got) != std::signbit(want)) return false;
  return std::fabs(got - want) <= bound_of(row, a, b) || ulps(got, want) <= row.max_ulps;
}

inline double nan_max(double a, double b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
}
inline double nan_min(double a, double b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b);
}
// x times a gate that vanishes faster than x grows.
inline double gated(double x, double gate) { return x < -200 ? -0.0 : x * gate; }
inline double normal(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }
inline double tanh_argument(double x) { return std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x); }
inline double tanh_gate(double x) { return 1 / (1 + std::exp(-2 * tanh_argument(x))); }
inline double gelu_slope(double x) {
  return normal(x) + (std::isinf(x) ? 0 : x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI));
}
inline double gelu_tanh_slope(double x) {
  const double gate = tanh_gate(x), slope = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
  return gate + (std::fabs(x) > 30 ? 0 : 2 * x * gate * (1 - gate) * slope);
}
// numpy's, from its documentation; fmod is exact.
inline double floor_mod(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return std::signbit(rest) != std::signbit(b) ? rest + b : rest;
}
inline double floor_div(double a, double b) {
  if (b == 0) return a / b;
  const double mod = floor_mod(a, b);
  const double whole = std::isinf(mod) ? -1 : std::nearbyint((a - mod) / b);
  return whole == 0 ? std::copysign(0.0, a / b) : whole;
}
inline double sign_of(double a) { return std::isnan(a) ? a : (a > 0) - (a < 0); }

// 1 / (1 + exp(-x)) is 0 where the exponential overflows when rounded to a whole power of 2.
constexpr double kSmallestGate = 4.2e-39;

// References in double of every op over f32 (unary ops ignore b).
inline const std::map<std::string, FloatRow>& float_rows() {
  static const std::map<std::string, FloatRow> rows = {
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
      {"sigmoid", {[](double a, double) { return 1 / (1 + std::exp(-a)); }, 4, kSmallestGate}},
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
      {"erf", {[](double a, double) { return std::erf(a); }, 7}},
      {"erfc", {[](double a, double) { return std::erfc(a); }, 5}},
      {"gelu", {[](double a, double) { return gated(a, normal(a)); }, 0, 3e-7, false}},
      {"gelu_tanh", {[](double a, double) { return gated(a, tanh_gate(a)); }, 0, 3e-7, false}},
      {"silu",
       {[](double a, double) { return gated(a, 1 / (1 + std::exp(-a))); }, 4, kSmallestGate}},
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
      {"gelu_grad", {[](double a, double b) { return a * gelu_slope(b); }, 0, 1e-6, false}},
      {"gelu_tanh_grad",
       {[](double a, double b) { return a * gelu_tanh_slope(b); }, 0, 3e-6, false}},
      {"add", {[](double a, double b) { return a + b; }, 0.5}},
      {"sub", {[](double a, double b) { return a - b; }, 0.5}},
      {"mul", {[](double a, double b) { return a * b; }, 0.5}},
      {"div", {[](double a, double b) { return a / b; }, 1}},
      {"pow", {[](double a, double b) { return std::pow(a, b); }, 4}},
      {"maximum", {nan_max, 0, 0, false}},
      {"minimum", {nan_min, 0, 0, false}},
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

// A few ops of each kind, for what all have in common.
inline bool is_chosen(const std::string& op) {
  return op == "exp" || op == "div" || op == "less" || op == "isnan" || op == "floor_mod";
}

// Operands and the result that they repeat to.
struct Broadcast {
  Shape a, b, result;
};

// Operands that are dense along the innermost dimension, in lines that are whole vectors or not:
// all of them take the same few kernels of an op.
inline const Broadcast kDenseLines[] = {
    {{}, {}, {}},
    {{1}, {1}, {1}},
    {{0}, {0}, {0}},
    {{4, 0, 3}, {3}, {4, 0, 3}},
    {{7}, {7}, {7}},
    {{16}, {16}, {16}},
    {{3, 5}, {5}, {3, 5}},
    {{1, 17}, {17}, {1, 17}},
    {{2, 1, 3, 1, 2, 16}, {1, 1, 3, 1, 1, 16}, {2, 1, 3, 1, 2, 16}},
    {{131}, {131}, {131}},
    {{144}, {1, 1, 144}, {1, 1, 144}},
    {{1, 137}, {137}, {1, 137}},
    {{149}, {3, 149}, {3, 149}},
    {{3, 144}, {144}, {3, 144}},
    {{2, 1, 151}, {3, 151}, {2, 3, 151}},
    {{3, 1, 176}, {1, 2, 176}, {3, 2, 176}},
    {{2, 3, 139}, {2, 1, 139}, {2, 3, 139}},
    {{2, 3, 4, 133}, {133}, {2, 3, 4, 133}},
    {{13, 11}, {13, 11}, {13, 11}},
    {{2, 257}, {1, 257}, {2, 257}},
    {{2, 1, 2, 2, 1, 160}, {1, 1, 2, 2, 1, 160}, {2, 1, 2, 2, 1, 160}},
    {{7, 1, 5, 31}, {7, 1, 5, 31}, {7, 1, 5, 31}},
    {{200}, {200}, {200}},
    {{1023}, {1023}, {1023}},
    {{211}, {2, 2, 211}, {2, 2, 211}},
    {{1, 191}, {5, 1, 191}, {5, 1, 191}},
    {{4111}, {4111}, {4111}},  // from here on vectors, and what is left of lines
    {{33, 131}, {131}, {33, 131}},
    {{3, 11, 143}, {3, 1, 143}, {3, 11, 143}},
};
// One of them repeats along it.
inline const Broadcast kRepeatedLines[] = {
    {{5, 144}, {5, 1}, {5, 144}},
    {{3, 1}, {1, 137}, {3, 137}},
};

// The simulator has to do with one vector and a few single elements: each launch takes its time.
inline bool is_left_out(const Broadcast& shapes) {
  const int64_t n = elements(shapes.result);
  return is_simulated() && n != 7 && n != 16;
}

// PoCL compiles a kernel once more for each size of a GPU's work-groups: tests of many kernels
// leave out the lines for which those are not the largest.
inline bool has_rare_groups(DeviceClass device_class, const Broadcast& shapes) {
  const int64_t n = elements(shapes.result);
  const bool is_one_line = elements(shapes.a) == n && elements(shapes.b) == n;
  return device_class == DeviceClass::kGpu && !is_simulated() && n > 0 &&
         (is_one_line ? n : shapes.result.back()) <= 128;
}

// A float as an integer: toward zero, saturating, NaN is 0.
template <class T>
T saturated(double value) {
  using L = std::numeric_limits<T>;
  if (std::isnan(value)) return 0;
  if (value >= std::ldexp(1, L::digits)) return L::max();
  return value <= static_cast<double>(L::min()) ? L::min() : static_cast<T>(value);
}

// What `values`, of `shape`, are as a tensor of shape `result`.
template <class T>
std::vector<T> repeated(const std::vector<T>& values, const Shape& shape, const Shape& result) {
  std::vector<T> all;
  for_each_index(result, [&](const std::vector<int64_t>& index) {
    all.push_back(values[static_cast<size_t>(broadcast_offset(shape, index))]);
  });
  return all;
}

inline bool gives_bool(const PointwiseOp& op) {
  return op.rule == PointwiseRule::kCompare || op.rule == PointwiseRule::kTest;
}

}  // namespace ballast::kernels::testing
