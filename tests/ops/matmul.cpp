#include "tests/op_table.h"
#include "tests/samples.h"

#include <algorithm>
#include <cmath>

namespace ballast::tests {

namespace {

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

void add_products(OpFamilies& table) {
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
        OpCase& added = table.add("matmul",
                                  {real(a ? Shape{s.k, s.m} : Shape{s.m, s.k}, -1, 1),
                                   real(b ? Shape{s.n, s.k} : Shape{s.k, s.n}, -1, 1)},
                                  attrs(a, b), is_small);
        added.atol = 1e-5;
      }
    }
  }
  table.add("matmul", {real({2, 3, 4}, -1, 1), real({4, 2}, -1, 1)}, attrs(0, 0), true);
  table.add("matmul", {real({2, 3, 4}, -1, 1), real({5, 4}, -1, 1)}, attrs(0, 1), true);
}
}  // namespace

void add_matmul(OpFamilies& table) {
  table.references.insert({
      {"matmul", matmul},
  });
  add_products(table);
}

}  // namespace ballast::tests
