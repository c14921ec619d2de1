#include "tests/reference_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ballast::tests {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Index = std::vector<int64_t>;

Index index_of(size_t flat, const Shape& shape) {
  Index index(shape.size());
  auto rest = static_cast<int64_t>(flat);
  for (size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = rest % shape[axis];
    rest /= shape[axis];
  }
  return index;
}

size_t flat_of(const Index& index, const Shape& shape) {
  int64_t flat = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) flat = flat * shape[axis] + index[axis];
  return static_cast<size_t>(flat);
}

// The element that broadcasting puts at `index` of the larger shape.
double broadcast_value(const HostArray& array, const Index& index) {
  const Shape& shape = array.type.shape;
  Index own(index.end() - static_cast<std::ptrdiff_t>(shape.size()), index.end());
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) own[axis] = 0;
  }
  return array.values[flat_of(own, shape)];
}

using Elements = std::vector<double>;

ReferenceOp pointwise(std::function<double(const Elements&)> function) {
  return [function](const std::vector<HostArray>& inputs, const Attrs&,
                    std::vector<HostArray>& outputs) {
    HostArray& out = outputs[0];
    for (size_t i = 0; i < out.values.size(); ++i) {
      Index index = index_of(i, out.type.shape);
      Elements elements;
      for (const HostArray& input : inputs) elements.push_back(broadcast_value(input, index));
      out.values[i] = function(elements);
    }
  };
}

ReferenceOp unary(double (*function)(double)) {
  return pointwise([function](const Elements& e) { return function(e[0]); });
}

ReferenceOp binary(double (*function)(double, double)) {
  return pointwise([function](const Elements& e) { return function(e[0], e[1]); });
}

double truth(bool is_true) { return is_true ? 1 : 0; }

double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

void cast(const std::vector<HostArray>& inputs, const Attrs&, std::vector<HostArray>& outputs) {
  DType dtype = outputs[0].type.dtype;
  for (size_t i = 0; i < outputs[0].values.size(); ++i) {
    double value = inputs[0].values[i];
    if (dtype == DType::kBool) value = value != 0;
    outputs[0].values[i] = dtype == DType::kF32 ? value : std::trunc(value);
  }
}

void broadcast_to(const std::vector<HostArray>& inputs, const Attrs&,
                  std::vector<HostArray>& outputs) {
  for (size_t i = 0; i < outputs[0].values.size(); ++i) {
    outputs[0].values[i] = broadcast_value(inputs[0], index_of(i, outputs[0].type.shape));
  }
}

void copy_values(const std::vector<HostArray>& inputs, const Attrs&,
                 std::vector<HostArray>& outputs) {
  outputs[0].values = inputs[0].values;
}

void transpose(const std::vector<HostArray>& inputs, const Attrs& attrs,
               std::vector<HostArray>& outputs) {
  const std::vector<int64_t>& perm = ints_attr(attrs, "perm");
  for (size_t i = 0; i < outputs[0].values.size(); ++i) {
    Index target = index_of(i, outputs[0].type.shape);
    Index source(perm.size());
    for (size_t axis = 0; axis < perm.size(); ++axis) {
      source[static_cast<size_t>(perm[axis])] = target[axis];
    }
    outputs[0].values[i] = inputs[0].values[flat_of(source, inputs[0].type.shape)];
  }
}

// Gathers, per output element, the input elements that are reduced into it, in order.
ReferenceOp reduction(std::function<double(const Elements&)> function) {
  return [function](const std::vector<HostArray>& inputs, const Attrs& attrs,
                    std::vector<HostArray>& outputs) {
    const Shape& shape = inputs[0].type.shape;
    bool has_axis = std::any_of(attrs.begin(), attrs.end(),
                                [](const auto& attr) { return attr.first == "axis"; });
    std::vector<int64_t> axes =
        has_axis ? std::vector<int64_t>{int_attr(attrs, "axis")} : ints_attr(attrs, "axes");
    std::vector<bool> is_reduced(shape.size(), axes.empty());
    for (int64_t axis : axes) is_reduced[static_cast<size_t>(axis)] = true;
    Shape kept;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (!is_reduced[axis]) kept.push_back(shape[axis]);
    }
    std::vector<Elements> groups(outputs[0].values.size());
    for (size_t i = 0; i < inputs[0].values.size(); ++i) {
      Index index = index_of(i, shape);
      Index target;
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (!is_reduced[axis]) target.push_back(index[axis]);
      }
      groups[flat_of(target, kept)].push_back(inputs[0].values[i]);
    }
    for (size_t i = 0; i < groups.size(); ++i) outputs[0].values[i] = function(groups[i]);
  };
}

double sum(const Elements& e) {
  double total = 0;
  for (double value : e) total += value;
  return total;
}

double product(const Elements& e) {
  double total = 1;
  for (double value : e) total *= value;
  return total;
}

double extremum(const Elements& e, double (*better)(double, double)) {
  double best = e.at(0);
  for (double value : e) best = std::isnan(best) ? best : better(value, best);
  return best;
}

// The lowest index of a NaN, else of the extremum.
double position(const Elements& e, double (*better)(double, double)) {
  double best = extremum(e, better);
  for (size_t i = 0; i < e.size(); ++i) {
    if (e[i] == best || (std::isnan(best) && std::isnan(e[i]))) return static_cast<double>(i);
  }
  return -1;
}

void matmul(const std::vector<HostArray>& inputs, const Attrs& attrs,
            std::vector<HostArray>& outputs) {
  bool transpose_a = int_attr(attrs, "transpose_a") != 0;
  bool transpose_b = int_attr(attrs, "transpose_b") != 0;
  const HostArray& a = inputs[0];
  const HostArray& b = inputs[1];
  auto n = static_cast<size_t>(b.type.shape[transpose_b ? 0 : 1]);
  auto k = static_cast<size_t>(b.type.shape[transpose_b ? 1 : 0]);
  size_t m = n == 0 ? 0 : outputs[0].values.size() / n;
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      double total = 0;
      for (size_t p = 0; p < k; ++p) {
        total += a.values[transpose_a ? p * m + i : i * k + p] *
                 b.values[transpose_b ? j * k + p : p * n + j];
      }
      outputs[0].values[i * n + j] = total;
    }
  }
}

struct Row {
  std::vector<double> softmax;
  double loss;
};

Row cross_entropy_row(const HostArray& logits, const HostArray& labels, size_t b) {
  auto classes = static_cast<size_t>(logits.type.shape[1]);
  const double* row = logits.values.data() + b * classes;
  double top = *std::max_element(row, row + classes);
  double total = 0;
  for (size_t c = 0; c < classes; ++c) total += std::exp(row[c] - top);
  Row result;
  for (size_t c = 0; c < classes; ++c) result.softmax.push_back(std::exp(row[c] - top) / total);
  double label = labels.values[b];
  bool is_valid = label >= 0 && label < static_cast<double>(classes);
  result.loss = is_valid ? top + std::log(total) - row[static_cast<size_t>(label)] : kNaN;
  return result;
}

void softmax_cross_entropy(const std::vector<HostArray>& inputs, const Attrs&,
                           std::vector<HostArray>& outputs) {
  for (size_t b = 0; b < outputs[0].values.size(); ++b) {
    outputs[0].values[b] = cross_entropy_row(inputs[0], inputs[1], b).loss;
  }
}

void softmax_cross_entropy_grad(const std::vector<HostArray>& inputs, const Attrs&,
                                std::vector<HostArray>& outputs) {
  auto classes = static_cast<size_t>(inputs[1].type.shape[1]);
  for (size_t b = 0; b < inputs[0].values.size(); ++b) {
    Row row = cross_entropy_row(inputs[1], inputs[2], b);
    for (size_t c = 0; c < classes; ++c) {
      double onehot = inputs[2].values[b] == static_cast<double>(c);
      outputs[0].values[b * classes + c] =
          std::isnan(row.loss) ? kNaN : inputs[0].values[b] * (row.softmax[c] - onehot);
    }
  }
}

void apply_momentum(const std::vector<HostArray>& inputs, const Attrs& attrs,
                    std::vector<HostArray>& outputs) {
  double lr = inputs[3].values[0];
  double momentum = inputs[4].values[0];
  for (size_t i = 0; i < inputs[0].values.size(); ++i) {
    double grad = inputs[2].values[i];
    double accum = momentum * inputs[1].values[i] + grad;
    double step = int_attr(attrs, "use_nesterov") != 0 ? grad + momentum * accum : accum;
    outputs[0].values[i] = inputs[0].values[i] - lr * step;
    outputs[1].values[i] = accum;
  }
}

}  // namespace

const std::map<std::string, ReferenceOp>& reference_ops() {
  static const std::map<std::string, ReferenceOp> ops = {
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
      {"broadcast_to", broadcast_to},
      {"reshape", copy_values},
      {"depend", copy_values},
      {"stop_gradient", copy_values},
      {"transpose", transpose},
      {"reduce_sum", reduction(sum)},
      {"reduce_mean",
       reduction([](const Elements& e) { return sum(e) / static_cast<double>(e.size()); })},
      {"reduce_max", reduction([](const Elements& e) { return extremum(e, larger); })},
      {"reduce_min", reduction([](const Elements& e) { return extremum(e, smaller); })},
      {"reduce_prod", reduction(product)},
      {"reduce_any", reduction([](const Elements& e) { return truth(sum(e) > 0); })},
      {"reduce_all",
       reduction([](const Elements& e) { return truth(sum(e) == static_cast<double>(e.size())); })},
      {"argmax", reduction([](const Elements& e) { return position(e, larger); })},
      {"argmin", reduction([](const Elements& e) { return position(e, smaller); })},
      {"matmul", matmul},
      {"softmax_cross_entropy", softmax_cross_entropy},
      {"softmax_cross_entropy_grad", softmax_cross_entropy_grad},
      {"apply_gradient_descent", pointwise([](const Elements& e) { return e[0] - e[2] * e[1]; })},
      {"apply_momentum", apply_momentum},
  };
  return ops;
}

}  // namespace ballast::tests
