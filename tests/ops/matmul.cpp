#include "tests/op_table.h"
#include "tests/samples.h"

#include <algorithm>
#include <cmath>

namespace ballast::tests {

namespace {

// One operand as matrices: which elements belong to the product at a batch index.
struct Matrices {
  const HostArray& array;
  bool is_transposed;
  int64_t rows, columns;

  Matrices(const HostArray& a, bool transposed)
      : array(a),
        is_transposed(transposed),
        rows(a.type.shape[a.type.shape.size() - (transposed ? 1 : 2)]),
        columns(a.type.shape[a.type.shape.size() - (transposed ? 2 : 1)]) {}

  // Where the matrix of a batch index begins.
  const double* matrix(const Index& batch) const {
    const Shape& shape = array.type.shape;
    Index index(shape.size());
    size_t own = shape.size() - 2;
    for (size_t d = 0; d < own; ++d) {
      index[d] = shape[d] == 1 ? 0 : batch[batch.size() - own + d];
    }
    return array.values.data() + flat_of(index, shape);
  }
  int64_t at(int64_t row, int64_t column) const {
    return is_transposed ? column * rows + row : row * columns + column;
  }
};

// activation(x + bias) + residual; "relu_grad": x where the last operand is positive, else 0.
void add_epilogue(const std::vector<HostArray>& inputs, const Attrs& attrs,
                  std::vector<HostArray>& outputs) {
  std::vector<double>& x = outputs[0].values;
  const auto activation = attr_or<std::string>(attrs, "activation", "none");
  if (attr_or<int64_t>(attrs, "has_bias", 0) != 0) {
    const std::vector<double>& bias = inputs[2].values;
    for (size_t i = 0; i < x.size(); ++i) x[i] += bias[i % bias.size()];
  }
  if (activation == "relu_grad") {
    for (size_t i = 0; i < x.size(); ++i) x[i] = inputs.back().values[i] > 0 ? x[i] : 0;
  } else if (activation != "none") {
    reference_ops().at(activation)({outputs[0]}, {}, outputs);
  }
  if (attr_or<int64_t>(attrs, "has_residual", 0) != 0) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += inputs.back().values[i];
  }
}

void matmul(const std::vector<HostArray>& inputs, const Attrs& attrs,
            std::vector<HostArray>& outputs) {
  Matrices a(inputs[0], int_attr(attrs, "transpose_a") != 0);
  Matrices b(inputs[1], int_attr(attrs, "transpose_b") != 0);
  const Shape& shape = outputs[0].type.shape;
  for (size_t i = 0; i < outputs[0].values.size(); ++i) {
    Index index = index_of(i, shape);
    Index batch(index.begin(), index.end() - 2);
    const double *left = a.matrix(batch), *right = b.matrix(batch);
    double total = 0;
    for (int64_t k = 0; k < a.columns; ++k) {
      total += left[a.at(index[index.size() - 2], k)] * right[b.at(k, index.back())];
    }
    outputs[0].values[i] = total;
  }
  add_epilogue(inputs, attrs, outputs);
}

Types product_types(const Types& in, const Attrs& attrs) {
  const auto extent = [&](size_t input, const char* transpose, size_t from_end) {
    const bool is_transposed = int_attr(attrs, transpose) != 0;
    return in[input].shape[in[input].shape.size() - (is_transposed ? 3 - from_end : from_end)];
  };
  Types leading = {in[0], in[1]};
  for (TensorType& type : leading) type.shape.resize(type.shape.size() - 2);
  Shape shape = broadcast_shape(leading);
  shape.push_back(extent(0, "transpose_a", 2));
  shape.push_back(extent(1, "transpose_b", 1));
  return {{in[0].dtype, shape}};
}

Attrs transposes(int64_t a, int64_t b) { return {{"transpose_a", a}, {"transpose_b", b}}; }

Shape with_matrix(Shape batch, int64_t rows, int64_t columns, bool is_transposed) {
  batch.push_back(is_transposed ? columns : rows);
  batch.push_back(is_transposed ? rows : columns);
  return batch;
}

struct Sizes {
  int64_t m, k, n;
};

void add_transposes(OpFamilies& table, const Shape& a_batch, const Shape& b_batch, const Sizes& s,
                    bool is_smooth) {
  for (int64_t a : {0, 1}) {
    for (int64_t b : {0, 1}) {
      OpCase& added = table.add("matmul",
                                {real(with_matrix(a_batch, s.m, s.k, a), -1, 1),
                                 real(with_matrix(b_batch, s.k, s.n, b), -1, 1)},
                                transposes(a, b), is_smooth);
      added.atol = 1e-5;
    }
  }
}

void add_products(OpFamilies& table) {
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
    add_transposes(table, {}, {}, s, is_small);
  }
  table.add("matmul", {real({2, 3, 4}, -1, 1), real({4, 2}, -1, 1)}, transposes(0, 0), true);
  table.add("matmul", {real({2, 3, 4}, -1, 1), real({5, 4}, -1, 1)}, transposes(0, 1), true);
}

void add_batches(OpFamilies& table) {
  add_transposes(table, {2}, {2}, {2, 3, 2}, true);
  add_transposes(table, {2, 1}, {2}, {2, 1, 2}, true);  // both repeat
  add_transposes(table, {3}, {}, {2, 2, 2}, true);
  add_transposes(table, {}, {3}, {2, 2, 1}, true);
  add_transposes(table, {1}, {2, 1}, {1, 3, 2}, true);
  add_transposes(table, {3, 2}, {3, 2}, {13, 17, 11}, false);
  add_transposes(table, {5, 1, 2}, {3, 1}, {7, 20, 33}, false);
  add_transposes(table, {4}, {4}, {49, 32, 50}, false);
  add_transposes(table, {2, 0}, {2, 1}, {3, 4, 5}, false);  // nothing to compute
  add_transposes(table, {2}, {2}, {3, 0, 5}, false);        // sums of nothing
}

void add_integers(OpFamilies& table) {
  for (DType dtype : {DType::kI32, DType::kI64}) {
    table.add("matmul", {whole({17, 33}, 99, dtype), whole({33, 20}, 99, dtype)}, transposes(0, 0));
    table.add("matmul", {whole({2, 7, 5}, 99, dtype), whole({5, 4}, 99, dtype)}, transposes(0, 0));
    table.add("matmul", {whole({7, 3}, 99, dtype), whole({1, 7}, 99, dtype)}, transposes(1, 1));
    table.add("matmul", {whole({3, 0}, 9, dtype), whole({0, 4}, 9, dtype)}, transposes(0, 0));
    table.add("matmul", {whole({0, 3}, 9, dtype), whole({3, 4}, 9, dtype)}, transposes(0, 0));
  }
}

void add_epilogues(OpFamilies& table) {
  struct Row {
    int64_t bias;
    const char* activation;
    int64_t residual;
  };
  struct Product {
    Shape a, b, result;
    int64_t transpose_a, transpose_b;
  };
  const std::vector<Product> products = {{{3, 4}, {4, 5}, {3, 5}, 0, 0},
                                         {{33, 17}, {41, 33}, {17, 41}, 1, 1},
                                         {{64, 70}, {100, 70}, {64, 100}, 0, 1},
                                         {{2, 7, 3}, {3, 1}, {2, 7, 1}, 0, 0},
                                         {{3, 0}, {0, 4}, {3, 4}, 0, 0}};
  for (const Row& row : std::vector<Row>{{1, "none", 0},
                                         {1, "relu", 0},
                                         {0, "tanh", 1},
                                         {1, "sigmoid", 1},
                                         {1, "gelu", 0},
                                         {0, "gelu_tanh", 0},
                                         {1, "silu", 1},
                                         {0, "none", 1},
                                         {0, "relu_grad", 0}}) {
    const bool has_extra = row.residual != 0 || row.activation == std::string("relu_grad");
    for (const Product& p : products) {
      std::vector<HostArray> inputs = {real(p.a, -1, 1), real(p.b, -1, 1)};
      if (row.bias != 0) inputs.push_back(real({p.result.back()}, -1, 1));
      if (has_extra) inputs.push_back(real(p.result, -1, 1));
      Attrs attrs = transposes(p.transpose_a, p.transpose_b);
      attrs.emplace_back("has_bias", row.bias);
      attrs.emplace_back("activation", std::string(row.activation));
      attrs.emplace_back("has_residual", row.residual);
      table.add("matmul", inputs, attrs).atol = 1e-5;
    }
  }
}

}  // namespace

void add_matmul(OpFamilies& table) {
  table.references.insert({
      {"matmul", matmul},
  });
  table.types.insert({{"matmul", product_types}});
  add_products(table);
  add_batches(table);
  add_integers(table);
  add_epilogues(table);
}

void draw_matmul(OpFamilies& table, Draw& draw) {
  const Shape batch = draw.one_in(2) ? Shape{} : draw.shape(1 + draw.below(2), 40);
  int64_t products = 20000000;
  for (int64_t extent : batch) products /= std::max<int64_t>(extent, 1);
  Sizes s{draw.extent_or_none(3000), draw.extent_or_none(3000), draw.extent_or_none(3000)};
  for (int64_t* extent : {&s.m, &s.n, &s.k}) {
    *extent = std::min(*extent, products);
    products /= std::max<int64_t>(*extent, 1);
  }
  const int64_t a = draw.below(2), b = draw.below(2);
  Attrs attrs = transposes(a, b);
  const Shape a_batch = draw.broadcast_from(batch), b_batch = draw.broadcast_from(batch);
  if (draw.one_in(8)) {
    const DType dtype = draw.pick({DType::kI32, DType::kI64});
    table.add("matmul",
              {whole(with_matrix(a_batch, s.m, s.k, a != 0), 99, dtype),
               whole(with_matrix(b_batch, s.k, s.n, b != 0), 99, dtype)},
              attrs);
    return;
  }
  std::vector<HostArray> inputs = {real(with_matrix(a_batch, s.m, s.k, a != 0), -1, 1),
                                   real(with_matrix(b_batch, s.k, s.n, b != 0), -1, 1)};
  if (draw.one_in(2)) {
    const auto activation = draw.pick<const char*>(
        {"none", "relu", "tanh", "sigmoid", "gelu", "gelu_tanh", "silu", "relu_grad"});
    const int64_t bias = draw.below(2);
    const int64_t residual = activation == std::string("relu_grad") ? 0 : draw.below(2);
    const Shape result = product_types({inputs[0].type, inputs[1].type}, attrs)[0].shape;
    if (bias != 0) inputs.push_back(real({s.n}, -1, 1));
    if (residual != 0 || activation == std::string("relu_grad")) {
      inputs.push_back(real(result, -1, 1));
    }
    attrs.insert(
        attrs.end(),
        {{"has_bias", bias}, {"activation", std::string(activation)}, {"has_residual", residual}});
  }
  table.add("matmul", inputs, attrs).atol = 1e-5 + 1e-7 * static_cast<double>(s.k);
}

}  // namespace ballast::tests
