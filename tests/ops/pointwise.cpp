#include "tests/op_table.h"
#include "tests/samples.h"

#include <algorithm>
#include <cmath>

namespace ballast::tests {

namespace {

ReferenceOp unary(double (*function)(double)) {
  return pointwise([function](const Elements& e) { return function(e[0]); });
}

ReferenceOp binary(double (*function)(double, double)) {
  return pointwise([function](const Elements& e) { return function(e[0], e[1]); });
}

void cast(const std::vector<HostArray>& inputs, const Attrs&, std::vector<HostArray>& outputs) {
  DType dtype = outputs[0].type.dtype;
  for (size_t i = 0; i < outputs[0].values.size(); ++i) {
    double value = inputs[0].values[i];
    if (dtype == DType::kBool) value = value != 0;
    outputs[0].values[i] = dtype == DType::kF32 ? value : std::trunc(value);
  }
}

void add_unary(OpFamilies& table) {
  struct Range {
    const char* op;
    double low, high;
    bool is_smooth;
  };
  for (const Range& range : std::vector<Range>{{"neg", -3, 3, true},
                                               {"abs", 0.2, 3, true},
                                               {"sign", -3, 3, false},
                                               {"exp", -3, 3, true},
                                               {"log", 0.3, 4, true},
                                               {"sqrt", 0.3, 4, true},
                                               {"rsqrt", 0.3, 4, true},
                                               {"reciprocal", 0.4, 3, true},
                                               {"tanh", -3, 3, true},
                                               {"sigmoid", -4, 4, true},
                                               {"relu", 0.2, 3, true},
                                               {"relu", -3, 3, false},
                                               {"square", -3, 3, true},
                                               {"floor", -3, 3, false},
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
                         "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
    std::string name = op;
    bool is_compare =
        name.find("equal") != std::string::npos || name == "less" || name == "greater";
    for (const auto& [left, right] : pairs) {
      // Apart from each other, for maximum and minimum; positive, for pow and div.
      table.add(name, {real(left, 0.5, 1.9), real(right, 2.1, 3.5)}, {}, !is_compare).rtol = 1e-4;
      table.add(name, {real(left, 2.1, 3.5), real(right, 0.5, 1.9)}, {}, !is_compare).rtol = 1e-4;
    }
    table.add(name, {real({4, 33}, -2, 2), real({33}, 0.5, 2)}).rtol = 1e-4;
    if (name != "pow") table.add(name, {special(), real({10}, -2, 2)});
    if (name != "pow") table.add(name, {real({10}, -2, 2), special()});
    if (is_compare) table.add(name, {special(), special()});
    if (is_compare) table.add(name, {whole({6, 9}, 3), whole({9}, 3)});
  }
  for (const char* op : {"add", "sub", "mul", "maximum", "minimum"}) {
    table.add(op, {whole({6, 9}, 50), whole({9}, 50)});
  }
}
void add_logic(OpFamilies& table) {
  for (const char* op : {"logical_and", "logical_or"}) {
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
  table.references.insert({
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
      {"identity", unary([](double x) { return x; })},
      {"logical_not", unary([](double x) { return truth(x == 0); })},
      {"add", binary([](double a, double b) { return a + b; })},
      {"sub", binary([](double a, double b) { return a - b; })},
      {"mul", binary([](double a, double b) { return a * b; })},
      {"div", binary([](double a, double b) { return a / b; })},
      {"maximum", binary(larger)},
      {"minimum", binary(smaller)},
      {"pow", binary([](double a, double b) { return std::pow(a, b); })},
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
  });
  add_unary(table);
  add_binary(table);
  add_logic(table);
}

}  // namespace ballast::tests
