#include "tests/op_table.h"
#include "tests/samples.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace ballast::tests {

namespace {

ReferenceOp unary(double (*function)(double)) {
  return pointwise([function](const Elements& e) { return function(e[0]); });
}

ReferenceOp binary(double (*function)(double, double)) {
  return pointwise([function](const Elements& e) { return function(e[0], e[1]); });
}

ReferenceOp integers(int64_t (*function)(int64_t, int64_t)) {
  return pointwise([function](const Elements& e) {
    return static_cast<double>(function(static_cast<int64_t>(e[0]), static_cast<int64_t>(e[1])));
  });
}

// x times a gate that vanishes faster than x grows.
double gated(double x, double gate) { return x < -700 ? 0 : x * gate; }
double normal(double x) { return std::erfc(-x * std::sqrt(0.5)) / 2; }
double gelu_argument(double x) { return std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x); }

double remainder_of(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return std::signbit(rest) != std::signbit(b) ? rest + b : rest;
}

void floor_mod(const std::vector<HostArray>& inputs, const Attrs& attrs,
               std::vector<HostArray>& outputs) {
  bool is_real = is_float(outputs[0].type.dtype);
  pointwise([is_real](const Elements& e) {
    return e[1] == 0 && !is_real ? 0 : remainder_of(e[0], e[1]);
  })(inputs, attrs, outputs);
}

void floor_div(const std::vector<HostArray>& inputs, const Attrs& attrs,
               std::vector<HostArray>& outputs) {
  bool is_real = is_float(outputs[0].type.dtype);
  pointwise([is_real](const Elements& e) {
    if (e[1] == 0) return is_real ? e[0] / e[1] : 0;
    const double rest = remainder_of(e[0], e[1]);
    const double quotient = std::isinf(rest) ? -1 : std::nearbyint((e[0] - rest) / e[1]);
    return quotient == 0 ? std::copysign(0.0, e[0] / e[1]) : quotient;
  })(inputs, attrs, outputs);
}

// Of integers without its fraction; 0 for a negative power of 0.
void power(const std::vector<HostArray>& inputs, const Attrs& attrs,
           std::vector<HostArray>& outputs) {
  const bool is_real = is_float(outputs[0].type.dtype);
  pointwise([is_real](const Elements& e) {
    const double exact = std::pow(e[0], e[1]);
    if (is_real) return exact;
    return std::isinf(exact) ? 0 : std::trunc(exact);
  })(inputs, attrs, outputs);
}

// Float to integer: toward zero, saturating, NaN to 0. The samples of integers are in range.
void cast(const std::vector<HostArray>& inputs, const Attrs&, std::vector<HostArray>& outputs) {
  DType dtype = outputs[0].type.dtype;
  double low = 0, high = 255;
  if (dtype == DType::kI32) low = -0x1p31, high = 0x1p31 - 1;
  if (dtype == DType::kI64) low = -0x1p63, high = 0x1p63;
  for (size_t i = 0; i < outputs[0].values.size(); ++i) {
    double value = inputs[0].values[i];
    if (dtype == DType::kBool) {
      value = value != 0;
    } else if (!is_float(dtype)) {
      value = std::isnan(value) ? 0 : std::clamp(std::trunc(value), low, high);
    }
    outputs[0].values[i] = value;
  }
}

void add_unary(OpFamilies& table) {
  struct Range {
    const char* op;
    double low, high;
    bool is_smooth;
  };
  for (const Range& range : std::vector<Range>{
           {"neg", -3, 3, true},       {"abs", -3, 3, true},         {"sign", -3, 3, false},
           {"exp", -3, 3, true},       {"log", 0.3, 4, true},        {"sqrt", 0.3, 4, true},
           {"rsqrt", 0.3, 4, true},    {"reciprocal", 0.4, 3, true}, {"tanh", -3, 3, true},
           {"sigmoid", -4, 4, true},   {"relu", -3, 3, true},        {"reciprocal", -3, -0.4, true},
           {"square", -3, 3, true},    {"floor", -3, 3, false},      {"ceil", -3, 3, false},
           {"round", -3, 3, false},    {"trunc", -3, 3, false},      {"exp2", -3, 3, true},
           {"expm1", -2, 2, true},     {"log2", 0.3, 4, true},       {"log10", 0.3, 4, true},
           {"log1p", -0.6, 3, true},   {"sin", -4, 4, true},         {"cos", -4, 4, true},
           {"tan", -1.2, 1.2, true},   {"asin", -0.8, 0.8, true},    {"acos", -0.8, 0.8, true},
           {"atan", -3, 3, true},      {"sinh", -3, 3, true},        {"cosh", -3, 3, true},
           {"asinh", -3, 3, true},     {"acosh", 1.2, 3, true},      {"atanh", -0.8, 0.8, true},
           {"erf", -2, 2, true},       {"erfc", -2, 2, true},        {"gelu", -3, 3, true},
           {"gelu_tanh", -3, 3, true}, {"silu", -4, 4, true},        {"softplus", -4, 4, true},
           {"isnan", -3, 3, false},    {"isinf", -3, 3, false},      {"isfinite", -3, 3, false},
           {"identity", -3, 3, true}}) {
    for (const Shape& shape : kShapes) {
      table.add(range.op, {real(shape, range.low, range.high)}, {}, range.is_smooth);
    }
    table.add(range.op, {special()});
    table.add(range.op, {real({1023}, range.low, range.high)});
  }
}
void add_binary(OpFamilies& table) {
  const std::vector<std::pair<Shape, Shape>> pairs = {
      {{}, {}},         {{7}, {}},           {{}, {7}},     {{3, 5}, {3, 5}}, {{3, 5}, {5}},
      {{3, 1}, {1, 5}}, {{2, 3, 4}, {3, 1}}, {{0, 4}, {4}}, {{1}, {2, 3}},
  };
  for (const char* op : {"add", "sub", "mul", "div", "maximum", "minimum", "pow", "relu_grad",
                         "atan2", "gelu_grad", "gelu_tanh_grad", "floor_div", "floor_mod", "equal",
                         "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
    std::string name = op;
    bool is_compare =
        name.find("equal") != std::string::npos || name == "less" || name == "greater";
    const bool is_smooth = !is_compare && name.find("floor") == std::string::npos;
    for (const auto& [left, right] : pairs) {
      // Apart from each other, for maximum and minimum; positive, for pow and div.
      table.add(name, {real(left, 0.5, 1.9), real(right, 2.1, 3.5)}, {}, is_smooth).rtol = 1e-4;
      table.add(name, {real(left, 2.1, 3.5), real(right, 0.5, 1.9)}, {}, is_smooth).rtol = 1e-4;
    }
    table.add(name, {real({4, 33}, -2, 2), real({33}, 0.5, 2)}).rtol = 1e-4;
    if (is_smooth && name != "pow") {
      table.add(name, {real({2, 3}, -1.9, -0.5), real({3}, 2.1, 3.5)}, {}, true).rtol = 1e-4;
      table.add(name, {real({3}, 2.1, 3.5), real({2, 3}, -1.9, -0.5)}, {}, true).rtol = 1e-4;
    }
    table.add(name, {special(), real({10}, -2, 2)}).rtol = 1e-4;
    table.add(name, {real({10}, -2, 2), special()}).rtol = 1e-4;
    if (is_compare) table.add(name, {special(), special()});
    if (is_compare) table.add(name, {whole({6, 9}, 3), whole({9}, 3)});
  }
  // Zeros, infinities and negative bases meet whole exponents, odd, even and huge.
  HostArray exponents = special();
  exponents.type.shape = {12, 1};
  exponents.values = {0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1e30f, -1e30f};
  table.add("pow", {special(), exponents}).rtol = 1e-4;
  table.add("pow", {exponents, special()}).rtol = 1e-4;
  // Where neither a nor a / b is near a whole multiple, the remainder is smooth.
  table.add("floor_mod", {scalar(7.3), scalar(2.2)}, {}, true);
  table.add("floor_mod", {scalar(-7.3), scalar(2.2)}, {}, true);
}
void add_integers(OpFamilies& table) {
  const std::vector<DType> dtypes = {DType::kI32, DType::kI64, DType::kU8};
  for (DType dtype : dtypes) {
    for (const char* op :
         {"add", "mul", "maximum", "minimum", "floor_div", "floor_mod", "bitwise_and", "bitwise_or",
          "bitwise_xor", "equal", "less", "greater_equal"}) {
      table.add(op, {whole({6, 9}, 15, dtype), whole({9}, 15, dtype)});
      table.add(op, {whole({33}, 15, dtype), whole({}, 15, dtype)});
    }
    for (const char* op : {"left_shift", "right_shift"}) {
      table.add(op, {whole({5, 16}, 15, dtype), whole({16}, 4, dtype)});
    }
    for (const char* op : {"abs", "sign", "square", "identity"}) {
      table.add(op, {whole({37}, 15, dtype)});
    }
    table.add("select", {boolean({4, 9}), whole({4, 9}, 99, dtype), whole({9}, 99, dtype)});
    table.add("sub", {whole({3, 7}, 15, dtype), whole({3, 7}, 1, dtype)});
    table.add("pow", {whole({8, 9}, 3, dtype), whole({9}, 8, dtype)});
    table.add("pow", {whole({0, 9}, 3, dtype), whole({}, 8, dtype)});
    table.add("neg", {whole({11}, dtype == DType::kU8 ? 1 : 15, dtype)});
    if (dtype != DType::kU8) table.add("bitwise_not", {whole({11}, 15, dtype)});
  }
  // Negative operands.
  HostArray a = whole({41}, 40), b = whole({41}, 13), small = whole({41}, 7);
  for (double& value : a.values) value -= 20;
  for (double& value : b.values) value -= 6;
  for (double& value : small.values) value -= 3;
  table.add("pow", {small, b});
  for (const char* op : {"floor_div", "floor_mod", "sub", "abs", "sign"}) {
    bool is_unary = std::string(op) == "abs" || std::string(op) == "sign";
    table.add(op, is_unary ? std::vector<HostArray>{a} : std::vector<HostArray>{a, b});
  }
}
void add_casts(OpFamilies& table) {
  const std::vector<DType> dtypes = {DType::kF32, DType::kBF16, DType::kF16, DType::kI32,
                                     DType::kI64, DType::kU8,   DType::kBool};
  for (DType from : dtypes) {
    for (DType to : dtypes) {
      HostArray input = whole({3, 11}, from == DType::kBool ? 2 : 99, from);
      table.add("cast", {input}, {{"dtype", static_cast<int64_t>(to)}});
    }
  }
  for (DType to : {DType::kI32, DType::kI64, DType::kU8, DType::kBool, DType::kBF16, DType::kF16}) {
    table.add("cast", {special()}, {{"dtype", static_cast<int64_t>(to)}});
    table.add("cast", {real({37}, -300, 300)}, {{"dtype", static_cast<int64_t>(to)}}).rtol =
        to == DType::kBF16 ? 0x1p-8 : 0x1p-11;
  }
  table.add("cast", {real({4, 3}, -2, 2)}, {{"dtype", static_cast<int64_t>(DType::kF32)}}, true);
}
void add_logic(OpFamilies& table) {
  for (const char* op : {"logical_and", "logical_or", "logical_xor"}) {
    table.add(op, {boolean({4, 7}), boolean({7})});
    table.add(op, {boolean({0}), boolean({})});
  }
  table.add("logical_not", {boolean({5, 3})});
  table.add("select", {boolean({4, 5}), real({4, 5}, -2, 2), real({4, 5}, -2, 2)}, {}, true);
  table.add("select", {boolean({4, 1}), real({5}, -2, 2), real({}, -2, 2)}, {}, true);
  table.add("select", {boolean({10}), special(), special()});
  table.add("select", {boolean({6}), whole({6}, 9), whole({}, 9)});
}
}  // namespace

void add_pointwise(OpFamilies& table) {
  const std::map<std::string, ReferenceOp> references = {
      {"neg", unary([](double x) { return -x; })},
      {"abs", unary([](double x) { return std::abs(x); })},
      {"sign", unary([](double x) { return x > 0    ? 1
                                           : x < 0  ? -1
                                           : x == 0 ? 0
                                                    : x; })},
      {"exp", unary([](double x) { return std::exp(x); })},
      {"log", unary([](double x) { return x < 0 ? kNaN : std::log(x); })},
      {"sqrt", unary([](double x) { return std::sqrt(x); })},
      {"rsqrt", unary([](double x) { return 1 / std::sqrt(x); })},
      {"reciprocal", unary([](double x) { return 1 / x; })},
      {"tanh", unary([](double x) { return std::tanh(x); })},
      {"sigmoid", unary([](double x) { return 1 / (1 + std::exp(-x)); })},
      {"relu", unary([](double x) { return x <= 0 ? 0 : x; })},
      {"square", unary([](double x) { return x * x; })},
      {"floor", unary([](double x) { return std::floor(x); })},
      {"ceil", unary([](double x) { return std::ceil(x); })},
      {"round", unary([](double x) { return std::nearbyint(x); })},
      {"trunc", unary([](double x) { return std::trunc(x); })},
      {"exp2", unary([](double x) { return std::exp2(x); })},
      {"expm1", unary([](double x) { return std::expm1(x); })},
      {"log2", unary([](double x) { return x < 0 ? kNaN : std::log2(x); })},
      {"log10", unary([](double x) { return x < 0 ? kNaN : std::log10(x); })},
      {"log1p", unary([](double x) { return x < -1 ? kNaN : std::log1p(x); })},
      {"sin", unary([](double x) { return std::sin(x); })},
      {"cos", unary([](double x) { return std::cos(x); })},
      {"tan", unary([](double x) { return std::tan(x); })},
      {"asin", unary([](double x) { return std::asin(x); })},
      {"acos", unary([](double x) { return std::acos(x); })},
      {"atan", unary([](double x) { return std::atan(x); })},
      {"sinh", unary([](double x) { return std::sinh(x); })},
      {"cosh", unary([](double x) { return std::cosh(x); })},
      {"asinh", unary([](double x) { return std::asinh(x); })},
      {"acosh", unary([](double x) { return std::acosh(x); })},
      {"atanh", unary([](double x) { return std::atanh(x); })},
      {"erf", unary([](double x) { return std::erf(x); })},
      {"erfc", unary([](double x) { return std::erfc(x); })},
      {"gelu", unary([](double x) { return gated(x, normal(x)); })},
      {"gelu_tanh",
       unary([](double x) { return gated(x, (1 + std::tanh(gelu_argument(x))) / 2); })},
      {"silu", unary([](double x) { return gated(x, 1 / (1 + std::exp(-x))); })},
      {"softplus", unary([](double x) {
         return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
       })},
      {"isnan", unary([](double x) { return truth(std::isnan(x)); })},
      {"isinf", unary([](double x) { return truth(std::isinf(x)); })},
      {"isfinite", unary([](double x) { return truth(std::isfinite(x)); })},
      {"atan2", binary([](double y, double x) { return std::atan2(y, x); })},
      {"floor_div", floor_div},
      {"floor_mod", floor_mod},
      {"gelu_grad", binary([](double dy, double x) {
         double tail = std::isinf(x) ? 0 : x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
         return dy * (normal(x) + tail);
       })},
      {"gelu_tanh_grad", binary([](double dy, double x) {
         double t = std::tanh(gelu_argument(x));
         double slope = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
         return dy * ((1 + t) / 2 + (std::abs(t) == 1 ? 0 : x / 2 * (1 - t * t) * slope));
       })},
      {"bitwise_and", integers([](int64_t a, int64_t b) { return a & b; })},
      {"bitwise_or", integers([](int64_t a, int64_t b) { return a | b; })},
      {"bitwise_xor", integers([](int64_t a, int64_t b) { return a ^ b; })},
      {"bitwise_not", unary([](double x) { return -1 - x; })},
      {"left_shift", integers([](int64_t a, int64_t b) { return a << b; })},
      {"right_shift", integers([](int64_t a, int64_t b) { return a >> b; })},
      {"logical_xor", binary([](double a, double b) { return truth((a != 0) != (b != 0)); })},
      {"identity", unary([](double x) { return x; })},
      {"logical_not", unary([](double x) { return truth(x == 0); })},
      {"add", binary([](double a, double b) { return a + b; })},
      {"sub", binary([](double a, double b) { return a - b; })},
      {"mul", binary([](double a, double b) { return a * b; })},
      {"div", binary([](double a, double b) { return a / b; })},
      {"maximum", binary(larger)},
      {"minimum", binary(smaller)},
      {"pow", power},
      {"relu_grad", binary([](double dy, double y) { return y > 0 ? dy : 0; })},
      {"equal", binary([](double a, double b) { return truth(a == b); })},
      {"not_equal", binary([](double a, double b) { return truth(a != b); })},
      {"less", binary([](double a, double b) { return truth(a < b); })},
      {"less_equal", binary([](double a, double b) { return truth(a <= b); })},
      {"greater", binary([](double a, double b) { return truth(a > b); })},
      {"greater_equal", binary([](double a, double b) { return truth(a >= b); })},
      {"logical_and", binary([](double a, double b) { return truth(a != 0 && b != 0); })},
      {"logical_or", binary([](double a, double b) { return truth(a != 0 || b != 0); })},
      {"select", pointwise([](const Elements& e) { return e[0] != 0 ? e[1] : e[2]; })},
      {"cast", cast},
  };
  const std::set<std::string> tests = {"isnan",         "isinf",       "isfinite",   "equal",
                                       "not_equal",     "less",        "less_equal", "greater",
                                       "greater_equal", "logical_and", "logical_or", "logical_xor",
                                       "logical_not"};
  for (const auto& [name, reference] : references) {
    const bool is_test = tests.count(name) == 1;
    table.references.emplace(name, reference);
    table.pointwise.insert(name);
    table.types[name] = [is_test](const Types& in, const Attrs& attrs) {
      const DType dtype = is_test ? DType::kBool : dtype_attr(attrs, in.back().dtype);
      return Types{{dtype, broadcast_shape(in)}};
    };
  }
  table.open_zeros = {"gelu", "gelu_tanh", "silu"};  // 0 of minus infinity
  add_unary(table);
  add_binary(table);
  add_integers(table);
  add_casts(table);
  add_logic(table);
}

// The ops and values of a row of the table, at shapes of their own.
void draw_pointwise(OpFamilies& table, Draw& draw) {
  std::vector<const OpCase*> rows;
  for (const OpCase& row : op_table()) {
    const bool is_empty = std::any_of(row.inputs.begin(), row.inputs.end(),
                                      [](const HostArray& x) { return x.values.empty(); });
    if (op_families().pointwise.count(row.op) == 1 && !is_empty) rows.push_back(&row);
  }
  const OpCase& row = *rows[static_cast<size_t>(draw.below(static_cast<int64_t>(rows.size())))];
  const Shape shape = draw.shape(draw.below(5), 40000);
  std::vector<HostArray> inputs;
  for (const HostArray& values : row.inputs) {
    const auto [low, high] = std::minmax_element(values.values.begin(), values.values.end());
    const bool is_special = std::any_of(values.values.begin(), values.values.end(),
                                        [](double x) { return !std::isfinite(x); });
    const double count = static_cast<double>(values.values.size());
    const double bound = is_float(values.type.dtype) ? *high : *high + 1;
    HostArray input = is_special ? real(draw.broadcast_from(shape), 0, count)
                                 : real(draw.broadcast_from(shape), *low, bound);
    input.type.dtype = values.type.dtype;
    for (double& x : input.values) {
      if (is_special) x = values.values[static_cast<size_t>(std::min(x, count - 1))];
      x = is_float(values.type.dtype) ? rounded(x, values.type.dtype) : std::floor(x);
    }
    inputs.push_back(std::move(input));
  }
  OpCase& added = table.add(row.op, std::move(inputs), row.attrs);
  added.rtol = row.rtol;
  added.atol = row.atol;
}

}  // namespace ballast::tests
