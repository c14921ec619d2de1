// Operands that do not lie densely: leading dimensions beyond the extents, columns first, elements
// apart, batches with gaps; each way to compute the product, with epilogues, beside double.
#include "kernels/matmul/matmul_choice.h"
#include "kernels/test_support.h"

#include <algorithm>
#include <limits>

namespace ballast::kernels::testing {
namespace {

// How the matrices of an operand lie.
struct Layout {
  int64_t pad = 0;  // elements between lines
  bool by_columns = false;
  int64_t step = 1;        // from one element of a line to the next
  int64_t gap = 0;         // elements between matrices
  bool is_shared = false;  // one for all products
};

struct Matrices {
  MatmulStrides strides;
  int64_t each = 0;  // from one to the next
  int64_t size = 0;

  Matrices(const Layout& layout, int64_t rows, int64_t columns, int64_t products) {
    const int64_t lines = layout.by_columns ? columns : rows;
    const int64_t pitch = (layout.by_columns ? rows : columns) * layout.step + layout.pad;
    strides = {pitch, layout.step};
    if (layout.by_columns) std::swap(strides.row, strides.column);
    each = layout.is_shared ? 0 : lines * pitch + layout.gap;
    size = lines * pitch + (products - 1) * each;
  }
  int64_t place(int64_t product, int64_t row, int64_t column) const {
    return product * each + row * strides.row + column * strides.column;
  }
};

struct Case {
  int64_t m, n, k;
  Layout a, b, c;
  int64_t products = 1;
  const char* activation = "none";
  bool has_bias = false, has_residual = false;
};

double activated(const std::string& name, double x) {
  if (name == "relu") return x <= 0 ? 0 : x;
  if (name == "tanh") return std::tanh(x);
  if (name == "silu") return x / (1 + std::exp(-x));
  if (name == "gelu") return x * (1 + std::erf(x / std::sqrt(2.0))) / 2;
  return x;
}

class Strided {
 public:
  explicit Strided(const Case& one)
      : case_(one),
        a_(one.a, one.m, one.k, one.products),
        b_(one.b, one.k, one.n, one.products),
        c_(one.c, one.m, one.n, one.products) {
    config_ = {one.m, one.n, one.k};
    config_.a_strides = a_.strides;
    config_.b_strides = b_.strides;
    config_.c_strides = c_.strides;
    if (one.products > 1) config_.batch = {{one.products, a_.each, b_.each, c_.each}};
    config_.activation = one.activation;
    config_.has_bias = one.has_bias;
    config_.has_residual = one.has_residual;
    inputs_ = {random_f32({a_.size}, 1), random_f32({b_.size}, 2)};
    if (one.has_bias) inputs_.push_back(random_f32({one.n}, 3));
    if (one.has_residual || is_relu_grad()) inputs_.push_back(random_f32({c_.size}, 4));
    compute();
  }

  void check(DeviceClass device_class) const {
    check_plan(plan_matmul(device_class, config_), class_name(device_class));
    if (is_simulated()) return;  // where MatmulChoice tries them all
    const MatmulProblem problem = make_matmul_problem(config_, MatmulSlots(config_));
    for (const MatmulChoice& choice : matmul_choices(device_class, problem)) {
      const std::string tile = choice.tile == nullptr ? "general" : choice.tile->name;
      check_plan(plan_matmul_as(device_class, config_, choice),
                 fmt::format("{} {} swapped {} pack {}", class_name(device_class), tile,
                             choice.swapped, static_cast<int>(choice.pack)));
    }
  }

 private:
  bool is_relu_grad() const { return config_.activation == "relu_grad"; }

  // Roundings of the sums, twice as many as there are, and some of the epilogue's.
  void compute() {
    want_.resize(c_.size);
    bound_.resize(c_.size, -1);
    const auto a = inputs_[0].as<float>(), b = inputs_[1].as<float>();
    const auto bias = case_.has_bias ? inputs_[2].as<float>() : std::vector<float>(case_.n);
    const auto extra = inputs_.back().as<float>();
    for_each_index({case_.products, case_.m, case_.n}, [&](const std::vector<int64_t>& index) {
      const int64_t p = index[0], i = index[1], j = index[2], at = c_.place(p, i, j);
      double sum = bias[j], magnitude = std::fabs(bias[j]);
      for (int64_t k = 0; k < case_.k; ++k) {
        const double term = double{a[a_.place(p, i, k)]} * b[b_.place(p, k, j)];
        sum += term;
        magnitude += std::fabs(term);
      }
      want_[at] = activated(case_.activation, sum);
      if (is_relu_grad() && extra[at] <= 0) want_[at] = 0;
      if (case_.has_residual) {
        want_[at] += extra[at];
        magnitude += std::fabs(extra[at]);
      }
      bound_[at] = static_cast<double>(case_.k + 8) * magnitude * 0x1p-23;
    });
  }

  // What lies between the elements of C stays.
  void check_plan(const Plan& plan, const std::string& what) const {
    const HostTensor got = run_plan(plan, inputs_, TensorType{DType::kF32, {c_.size}});
    const auto values = got.as<float>();
    size_t wrong = 0, overwritten = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (bound_[i] >= 0) {
        wrong += !(std::fabs(values[i] - want_[i]) <= bound_[i]);
      } else {
        const auto begin = got.bytes.begin() + static_cast<ptrdiff_t>(4 * i);
        overwritten += std::any_of(begin, begin + 4, [](uint8_t byte) { return byte != 0xa5; });
      }
    }
    EXPECT_EQ(wrong, 0u) << what << " " << name();
    EXPECT_EQ(overwritten, 0u) << what << " " << name();
  }

  std::string name() const {
    const auto text = [](const Matrices& m) {
      return fmt::format(" ({}, {}, {})", m.strides.row, m.strides.column, m.each);
    };
    return fmt::format("{}x{}x{}x{}{}{}{} {}", case_.products, case_.m, case_.n, case_.k, text(a_),
                       text(b_), text(c_), case_.activation);
  }

  Case case_;
  Matrices a_, b_, c_;
  MatmulConfig config_;
  std::vector<HostTensor> inputs_;
  std::vector<double> want_, bound_;  // by element of C; -1 between
};

constexpr bool kColumns = true;

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {1, 1, 1, {3}, {2}, {5}},
      {5, 7, 3, {1}, {2}, {3}, 1, "relu", true},
      {3, 19, 4, {2, kColumns}, {3}, {1, false, 1, 7}, 2, "silu", true, true},
      {7, 17, 5, {0, false, 2}, {1, kColumns}, {0, false, 2}, 1, "relu_grad", true},
      {17, 5, 6, {4}, {1, false, 3}, {3, kColumns}, 1, "tanh", true, true},
      {4, 9, 0, {1}, {1}, {2}, 2, "gelu", true, true},
      {1, 37, 11, {5}, {3}, {9, false, 1, 2}, 3, "none", true},
      {37, 1, 11, {2}, {0, false, 3}, {4}, 3, "relu", false, true},
      {6, 64, 8, {3}, {16}, {16}},
      {13, 64, 9, {7}, {5}, {16}, 1, "gelu", true, true},
      {33, 70, 16, {1}, {10}, {3}, 1, "none", true},
      {33, 70, 16, {1, kColumns}, {10, kColumns}, {3}, 1, "relu", true, true},
      {70, 33, 21, {2, kColumns}, {1}, {5, kColumns}, 1, "silu", true},
      {29, 48, 17, {0, false, 1, 5}, {0, false, 1, 11}, {0, false, 1, 3}, 3, "relu_grad"},
      {24, 48, 32, {4, false, 1, 3}, {4, false, 1, 0, true}, {8, false, 1, 9}, 3, "tanh"},
      {24, 48, 32, {4, false, 1, 0, true}, {4, kColumns, 1, 5}, {8}, 2, "none", true, true},
      {16, 20, 40, {3, kColumns, 1, 9}, {12, kColumns, 1, 2}, {7, kColumns, 1, 4}, 2, "gelu"},
      {12, 33, 48, {1, false, 2, 1}, {1, kColumns, 2, 1}, {1, kColumns, 2, 1}, 2, "relu", true},
      {6, 7, 259, {3}, {5, kColumns}, {2}, 1, "silu", true, true},
      {1, 40, 260, {1}, {3, kColumns, 1, 4}, {2}, 2, "none", true},
      {40, 1, 256, {6}, {1}, {3}, 1, "relu", true, true},
      {61, 67, 53, {3}, {1}, {2, false, 1, 1}, 2, "tanh", true}};
  return all;
}

TEST(MatmulStrides, MatchDouble) {
  for (const Case& one : cases()) {
    if (is_too_large(6 * one.products * one.m * one.n * (one.k + 1))) continue;
    const Strided strided(one);
    for (DeviceClass c : device_classes()) strided.check(c);
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
