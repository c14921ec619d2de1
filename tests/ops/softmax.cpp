#include "tests/op_table.h"
#include "tests/samples.h"

#include <algorithm>
#include <cmath>

namespace ballast::tests {

namespace {

struct Row {
  std::vector<double> softmax, target;
  double loss;
};

// The reference divides exponentials by their sum, line by line along the axis.
template <class Line>
ReferenceOp along_axis(Line line) {
  return [line](const std::vector<HostArray>& inputs, const Attrs& attrs,
                std::vector<HostArray>& outputs) {
    const Shape& shape = inputs[0].type.shape;
    const auto axis = static_cast<size_t>(int_attr(attrs, "axis"));
    for (size_t i = 0; i < outputs[0].values.size(); ++i) {
      Index index = index_of(i, shape);
      if (index[axis] != 0) continue;
      std::vector<size_t> places;
      for (; index[axis] < shape[axis]; ++index[axis]) places.push_back(flat_of(index, shape));
      std::vector<Elements> values;
      for (const HostArray& input : inputs) {
        values.emplace_back();
        for (size_t place : places) values.back().push_back(input.values[place]);
      }
      const Elements results = line(values);
      for (size_t k = 0; k < places.size(); ++k) outputs[0].values[places[k]] = results[k];
    }
  };
}

Elements softmax_line(const std::vector<Elements>& inputs) {
  const Elements& x = inputs[0];
  double top = *std::max_element(x.begin(), x.end());
  Elements result;
  double total = 0;
  for (double value : x) total += std::exp(value - top);
  for (double value : x) result.push_back(std::exp(value - top) / total);
  return result;
}

Elements log_softmax_line(const std::vector<Elements>& inputs) {
  const Elements& x = inputs[0];
  double top = *std::max_element(x.begin(), x.end());
  double total = 0;
  for (double value : x) total += std::exp(value - top);
  Elements result;
  for (double value : x) result.push_back(value - top - std::log(total));
  return result;
}

Elements softmax_grad_line(const std::vector<Elements>& inputs) {
  double dot = 0;
  for (size_t i = 0; i < inputs[0].size(); ++i) dot += inputs[0][i] * inputs[1][i];
  Elements result;
  for (size_t i = 0; i < inputs[0].size(); ++i) {
    result.push_back((inputs[0][i] - dot) * inputs[1][i]);
  }
  return result;
}

Elements log_softmax_grad_line(const std::vector<Elements>& inputs) {
  double total = 0;
  for (double dy : inputs[0]) total += dy;
  Elements result;
  for (size_t i = 0; i < inputs[0].size(); ++i) {
    result.push_back(inputs[0][i] - std::exp(inputs[1][i]) * total);
  }
  return result;
}

void add_rows(OpFamilies& table, const Shape& shape, int64_t axis) {
  const bool is_small = TensorType{DType::kF32, shape}.elements() < 50;
  const Attrs attrs = {{"axis", axis}};
  table.add("softmax", {real(shape, -3, 3)}, attrs, is_small);
  table.add("log_softmax", {real(shape, -3, 3)}, attrs, is_small).atol = 5e-6;
  // The second input of a gradient is any tensor here, not only a softmax.
  const double atol = 1e-5 + 1e-7 * static_cast<double>(shape[static_cast<size_t>(axis)]);
  table.add("softmax_grad", {real(shape, -1, 1), real(shape, 0, 1)}, attrs, is_small).atol = atol;
  table.add("log_softmax_grad", {real(shape, -1, 1), real(shape, -2, 0)}, attrs, is_small).atol =
      atol;
}

void add_softmax_ops(OpFamilies& table) {
  struct Call {
    Shape shape;
    int64_t axis;
  };
  for (const Call& call : std::vector<Call>{{{5}, 0},
                                            {{1}, 0},
                                            {{3, 4}, 1},
                                            {{3, 4}, 0},
                                            {{2, 3, 2}, 1},
                                            {{2, 20}, 1},
                                            {{40, 7}, 1},
                                            {{7, 40}, 0},
                                            {{3, 17, 33}, 1},
                                            {{0, 4}, 1},
                                            {{4, 0}, 1}}) {
    add_rows(table, call.shape, call.axis);
  }
}

Row cross_entropy_row(const HostArray& logits, const HostArray& labels, size_t b,
                      double smoothing) {
  auto classes = static_cast<size_t>(logits.type.shape[1]);
  const double* row = logits.values.data() + b * classes;
  double top = *std::max_element(row, row + classes);
  double total = 0;
  for (size_t c = 0; c < classes; ++c) total += std::exp(row[c] - top);
  Row result;
  double label = labels.values[b];
  bool is_valid = label >= 0 && label < static_cast<double>(classes);
  result.loss = is_valid ? 0 : kNaN;
  for (size_t c = 0; c < classes; ++c) {
    double onehot = label == static_cast<double>(c);
    result.softmax.push_back(std::exp(row[c] - top) / total);
    result.target.push_back(onehot * (1 - smoothing) + smoothing / static_cast<double>(classes));
    result.loss -= result.target[c] * (row[c] - top - std::log(total));
  }
  return result;
}

double smoothing_of(const Attrs& attrs) { return float_attr(attrs, "label_smoothing", 0); }

void softmax_cross_entropy(const std::vector<HostArray>& inputs, const Attrs& attrs,
                           std::vector<HostArray>& outputs) {
  for (size_t b = 0; b < outputs[0].values.size(); ++b) {
    outputs[0].values[b] = cross_entropy_row(inputs[0], inputs[1], b, smoothing_of(attrs)).loss;
  }
}

void softmax_cross_entropy_grad(const std::vector<HostArray>& inputs, const Attrs& attrs,
                                std::vector<HostArray>& outputs) {
  auto classes = static_cast<size_t>(inputs[1].type.shape[1]);
  for (size_t b = 0; b < inputs[0].values.size(); ++b) {
    Row row = cross_entropy_row(inputs[1], inputs[2], b, smoothing_of(attrs));
    for (size_t c = 0; c < classes; ++c) {
      outputs[0].values[b * classes + c] =
          std::isnan(row.loss) ? kNaN : inputs[0].values[b] * (row.softmax[c] - row.target[c]);
    }
  }
}

void add_losses(OpFamilies& table, const Shape& shape, const HostArray& labels, double smoothing) {
  const bool is_small = shape[0] * shape[1] > 0 && shape[0] * shape[1] < 20;
  const Attrs attrs = smoothing > 0 ? Attrs{{"label_smoothing", smoothing}} : Attrs{};
  table.add("softmax_cross_entropy", {real(shape, -3, 3), labels}, attrs, is_small).atol = 1e-5;
  table
      .add("softmax_cross_entropy_grad", {real({shape[0]}, -1, 1), real(shape, -3, 3), labels},
           attrs, is_small)
      .atol = 1e-5;
}

void add_cross_entropy(OpFamilies& table) {
  for (const Shape& shape : std::vector<Shape>{{4, 3}, {1, 1}, {65, 10}, {2, 300}, {0, 5}}) {
    add_losses(table, shape, whole({shape[0]}, shape[1]), 0);
  }
  for (const Shape& shape : std::vector<Shape>{{3, 4}, {2, 1}, {17, 40}}) {
    add_losses(table, shape, whole({shape[0]}, shape[1]), 0.2);
  }
  HostArray outside = whole({3}, 4);
  outside.values = {1, 4, -1};
  table.add("softmax_cross_entropy", {real({3, 4}, -90, 90), outside}).atol = 1e-4;
  table.add("softmax_cross_entropy_grad", {real({3}, -1, 1), real({3, 4}, -3, 3), outside});
}
}  // namespace

void add_softmax(OpFamilies& table) {
  table.references.insert({
      {"softmax", along_axis(softmax_line)},
      {"softmax_grad", along_axis(softmax_grad_line)},
      {"log_softmax", along_axis(log_softmax_line)},
      {"log_softmax_grad", along_axis(log_softmax_grad_line)},
      {"softmax_cross_entropy", softmax_cross_entropy},
      {"softmax_cross_entropy_grad", softmax_cross_entropy_grad},
  });
  table.types.insert({
      {"softmax", like({0})},
      {"softmax_grad", like({0})},
      {"log_softmax", like({0})},
      {"log_softmax_grad", like({0})},
      {"softmax_cross_entropy",
       [](const Types& in, const Attrs&) {
         return Types{{in[0].dtype, {in[0].shape[0]}}};
       }},
      {"softmax_cross_entropy_grad", like({1})},
  });
  add_softmax_ops(table);
  add_cross_entropy(table);
}

void draw_softmax(OpFamilies& table, Draw& draw) {
  const Shape shape = draw.shape(1 + draw.below(4), 60000);
  add_rows(table, shape, draw.below(static_cast<int64_t>(shape.size())));
  const Shape logits = {draw.extent_or_none(1000), draw.extent(60)};
  const HostArray labels = whole({logits[0]}, logits[1] + draw.below(2));
  add_losses(table, logits, labels, draw.pick({0.0, 0.1}));
}

}  // namespace ballast::tests
