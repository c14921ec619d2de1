#include "tests/op_table.h"

#include <cmath>
#include <limits>
#include <random>

namespace ballast::tests {

std::ostream& operator<<(std::ostream& out, const OpCase& op_case) {
  out << op_case.op << to_string(op_case.attrs);
  for (const HostArray& input : op_case.inputs) out << " " << to_string(input.type);
  return out;
}

namespace {

// Values are rounded to f32, so that device and reference begin with the same ones.
HostArray real(const Shape& shape, double low, double high) {
  static std::mt19937_64 generator(1);
  HostArray array{{DType::kF32, shape}, {}};
  for (int64_t i = 0; i < array.type.elements(); ++i) {
    double unit = static_cast<double>(generator() >> 11) * 0x1p-53;
    array.values.push_back(static_cast<float>(low + (high - low) * unit));
  }
  return array;
}

HostArray whole(const Shape& shape, int64_t below, DType dtype = DType::kI32) {
  HostArray array = real(shape, 0, static_cast<double>(below));
  array.type.dtype = dtype;
  for (double& value : array.values) value = std::floor(value);
  return array;
}

HostArray boolean(const Shape& shape) { return whole(shape, 2, DType::kBool); }

HostArray scalar(double value) { return {{DType::kF32, {}}, {static_cast<float>(value)}}; }

HostArray special() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  return {{DType::kF32, {10}}, {kNaN, kInf, -kInf, 0, -0.0, 1, -1, 1e30f, -1e30f, 0.5}};
}

const std::vector<Shape> kShapes = {{}, {1}, {7}, {3, 5}, {2, 3, 17}, {0, 4}, {2, 0}};

class Table {
 public:
  std::vector<OpCase> build() {
    add_unary();
    add_binary();
    add_logic();
    add_shape_ops();
    add_reductions();
    add_matmul();
    add_cross_entropy();
    add_optimizer_steps();
    return std::move(cases_);
  }

 private:
  OpCase& add(const std::string& op, std::vector<HostArray> inputs, Attrs attrs = {},
              bool is_smooth = false) {
    cases_.push_back({op, std::move(inputs), std::move(attrs), is_smooth});
    return cases_.back();
  }

  void add_unary() {
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
        add(range.op, {real(shape, range.low, range.high)}, {}, range.is_smooth);
      }
      add(range.op, {special()});
      add(range.op, {real({1023}, range.low, range.high)});
    }
  }

  void add_binary() {
    const std::vector<std::pair<Shape, Shape>> pairs = {
        {{}, {}},         {{7}, {}},           {{}, {7}},     {{3, 5}, {3, 5}}, {{3, 5}, {5}},
        {{3, 1}, {1, 5}}, {{2, 3, 4}, {3, 1}}, {{0, 4}, {4}}, {{1}, {2, 3}},
    };
    for (const char* op :
         {"add", "sub", "mul", "div", "maximum", "minimum", "pow", "relu_grad", "equal",
          "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
      std::string name = op;
      bool is_compare =
          name.find("equal") != std::string::npos || name == "less" || name == "greater";
      for (const auto& [left, right] : pairs) {
        // Apart from each other, for maximum and minimum; positive, for pow and div.
        add(name, {real(left, 0.5, 1.9), real(right, 2.1, 3.5)}, {}, !is_compare).rtol = 1e-4;
        add(name, {real(left, 2.1, 3.5), real(right, 0.5, 1.9)}, {}, !is_compare).rtol = 1e-4;
      }
      add(name, {real({4, 33}, -2, 2), real({33}, 0.5, 2)}).rtol = 1e-4;
      if (name != "pow") add(name, {special(), real({10}, -2, 2)});
      if (name != "pow") add(name, {real({10}, -2, 2), special()});
      if (is_compare) add(name, {special(), special()});
      if (is_compare) add(name, {whole({6, 9}, 3), whole({9}, 3)});
    }
    for (const char* op : {"add", "sub", "mul", "maximum", "minimum"}) {
      add(op, {whole({6, 9}, 50), whole({9}, 50)});
    }
  }

  void add_logic() {
    for (const char* op : {"logical_and", "logical_or"}) {
      add(op, {boolean({4, 7}), boolean({7})});
      add(op, {boolean({0}), boolean({})});
    }
    add("logical_not", {boolean({5, 3})});
    add("select", {boolean({4, 5}), real({4, 5}, -2, 2), real({4, 5}, -2, 2)}, {}, true);
    add("select", {boolean({4, 1}), real({5}, -2, 2), real({}, -2, 2)}, {}, true);
    add("select", {boolean({10}), special(), special()});
    add("select", {boolean({6}), whole({6}, 9), whole({}, 9)});
  }

  void add_shape_ops() {
    auto dtype = [](DType type) { return Attrs{{"dtype", static_cast<int64_t>(type)}}; };
    add("cast", {real({3, 7}, -5, 5)}, dtype(DType::kI32));
    add("cast", {real({3, 7}, 0, 5)}, dtype(DType::kU8));
    add("cast", {whole({9}, 3)}, dtype(DType::kF32));
    add("cast", {whole({9}, 3)}, dtype(DType::kBool));
    add("cast", {boolean({9})}, dtype(DType::kF32));
    add("cast", {boolean({9})}, dtype(DType::kI32));
    auto shape = [](Shape to) { return Attrs{{"shape", std::move(to)}}; };
    add("broadcast_to", {real({}, -2, 2)}, shape({3, 4}), true);
    add("broadcast_to", {real({4, 1}, -2, 2)}, shape({2, 4, 3}), true);
    add("broadcast_to", {real({5}, -2, 2)}, shape({0, 5}));
    add("broadcast_to", {whole({3}, 9)}, shape({2, 3}));
    add("reshape", {real({3, 4}, -2, 2)}, shape({2, 6}), true);
    add("reshape", {real({1}, -2, 2)}, shape({}), true);
    add("reshape", {real({0, 3}, -2, 2)}, shape({3, 0, 2}));
    auto perm = [](std::vector<int64_t> order) { return Attrs{{"perm", std::move(order)}}; };
    add("transpose", {real({3, 5}, -2, 2)}, perm({1, 0}), true);
    add("transpose", {real({2, 3, 5}, -2, 2)}, perm({1, 2, 0}), true);
    add("transpose", {real({33, 65}, -2, 2)}, perm({1, 0}));
    add("transpose", {real({2, 3, 4, 5}, -2, 2)}, perm({0, 2, 1, 3}));
    add("transpose", {real({}, -2, 2)}, perm({}), true);
    add("transpose", {whole({3, 5}, 9)}, perm({1, 0}));
  }

  void add_reductions() {
    auto attrs = [](std::vector<int64_t> axes, int64_t keep_dims) {
      return Attrs{{"axes", std::move(axes)}, {"keep_dims", keep_dims}};
    };
    struct Call {
      Shape shape;
      std::vector<int64_t> axes;
      int64_t keep_dims;
    };
    const std::vector<Call> calls = {
        {{7}, {}, 0},        {{3, 5}, {0}, 0}, {{3, 5}, {1}, 1}, {{2, 3, 4}, {0, 2}, 0},
        {{2, 3, 4}, {1}, 1}, {{3, 4}, {}, 1},  {{}, {}, 0},      {{1, 6}, {0}, 0},
        {{2, 130}, {1}, 0}};
    for (const Call& call : calls) {
      for (const char* op :
           {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"}) {
        bool is_small = TensorType{DType::kF32, call.shape}.elements() < 100;
        OpCase& added =
            add(op, {real(call.shape, 0.6, 1.6)}, attrs(call.axes, call.keep_dims), is_small);
        added.rtol = 1e-4;
      }
      for (const char* op : {"reduce_any", "reduce_all"}) {
        add(op, {boolean(call.shape)}, attrs(call.axes, call.keep_dims));
      }
    }
    for (const char* op : {"reduce_sum", "reduce_mean", "reduce_prod"}) {
      add(op, {real({0, 3}, 0, 1)}, attrs({0}, 0));
    }
    for (const char* op : {"reduce_max", "reduce_min", "reduce_sum", "reduce_prod"}) {
      add(op, {special()}, attrs({}, 0));
    }
    for (const char* op : {"argmax", "argmin"}) {
      add(op, {real({4, 9}, -2, 2)}, {{"axis", int64_t{1}}});
      add(op, {real({4, 9, 3}, -2, 2)}, {{"axis", int64_t{1}}});
      add(op, {special()}, {{"axis", int64_t{0}}});
      HostArray ties = whole({5, 12}, 3);
      ties.type.dtype = DType::kF32;
      add(op, {ties}, {{"axis", int64_t{1}}});
    }
  }

  void add_matmul() {
    auto attrs = [](int64_t a, int64_t b) { return Attrs{{"transpose_a", a}, {"transpose_b", b}}; };
    struct Sizes {
      int64_t m, k, n;
    };
    for (const Sizes& s : std::vector<Sizes>{{3, 4, 5},
                                             {1, 1, 1},
                                             {1, 7, 1},
                                             {5, 2, 1},
                                             {17, 33, 9},
                                             {64, 70, 100},
                                             {0, 3, 4},
                                             {3, 0, 4},
                                             {3, 4, 0}}) {
      bool is_small = s.m * s.k * s.n > 0 && s.m * s.k * s.n <= 60;
      for (int64_t a : {0, 1}) {
        for (int64_t b : {0, 1}) {
          OpCase& added = add("matmul",
                              {real(a ? Shape{s.k, s.m} : Shape{s.m, s.k}, -1, 1),
                               real(b ? Shape{s.n, s.k} : Shape{s.k, s.n}, -1, 1)},
                              attrs(a, b), is_small);
          added.atol = 1e-5;
        }
      }
    }
    add("matmul", {real({2, 3, 4}, -1, 1), real({4, 2}, -1, 1)}, attrs(0, 0), true);
    add("matmul", {real({2, 3, 4}, -1, 1), real({5, 4}, -1, 1)}, attrs(0, 1), true);
  }

  void add_cross_entropy() {
    for (const Shape& shape : std::vector<Shape>{{4, 3}, {1, 1}, {65, 10}, {2, 300}, {0, 5}}) {
      bool is_small = shape[0] * shape[1] > 0 && shape[0] * shape[1] < 20;
      HostArray labels = whole({shape[0]}, shape[1]);
      add("softmax_cross_entropy", {real(shape, -3, 3), labels}, {}, is_small).atol = 1e-5;
      add("softmax_cross_entropy_grad", {real({shape[0]}, -1, 1), real(shape, -3, 3), labels}, {},
          is_small)
          .atol = 1e-5;
    }
    HostArray outside = whole({3}, 4);
    outside.values = {1, 4, -1};
    add("softmax_cross_entropy", {real({3, 4}, -90, 90), outside}).atol = 1e-4;
    add("softmax_cross_entropy_grad", {real({3}, -1, 1), real({3, 4}, -3, 3), outside});
  }

  void add_optimizer_steps() {
    for (const Shape& shape : std::vector<Shape>{{3, 4}, {}, {1029}, {0}}) {
      bool is_small = shape.size() != 1;
      add("apply_gradient_descent", {real(shape, -1, 1), real(shape, -1, 1), scalar(0.1)}, {},
          is_small);
      for (int64_t nesterov : {0, 1}) {
        add("apply_momentum",
            {real(shape, -1, 1), real(shape, -1, 1), real(shape, -1, 1), scalar(0.1), scalar(0.9)},
            {{"use_nesterov", nesterov}}, is_small);
      }
    }
  }

  std::vector<OpCase> cases_;
};

}  // namespace

const std::vector<OpCase>& op_table() {
  static const std::vector<OpCase> table = Table().build();
  return table;
}

}  // namespace ballast::tests
