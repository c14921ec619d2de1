#include "tests/op_table.h"
#include "tests/samples.h"

#include <algorithm>
#include <cmath>

namespace ballast::tests {

namespace {

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

void add_cross_entropy(OpFamilies& table) {
  for (const Shape& shape : std::vector<Shape>{{4, 3}, {1, 1}, {65, 10}, {2, 300}, {0, 5}}) {
    bool is_small = shape[0] * shape[1] > 0 && shape[0] * shape[1] < 20;
    HostArray labels = whole({shape[0]}, shape[1]);
    table.add("softmax_cross_entropy", {real(shape, -3, 3), labels}, {}, is_small).atol = 1e-5;
    table
        .add("softmax_cross_entropy_grad", {real({shape[0]}, -1, 1), real(shape, -3, 3), labels},
             {}, is_small)
        .atol = 1e-5;
  }
  HostArray outside = whole({3}, 4);
  outside.values = {1, 4, -1};
  table.add("softmax_cross_entropy", {real({3, 4}, -90, 90), outside}).atol = 1e-4;
  table.add("softmax_cross_entropy_grad", {real({3}, -1, 1), real({3, 4}, -3, 3), outside});
}
}  // namespace

void add_softmax(OpFamilies& table) {
  table.references.insert({
      {"softmax_cross_entropy", softmax_cross_entropy},
      {"softmax_cross_entropy_grad", softmax_cross_entropy_grad},
  });
  add_cross_entropy(table);
}

}  // namespace ballast::tests
