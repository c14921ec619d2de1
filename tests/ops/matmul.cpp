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

  double at(const Index& batch, int64_t row, int64_t column) const {
    const Shape& shape = array.type.shape;
    Index index(shape.size());
    size_t own = shape.size() - 2;
    for (size_t d = 0; d < own; ++d) {
      index[d] = shape[d] == 1 ? 0 : batch[batch.size() - own + d];
    }
    index[own] = is_transposed ? column : row;
    index[own + 1] = is_transposed ? row : column;
    return array.values[flat_of(index, shape)];
  }
};

void matmul(const std::vector<HostArray>& inputs, const Attrs& attrs,
            std::vector<HostArray>& outputs) {
  Matrices a(inputs[0], int_attr(attrs, "transpose_a") != 0);
  Matrices b(inputs[1], int_attr(attrs, "transpose_b") != 0);
  const Shape& shape = outputs[0].type.shape;
  for (size_t i = 0; i < outputs[0].values.size(); ++i) {
    Index index = index_of(i, shape);
    Index batch(index.begin(), index.end() - 2);
    double total = 0;
    for (int64_t k = 0; k < a.columns; ++k) {
      total += a.at(batch, index[index.size() - 2], k) * b.at(batch, k, index.back());
    }
    outputs[0].values[i] = total;
  }
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

}  // namespace

void add_matmul(OpFamilies& table) {
  table.references.insert({
      {"matmul", matmul},
  });
  add_products(table);
  add_batches(table);
}

}  // namespace ballast::tests
