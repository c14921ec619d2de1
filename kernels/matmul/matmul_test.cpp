#include "kernels/matmul/matmul_activations.h"
#include "kernels/matmul/matmul_choice.h"
#include "kernels/matmul/matmul_reference.h"
#include "kernels/matmul/matmul_split.h"
#include "kernels/plan/registers.h"

#include <array>
#include <limits>

namespace ballast::kernels::testing {
namespace {

constexpr bool kBool[] = {false, true};

struct Epilogue {
  bool has_bias;
  const char* activation;
};
constexpr Epilogue kEpilogues[] = {{false, "none"}, {true, "none"},       {false, "relu"},
                                   {true, "relu"},  {false, "relu_grad"}, {true, "relu_grad"}};

std::vector<float> run(DeviceClass device_class, const MatmulConfig& c, const ProductOperands& o) {
  return run_plan(plan_matmul(device_class, c), inputs_of(o, c),
                  TensorType{DType::kF32, {c.m, c.n}})
      .as<float>();
}

// What the pointwise ops would make of an unfused product.
std::vector<float> apply_epilogue(const MatmulConfig& c, const ProductOperands& o,
                                  std::vector<float> product) {
  const std::vector<float> bias = o.bias.as<float>(), y = o.y.as<float>();
  for (size_t i = 0; i < product.size(); ++i) {
    float& v = product[i];
    if (c.has_bias) v = v + bias[i % c.n];
    if (c.activation == "relu") v = v <= 0 ? 0 : v;
    if (c.activation == "relu_grad") v = y[i] > 0 ? v : 0;
  }
  return product;
}

bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

void expect_exact(DeviceClass device_class, MatmulConfig c) {
  const ProductOperands o = make_operands(c);
  const std::vector<float> product = chain_of(c, o);
  for (const Epilogue& epilogue : kEpilogues) {
    c.has_bias = epilogue.has_bias;
    c.activation = epilogue.activation;
    EXPECT_TRUE(same_bits(run(device_class, c, o), apply_epilogue(c, o, product)))
        << name_of(device_class, c);
  }
}

void expect_near_reference(DeviceClass device_class, const MatmulConfig& c) {
  if (is_too_slow(device_class, c.m * c.n * c.k)) return;
  const ProductOperands o = make_operands(c);
  const std::vector<float> got = run(device_class, c, o);
  const ProductReference expected = reference_of(c, o);
  const double rounding = (c.k + 1) * std::numeric_limits<float>::epsilon() / 2;
  size_t wrong = 0;  // not near, which a NaN is not either
  for (size_t i = 0; i < got.size(); ++i) {
    wrong += !(std::fabs(got[i] - expected.value[i]) <= rounding * expected.magnitude[i]);
  }
  EXPECT_EQ(wrong, 0u) << name_of(device_class, c);
}

// Every kernel, packing, transpose and epilogue, on edges of tiles, panels and vectors.
const std::vector<std::array<int64_t, 3>> kSmallSizes = {
    {1, 1, 1},  {1, 1, 0},   {3, 5, 0},    {7, 13, 11},  {32, 1, 10},  {1, 10, 32},
    {5, 16, 3}, {6, 64, 32}, {17, 48, 16}, {13, 112, 7}, {70, 10, 48}, {40, 52, 256}};

TEST(Matmul, SmallSizesAreExact) {
  for (DeviceClass device_class : device_classes()) {
    for (const auto& [m, n, k] : kSmallSizes) {
      for (bool transpose_a : kBool) {
        for (bool transpose_b : kBool) {
          expect_exact(device_class, {m, n, k, transpose_a, transpose_b});
        }
      }
    }
  }
}

// But for the few classes at the end, which are dot products.
TEST(Matmul, LayersAreExact) {
  for (DeviceClass device_class : device_classes()) {
    expect_exact(device_class, {64, 512, 784, false, true});
    expect_exact(device_class, {64, 784, 512, false, false});
    expect_exact(device_class, {512, 784, 64, true, false});
    expect_near_reference(device_class, {64, 10, 512, false, true});
    expect_exact(device_class, {64, 512, 10, false, false});
    expect_exact(device_class, {10, 512, 64, true, false});
  }
}

TEST(Matmul, MatchesDoublePrecision) {
  for (DeviceClass device_class : device_classes()) {
    for (const std::array<int64_t, 3>& size : std::vector<std::array<int64_t, 3>>{{127, 131, 137},
                                                                                  {1, 509, 257},
                                                                                  {256, 1, 300},
                                                                                  {250, 96, 512},
                                                                                  {96, 1024, 260},
                                                                                  {13, 130, 270},
                                                                                  {130, 18, 263}}) {
      for (bool transpose_a : kBool) {
        for (bool transpose_b : kBool) {
          expect_near_reference(device_class,
                                {size[0], size[1], size[2], transpose_a, transpose_b});
        }
      }
    }
  }
}

// The kernel of dot products: edges of its tiles, steps after the last whole vector; few rows that
// are packed first, of either operand.
TEST(Matmul, FewRowsMatchDoublePrecision) {
  for (const auto& [m, n] : std::vector<std::array<int64_t, 2>>{{6, 7}, {5, 4}, {9, 2}, {1, 5}}) {
    expect_near_reference(DeviceClass::kCpu, {m, n, 259, false, true});
    expect_near_reference(DeviceClass::kCpu, {m, n, 259, m < n, m < n});
  }
}

// The kernel of a vector and a matrix: whole vectors of steps and elements and not, the least of
// both, some of its unrolled steps and none.
TEST(Matmul, LinesMatchDoublePrecision) {
  for (const int64_t registers : tested_registers()) {
    const RegistersScope scope(registers);
    for (const int64_t elements : {8, 16, 19, 70}) {
      for (const int64_t steps : {8, 15, 16, 17, 47, 64, 133}) {
        expect_near_reference(DeviceClass::kCpu, {1, elements, steps, false, true});
        expect_near_reference(DeviceClass::kCpu, {elements, 1, steps});
      }
    }
    for (MatmulConfig c : {MatmulConfig{1, 19, 17, false, true}, MatmulConfig{19, 1, 17}}) {
      const ProductOperands o = make_operands(c);
      const std::vector<float> product = run(DeviceClass::kCpu, c, o);
      for (const Epilogue& epilogue : kEpilogues) {
        c.has_bias = epilogue.has_bias;
        c.activation = epilogue.activation;
        EXPECT_TRUE(same_bits(run(DeviceClass::kCpu, c, o), apply_epilogue(c, o, product)))
            << name_of(DeviceClass::kCpu, c);
      }
    }
  }
}

// The last vector of a line's steps has some again that are added already, and count nothing.
TEST(Matmul, InfinityIsAddedToALineOnce) {
  const MatmulConfig c{1, 16, 17, false, true};
  ProductOperands o = make_operands(c);
  std::vector<float> a(17, 1.0f), b(16 * 17, 1.0f);
  a[3] = -INFINITY;
  b[5 * 17 + 4] = INFINITY;
  o.a = f32({1, 17}, a), o.b = f32({16, 17}, b);
  std::vector<float> expected(16, -INFINITY);
  expected[5] = NAN;
  const std::vector<float> got = run(DeviceClass::kCpu, c, o);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(ulps(got[i], expected[i]), 0) << i;
}

// On GPUs, in parts that divide the steps and are added up.
TEST(Matmul, FewResultsOfManyStepsMatchDoublePrecision) {
  for (int64_t steps : {2048, 1500}) {
    for (bool transpose_a : kBool) {
      for (bool transpose_b : kBool) {
        const MatmulConfig config{33, 10, steps, transpose_a, transpose_b};
        EXPECT_GT(split_parts(DeviceClass::kGpu, config), 1);
        expect_near_reference(DeviceClass::kGpu, config);
      }
    }
  }
  EXPECT_EQ(split_parts(DeviceClass::kCpu, {33, 10, 2048}), 1);
  EXPECT_EQ(split_parts(DeviceClass::kGpu, {33, 10, 2039}), 1) << "a prime number";
  EXPECT_EQ(split_parts(DeviceClass::kGpu, {1024, 1024, 1024}), 1);
}

// Panels that a group copies to its stack, and of a step more than that holds.
TEST(Matmul, ProductsOfManyStepsMatchDoublePrecision) {
  const RegistersScope narrow(kNarrowRegisters);
  for (int64_t steps : {kMatmulCopiedSteps, kMatmulCopiedSteps + 1}) {
    const MatmulConfig config{30, 1024, steps};
    const bool is_copied = plan_matmul(DeviceClass::kCpu, config).workspace_bytes == 0;
    EXPECT_EQ(is_copied, steps == kMatmulCopiedSteps);
    if (!is_too_large(config.m * config.n)) expect_near_reference(DeviceClass::kCpu, config);
  }
}

TEST(Matmul, LargePackedProductMatchesDoublePrecision) {
  const RegistersScope wide(kWideRegisters);  // with narrow ones groups copy their panels
  const MatmulConfig config{512, 1024, 512};
  EXPECT_GT(plan_matmul(DeviceClass::kCpu, config).workspace_bytes, 0u);
  expect_near_reference(DeviceClass::kCpu, config);
}

TEST(Matmul, EmptyOutputNeedsNoLaunch) {
  for (DeviceClass device_class : device_classes()) {
    EXPECT_TRUE(plan_matmul(device_class, {0, 5, 3}).launches.empty());
    EXPECT_TRUE(plan_matmul(device_class, {5, 0, 3}).launches.empty());
  }
}

// 0 * inf must be NaN, and what pads a tile must not reach a result.
TEST(Matmul, InfinityAndNanSpreadAlongTheirRowAndColumnOnly) {
  for (DeviceClass device_class : device_classes()) {
    for (const std::array<int64_t, 3>& size : std::vector<std::array<int64_t, 3>>{
             {7, 5, 3}, {25, 67, 48}, {70, 112, 48}, {61, 131, 64}}) {
      if (is_too_large(size[0] * size[1])) continue;
      for (int transposes = 0; transposes < 4; ++transposes) {
        const MatmulConfig c{size[0], size[1], size[2], (transposes & 1) != 0, transposes > 1};
        ProductOperands o = make_operands(c);
        std::vector<float> a(c.m * c.k, 0.0f), b(c.n * c.k, 1.0f);
        // The last row of A and the last column of B: the ones that padding repeats.
        a[c.transpose_a ? c.m - 1 : (c.m - 1) * c.k] = std::numeric_limits<float>::quiet_NaN();
        b[c.transpose_b ? (c.n - 1) * c.k : c.n - 1] = std::numeric_limits<float>::infinity();
        o.a = f32(o.a.type.shape, a);
        o.b = f32(o.b.type.shape, b);
        const std::vector<float> got = run(device_class, c, o);
        size_t wrong = 0;
        for (int64_t i = 0; i < c.m; ++i) {
          for (int64_t j = 0; j < c.n; ++j) {
            const bool expect_nan = i == c.m - 1 || j == c.n - 1;
            wrong += std::isnan(got[i * c.n + j]) != expect_nan;
          }
        }
        EXPECT_EQ(wrong, 0u) << name_of(device_class, c);
      }
    }
  }
}

TEST(Matmul, ReluKeepsNan) {
  for (DeviceClass device_class : device_classes()) {
    for (const std::array<int64_t, 3>& size : std::vector<std::array<int64_t, 3>>{
             {1, 1, 1}, {12, 64, 20}, {16, 48, 20}, {25, 67, 32}, {61, 131, 64}}) {
      if (is_too_large(size[0] * size[1])) continue;
      const MatmulConfig c{size[0], size[1], size[2], false, false, true, "relu"};
      ProductOperands o = make_operands(c);
      o.a = f32(o.a.type.shape, std::vector<float>(c.m * c.k, NAN));
      for (float v : run(device_class, c, o)) {
        ASSERT_TRUE(std::isnan(v)) << name_of(device_class, c);
      }
    }
  }
}

// The unfused product has to be computed by the same kernel on the same path; but where registers
// are narrow and groups of a plain product copy their panels.
TEST(Matmul, EpilogueDoesNotChangeThePath) {
  const RegistersScope wide(kWideRegisters);
  for (const std::array<int64_t, 3>& size : std::vector<std::array<int64_t, 3>>{
           {64, 512, 784}, {32, 1, 10}, {1024, 1024, 1024}, {61, 131, 300}}) {
    for (bool transpose_b : kBool) {
      MatmulConfig c{size[0], size[1], size[2], false, transpose_b};
      const Plan plain = plan_matmul(DeviceClass::kCpu, c);
      for (const Epilogue& epilogue : kEpilogues) {
        c.has_bias = epilogue.has_bias;
        c.activation = epilogue.activation;
        const Plan plan = plan_matmul(DeviceClass::kCpu, c);
        EXPECT_EQ(plan.workspace_bytes, plain.workspace_bytes);
        ASSERT_EQ(plan.launches.size(), plain.launches.size());
        EXPECT_EQ(plan.launches.back().global, plain.launches.back().global);
      }
    }
  }
}

// bias -> activation -> residual, each as the pointwise op of its own.
TEST(Matmul, EpilogueEqualsThePointwiseOps) {
  for (DeviceClass device_class : device_classes()) {
    for (const std::array<int64_t, 3>& size : std::vector<std::array<int64_t, 3>>{{5, 3, 7},
                                                                                  {20, 37, 16},
                                                                                  {32, 64, 48},
                                                                                  {70, 10, 33},
                                                                                  {61, 131, 40},
                                                                                  {33, 1, 300},
                                                                                  {70, 10, 300},
                                                                                  {6, 35, 300},
                                                                                  {1, 37, 300}}) {
      for (int i = 0; i < kActivationCount; ++i) {
        MatmulConfig c{size[0], size[1], size[2], false, size[2] == 300};
        const ProductOperands o = make_operands(c);
        const TensorType type{DType::kF32, {c.m, c.n}};
        const auto pointwise = [&](const std::string& op, const std::vector<HostTensor>& inputs) {
          std::vector<TensorType> types;
          for (const HostTensor& input : inputs) types.push_back(input.type);
          return run_plan(plan_pointwise(device_class, op, types, type), inputs, type);
        };
        HostTensor expected = run_plan(plan_matmul(device_class, c), {o.a, o.b}, type);
        expected = pointwise("add", {expected, o.bias});
        if (i > 0) expected = pointwise(kActivations[i], {expected});
        expected = pointwise("add", {expected, o.y});
        c.has_bias = c.has_residual = true;
        c.activation = kActivations[i];
        const HostTensor got =
            run_plan(plan_matmul(device_class, c), {o.a, o.b, o.bias, o.y}, type);
        EXPECT_EQ(got.bytes, expected.bytes) << name_of(device_class, c);
      }
    }
  }
}

// A batch of products equals its products one by one, whatever repeats.
void expect_batch_exact(DeviceClass device_class, MatmulConfig c, const Shape& extents,
                        const std::vector<bool>& a_varies, const std::vector<bool>& b_varies) {
  int64_t a_count = 1, b_count = 1, c_count = 1;
  c.batch.resize(extents.size());
  for (size_t d = extents.size(); d-- > 0;) {
    c.batch[d] = {extents[d], a_varies[d] ? a_count * c.m * c.k : 0,
                  b_varies[d] ? b_count * c.k * c.n : 0, c_count * c.m * c.n};
    if (a_varies[d]) a_count *= extents[d];
    if (b_varies[d]) b_count *= extents[d];
    c_count *= extents[d];
  }
  const HostTensor a = random_f32({a_count, c.m, c.k}, 1), b = random_f32({b_count, c.k, c.n}, 2);
  const std::vector<float> a_values = a.as<float>(), b_values = b.as<float>();
  const std::vector<float> got =
      run_plan(plan_matmul(device_class, c), {a, b}, TensorType{DType::kF32, {c_count, c.m, c.n}})
          .as<float>();
  size_t wrong = 0;
  for_each_index(extents, [&](const std::vector<int64_t>& index) {
    int64_t a_at = 0, b_at = 0, c_at = 0;
    for (size_t d = 0; d < extents.size(); ++d) {
      a_at += index[d] * c.batch[d].a;
      b_at += index[d] * c.batch[d].b;
      c_at += index[d] * c.batch[d].c;
    }
    const ProductOperands o{
        f32({c.m * c.k}, {a_values.begin() + a_at, a_values.begin() + a_at + c.m * c.k}),
        f32({c.k * c.n}, {b_values.begin() + b_at, b_values.begin() + b_at + c.k * c.n}),
        f32({0}, {}), f32({0}, {})};
    const std::vector<float> expected = chain_of(c, o);
    wrong += std::memcmp(expected.data(), &got[c_at], expected.size() * sizeof(float)) != 0;
  });
  EXPECT_EQ(wrong, 0u) << name_of(device_class, c) << " batch " << to_string(extents);
}

TEST(Matmul, BatchesAreExact) {
  for (DeviceClass device_class : device_classes()) {
    for (const auto& [m, n, k] : kSmallSizes) {
      if (is_too_large(120 * m * n * (k + 1))) continue;
      for (int transposes = 0; transposes < 4; ++transposes) {
        const MatmulConfig c{m, n, k, (transposes & 1) != 0, transposes > 1};
        expect_batch_exact(device_class, c, {2, 3, 2}, {true, false, true}, {false, true, true});
        if (is_simulated()) continue;
        expect_batch_exact(device_class, c, {3}, {true}, {true});
        expect_batch_exact(device_class, c, {3}, {true}, {false});
        expect_batch_exact(device_class, c, {2}, {false}, {true});
        expect_batch_exact(device_class, c, {2, 5}, {true, false}, {false, true});
      }
    }
    if (is_simulated()) continue;
    expect_batch_exact(device_class, {196, 196, 32, false, true}, {4}, {true}, {true});
    expect_batch_exact(device_class, {196, 32, 196}, {4}, {true}, {true});
  }
}

TEST(Matmul, RefusesABatchOfFourPatterns) {
  MatmulConfig c{2, 2, 2, true};
  c.batch = {{2, 8, 0, 64}, {2, 0, 8, 32}, {2, 4, 0, 16}, {2, 0, 4, 8}};
  try {
    plan_matmul(DeviceClass::kCpu, c);
    FAIL();
  } catch (const device::Error& error) {
    EXPECT_EQ(error.code(), device::Code::kUnimplemented);
  }
}

// Heads of an attention: [token][head][channel] read and written without a transpose.
TEST(Matmul, StridedOperandsAreExact) {
  for (DeviceClass device_class : device_classes()) {
    constexpr int64_t kTokens = 21, kHeads = 3, kChannels = 16, kWidth = kHeads * kChannels;
    MatmulConfig c{kTokens, kChannels, kTokens};
    c.batch = {{kHeads, kTokens * kTokens, kChannels, kChannels}};
    c.b_strides = c.c_strides = MatmulStrides{kWidth, 1};
    const HostTensor a = random_f32({kHeads, kTokens, kTokens}, 1);
    const HostTensor b = random_f32({kTokens, kHeads, kChannels}, 2);
    const std::vector<float> x = a.as<float>(), y = b.as<float>();
    const std::vector<float> got =
        run_plan(plan_matmul(device_class, c), {a, b}, b.type).as<float>();
    size_t wrong = 0;
    for (int64_t i = 0; i < kTokens * kWidth; ++i) {
      const int64_t token = i / kWidth, head = i % kWidth / kChannels;
      float sum = 0;
      for (int64_t k = 0; k < kTokens; ++k) {
        sum = std::fma(x[(head * kTokens + token) * kTokens + k], y[k * kWidth + i % kWidth], sum);
      }
      wrong += sum != got[i];
    }
    EXPECT_EQ(wrong, 0u) << class_name(device_class);
  }
}

// A scale is for dense layers and 1x1 convolutions, whose rows fill tiles of the CPU's.
TEST(Matmul, RefusesAScaleWithoutAKernel) {
  MatmulConfig c{64, 64, 64};
  c.has_scale = true;
  for (DeviceClass device_class : device_classes()) {
    EXPECT_FALSE(takes_scale(device_class, c)) << "no bias";
    EXPECT_THROW(plan_matmul(device_class, c), device::Error);
  }
  c.has_bias = true;
  c.a_strides = c.c_strides = MatmulStrides{1, 64};
  EXPECT_TRUE(takes_scale(DeviceClass::kCpu, c));
  EXPECT_FALSE(takes_scale(DeviceClass::kGpu, c));
}

TEST(Matmul, RefusesAnUnknownActivation) {
  try {
    plan_matmul(DeviceClass::kCpu, {1, 1, 1, false, false, false, "swish"});
    FAIL();
  } catch (const device::Error& error) {
    EXPECT_EQ(error.code(), device::Code::kInvalidArgument);
    EXPECT_STREQ(error.what(),
                 "activation is \"swish\", expected one of none, relu, tanh, sigmoid, gelu, "
                 "gelu_tanh, silu, relu_grad");
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
