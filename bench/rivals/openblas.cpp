// OpenBLAS: products of matrices, and y = a x + b. Epilogues it does not have are a loop behind the
// product, as a caller would write it.
#include "bench/rivals/worker.h"

#include <cblas.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

namespace ballast::bench {
namespace {

using Values = std::shared_ptr<std::vector<float>>;

Values input(const Case& c, size_t number) {
  return std::make_shared<std::vector<float>>(values_of(c.inputs[number], number));
}

struct Product {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;
};

Product product_of(const Case& c) {
  const auto &a = c.inputs[0].shape, &b = c.inputs[1].shape;
  Product p;
  p.transpose_a = int_of(c, "transpose_a") != 0;
  p.transpose_b = int_of(c, "transpose_b") != 0;
  p.k = a[a.size() - (p.transpose_a ? 2 : 1)];
  p.n = b[b.size() - (p.transpose_b ? 2 : 1)];
  if (b.size() > 2) p.batch = c.inputs[1].elements() / (p.k * p.n);
  p.m = c.inputs[0].elements() / (p.batch * p.k);
  return p;
}

void multiply(const Product& p, const float* a, const float* b, float* result) {
  const int lda = static_cast<int>(p.transpose_a ? p.m : p.k);
  const int ldb = static_cast<int>(p.transpose_b ? p.k : p.n);
  const auto flag = [](bool is_transposed) { return is_transposed ? CblasTrans : CblasNoTrans; };
  for (int64_t i = 0; i < p.batch; ++i) {
    cblas_sgemm(CblasRowMajor, flag(p.transpose_a), flag(p.transpose_b), static_cast<int>(p.m),
                static_cast<int>(p.n), static_cast<int>(p.k), 1.0f, a + i * p.m * p.k, lda,
                b + i * p.k * p.n, ldb, 0.0f, result + i * p.m * p.n, static_cast<int>(p.n));
  }
}

std::vector<Variant> matmul(const Case& c) {
  const std::string activation = string_of(c, "activation", "none");
  const bool has_bias = int_of(c, "has_bias") != 0, has_relu = activation == "relu";
  if ((!has_relu && activation != "none") || int_of(c, "has_residual")) return {};
  const Product p = product_of(c);
  const Values a = input(c, 0), b = input(c, 1), bias = has_bias ? input(c, 2) : Values();
  const auto y = std::make_shared<std::vector<float>>(p.batch * p.m * p.n);
  const auto run = [=](int count) {
    for (int i = 0; i < count; ++i) {
      multiply(p, a->data(), b->data(), y->data());
      for (int64_t row = 0; (has_bias || has_relu) && row < p.batch * p.m; ++row) {
        float* line = y->data() + row * p.n;
        for (int64_t j = 0; has_bias && j < p.n; ++j) line[j] += (*bias)[j];
        for (int64_t j = 0; has_relu && j < p.n; ++j) line[j] = std::max(line[j], 0.0f);
      }
    }
  };
  return {{"openblas", run, [y] { return std::vector<std::vector<float>>{*y}; }}};
}

std::vector<Variant> sgd(const Case& c) {
  const Values param = input(c, 0), grad = input(c, 1);
  const float rate = (*input(c, 2))[0];
  const auto y = std::make_shared<std::vector<float>>(param->size());
  const auto run = [=](int count) {
    const int n = static_cast<int>(y->size());
    for (int i = 0; i < count; ++i) {
      cblas_scopy(n, param->data(), 1, y->data(), 1);
      cblas_saxpy(n, -rate, grad->data(), 1, y->data(), 1);
    }
  };
  return {{"openblas", run, [y] { return std::vector<std::vector<float>>{*y}; }}};
}

std::vector<Variant> norm(const Case& c) {
  if (c.inputs.size() != 1) return {};
  const Values x = input(c, 0);
  const auto y = std::make_shared<float>();
  const auto run = [=](int count) {
    for (int i = 0; i < count; ++i) *y = cblas_snrm2(static_cast<int>(x->size()), x->data(), 1);
  };
  return {{"openblas", run, [y] { return std::vector<std::vector<float>>{{*y}}; }}};
}

// To a CPU younger than itself OpenBLAS gives kernels without AVX: it begins anew, told which of
// its kernels this one can run.
void choose_kernels(char** arguments) {
  constexpr const char* kName = "OPENBLAS_CORETYPE";
  if (std::string(openblas_get_corename()) != "Prescott" || std::getenv(kName)) return;
  if (__builtin_cpu_supports("avx512bw")) {
    setenv(kName, "SkylakeX", 1);
  } else if (__builtin_cpu_supports("avx2")) {
    setenv(kName, "Haswell", 1);
  } else {
    return;
  }
  execv("/proc/self/exe", arguments);
}

}  // namespace
}  // namespace ballast::bench

int main(int, char** arguments) {
  using namespace ballast::bench;
  choose_kernels(arguments);
  openblas_set_num_threads(std::atoi(std::getenv("BALLAST_BENCH_THREADS")));
  const std::string version =
      std::string(openblas_get_config()).substr(9, 6) + " (" + openblas_get_corename() + ")";
  return serve("openblas", version, [](const Case& c) -> std::vector<Variant> {
    if (c.op == "matmul") return matmul(c);
    if (c.op == "apply_gradient_descent") return sgd(c);
    if (c.op == "global_norm") return norm(c);
    return {};
  });
}
