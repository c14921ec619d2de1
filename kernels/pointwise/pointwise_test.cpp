#include "kernels/pointwise/pointwise_reference.h"

namespace ballast::kernels::testing {
namespace {

void check_floats(DeviceClass c, const std::string& name, const HostTensor& a, const HostTensor& b,
                  const Shape& shape) {
  const PointwiseOp& op = *find_pointwise(name);
  const FloatRow& row = float_rows().at(name);
  std::vector<HostTensor> inputs = {a, b};
  inputs.resize(static_cast<size_t>(op.arity), a);
  std::vector<TensorType> types;
  for (const HostTensor& input : inputs) types.push_back(input.type);
  const bool is_bool = gives_bool(op);
  const TensorType type{is_bool ? DType::kBool : DType::kF32, shape};
  const auto x = repeated(a.as<float>(), a.type.shape, shape);
  const auto y = op.arity == 1 ? x : repeated(b.as<float>(), b.type.shape, shape);
  const Plan plan = plan_pointwise(c, name, types, type);
  EXPECT_EQ(plan.launches.size(), type.elements() > 0 ? 1 : 0);
  const HostTensor got = run_plan(plan, inputs, type);
  const std::vector<float> floats = is_bool ? std::vector<float>() : got.as<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    const float value = is_bool ? static_cast<float>(got.bytes[i]) : floats[i];
    EXPECT_TRUE(is_right(row, value, x[i], y[i]))
        << class_name(c) << " " << name << "(" << x[i] << ", " << y[i] << ") = " << value
        << ", expected " << row.reference(x[i], y[i]) << " at " << i << " of "
        << to_string(a.type.shape) << ", " << to_string(b.type.shape);
  }
}

// Numbers of all signs and a few sizes, every fourth a special one.
HostTensor mixed_f32(const Shape& shape, uint32_t seed) {
  const std::vector<float> special = special_values();
  std::vector<float> values = random_f32(shape, seed, -5, 5).as<float>();
  for (size_t i = seed % 4; i < values.size(); i += 4) {
    values[i] = special[(i / 4 * seed) % special.size()];
  }
  return f32(shape, values);
}

class PointwiseFloat : public ::testing::TestWithParam<std::string> {};

// All pairs of special values, which also covers NaN and infinity.
TEST_P(PointwiseFloat, MatchesDoubleOnSpecialValues) {
  std::vector<float> a, b;
  for (float x : special_values()) {
    for (float y : special_values()) a.push_back(x), b.push_back(y);
  }
  const Shape shape = {static_cast<int64_t>(a.size())};
  for (DeviceClass c : device_classes())
    check_floats(c, GetParam(), f32(shape, a), f32(shape, b), shape);
}

TEST_P(PointwiseFloat, MatchesDoubleOnEveryShape) {
  const bool is_unary = find_pointwise(GetParam())->arity == 1;
  if (is_simulated() && !is_chosen(GetParam())) GTEST_SKIP() << "all ops have the same loops";
  const auto check = [](const Broadcast& shapes) {
    const HostTensor a = mixed_f32(shapes.a, 5), b = mixed_f32(shapes.b, 7);
    for (DeviceClass c : device_classes()) {
      if (!has_rare_groups(c, shapes)) check_floats(c, GetParam(), a, b, shapes.result);
    }
  };
  for (const Broadcast& shapes : kDenseLines) {
    if (!is_left_out(shapes)) check(shapes);
  }
  for (const Broadcast& shapes : kRepeatedLines) {
    if (!is_unary && !is_simulated()) check(shapes);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, PointwiseFloat, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& [name, row] : float_rows()) names.push_back(name);
                           return names;
                         }()),
                         [](const auto& test) { return test.param; });

// Each op has a reference, so that a new row of the table cannot go untested.
TEST(Pointwise, EveryRowIsTested) {
  for (const PointwiseOp& op : pointwise_ops()) {
    const bool is_float = float_rows().count(op.name) > 0;
    const bool is_other = op.rule == PointwiseRule::kLogical || op.rule == PointwiseRule::kSelect ||
                          op.rule == PointwiseRule::kCast || op.rule == PointwiseRule::kInteger;
    EXPECT_TRUE(is_float || is_other) << op.name;
  }
}

// A sweep over the whole range of the functions that we compute ourselves.
TEST(Pointwise, ElementaryFunctionsAreAccurateEverywhere) {
  constexpr uint64_t kStep = 40009;
  if (is_too_large((uint64_t{1} << 32) / kStep)) GTEST_SKIP() << "too slow on the simulator";
  std::vector<float> values;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += kStep) {
    values.push_back(float_of(static_cast<uint32_t>(bits)));
  }
  const Shape shape = {static_cast<int64_t>(values.size())};
  const TensorType type{DType::kF32, shape};
  for (const char* name :
       {"exp",   "log",   "tanh", "sigmoid", "exp2", "expm1",     "log2", "log10",   "log1p",
        "sin",   "cos",   "tan",  "asin",    "acos", "atan",      "sinh", "cosh",    "asinh",
        "acosh", "atanh", "erf",  "erfc",    "gelu", "gelu_tanh", "silu", "softplus"}) {
    const FloatRow& row = float_rows().at(name);
    for (DeviceClass c : device_classes()) {
      const Plan plan = plan_pointwise(c, name, {type}, type);
      const auto got = run_plan(plan, {f32(shape, values)}, type).as<float>();
      double worst = 0;
      float where = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        const double want = row.reference(values[i], 0);
        if (std::fabs(got[i] - want) <= bound_of(row, values[i], 0)) continue;
        const double error = ulps(got[i], want);
        if (error > worst) worst = error, where = values[i];
      }
      EXPECT_LE(worst, row.max_ulps) << class_name(c) << " " << name << " at " << where;
      RecordProperty(class_name(c) + "_" + name + "_max_ulps", std::to_string(worst));
    }
  }
}

// The source of a function may differ between vectors and single elements.
TEST(Pointwise, ElementsHaveTheSameBitsInVectorsAndAlone) {
  std::vector<float> x = special_values();
  for (int i = 0; x.size() % 16 != 0 || i < 32; ++i) x.push_back(3.7f * std::sin(float(i)) - 1.0f);
  const int64_t n = static_cast<int64_t>(x.size());
  const TensorType whole{DType::kF32, {n}}, single{DType::kF32, {1}};
  for (DeviceClass c : device_classes()) {
    for (const char* op : {"exp", "exp2", "sigmoid", "silu", "gelu_tanh", "erfc", "log"}) {
      const auto together =
          run_plan(plan_pointwise(c, op, {whole}, whole), {f32({n}, x)}, whole).as<uint32_t>();
      for (int64_t i = 0; i < n; ++i) {
        const HostTensor alone =
            run_plan(plan_pointwise(c, op, {single}, single), {f32({1}, {x[i]})}, single);
        if (std::isnan(alone.as<float>()[0]) && std::isnan(float_of(together[i]))) continue;
        ASSERT_EQ(alone.as<uint32_t>()[0], together[i]) << op << " of " << x[i];
      }
    }
  }
}

TEST(Pointwise, Broadcasts) {
  const std::vector<Broadcast> cases = {
      {{}, {}, {}},
      {{1}, {1}, {1}},
      {{7}, {7}, {7}},
      {{16}, {16}, {16}},
      {{17}, {}, {17}},
      {{}, {48}, {48}},
      {{48}, {1}, {48}},
      {{5, 32}, {32}, {5, 32}},
      {{5, 32}, {5, 1}, {5, 32}},
      {{5, 1}, {1, 32}, {5, 32}},
      {{64, 10}, {10}, {64, 10}},
      {{13, 1}, {1, 11}, {13, 11}},
      {{3, 1, 16}, {1, 5, 1}, {3, 5, 16}},
      {{2, 3, 4, 5}, {3, 1, 5}, {2, 3, 4, 5}},
      {{2, 1, 3, 1, 2, 1, 16}, {1, 3, 1, 2, 1, 3, 1}, {2, 3, 3, 2, 2, 3, 16}},
      {{1, 3, 1, 2, 1, 5}, {2, 1, 2, 1, 3, 1}, {2, 3, 2, 2, 3, 5}},
      {{1}, {1}, {3, 5}},
      {{100003}, {100003}, {100003}},
      {{1 << 17}, {1}, {1 << 17}},
      {{4111}, {4111}, {4111}},  // from here on vectors, and what is left of lines
      {{4097}, {1}, {4097}},
      {{33, 131}, {131}, {33, 131}},
      {{33, 131}, {33, 1}, {33, 131}},
      {{3, 11, 143}, {3, 1, 143}, {3, 11, 143}},
      {{1500, 1511}, {1511}, {1500, 1511}},
      {{1500, 1511}, {1500, 1511}, {1500, 1511}},  // past the caches, on some machines
      {{0}, {1}, {0}},
      {{4, 0, 3}, {3}, {4, 0, 3}},
  };
  for (const Broadcast& shapes : cases) {
    if (is_too_large(elements(shapes.result))) continue;
    const HostTensor a = mixed_f32(shapes.a, 1), b = mixed_f32(shapes.b, 2);
    for (DeviceClass c : device_classes()) {
      check_floats(c, "sub", a, b, shapes.result);
      if (!is_simulated()) check_floats(c, "sqrt", a, b, shapes.result);
    }
  }
}

TEST(Pointwise, RunsInPlace) {
  for (int64_t n : {1, 15, 16, 1000, 4111, 30001, 1 << 16}) {
    if (is_too_large(n)) continue;
    const HostTensor a = random_f32({n}, 3), b = random_f32({n}, 4);
    const auto x = a.as<float>(), y = b.as<float>();
    const TensorType type{DType::kF32, {n}};
    for (DeviceClass c : device_classes()) {
      for (int target : {0, 1}) {
        const Plan plan = plan_pointwise(c, "mul", {type, type}, type);
        const auto got = run_plan(plan, {a, b}, type, target).as<float>();
        for (int64_t i = 0; i < n; ++i) ASSERT_EQ(got[i], x[i] * y[i]) << n << " at " << i;
      }
    }
  }
}

// Every pair of signs, sizes and kinds of exponents against C's pow, and the rules for special
// values.
TEST(Pointwise, PowerIsAccurateEverywhere) {
  constexpr uint32_t kBases = 1500, kExponents = 60;
  if (is_too_large(kBases * kExponents)) GTEST_SKIP() << "too slow on the simulator";
  std::mt19937 engine(3);
  std::vector<float> a, b;
  for (uint32_t i = 0; i < kBases; ++i) {
    const float base =
        i % 3 ? float_of(static_cast<uint32_t>(engine())) : 0.5f + static_cast<float>(i) / kBases;
    for (uint32_t k = 0; k < kExponents; ++k) {
      // Most of them such that the result is finite, many close to where it ends: there errors of
      // the logarithm count most.
      const double limit = 130 / std::max(1e-3, std::fabs(std::log2(std::fabs(double{base}))));
      const double unit = static_cast<double>(engine()) / 0x1p31 - 1;
      a.push_back(base);
      b.push_back(k % 4 == 0   ? float_of(static_cast<uint32_t>(engine()))
                  : k % 4 == 1 ? static_cast<float>(std::nearbyint(unit * limit))
                  : k % 4 == 2
                      ? static_cast<float>(unit * limit)
                      : static_cast<float>((0.95 + 0.05 * unit) * (k % 8 < 4 ? limit : -limit)));
    }
  }
  const std::vector<float> special = special_values();
  for (float x : special) {
    for (float y : {0.0f, -0.0f, 1.0f, -1.0f, 2.0f, 3.0f, -3.0f, 0.5f, -0.5f, 16777216.0f,
                    16777215.0f, INFINITY, -INFINITY, NAN}) {
      a.push_back(x), b.push_back(y);
    }
  }
  const Shape shape = {static_cast<int64_t>(a.size())};
  const TensorType type{DType::kF32, shape};
  for (DeviceClass c : device_classes()) {
    const auto got =
        run_plan(plan_pointwise(c, "pow", {type, type}, type), {f32(shape, a), f32(shape, b)}, type)
            .as<float>();
    double worst = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const double want = std::pow(static_cast<double>(a[i]), static_cast<double>(b[i]));
      const double error = ulps(got[i], want);
      worst = std::max(worst, error);
      ASSERT_LE(error, 4) << a[i] << " to the power of " << b[i] << " is " << got[i]
                          << ", expected " << want;
      ASSERT_TRUE(want != 0 || std::signbit(got[i]) == std::signbit(want)) << a[i] << " ^ " << b[i];
    }
    RecordProperty(class_name(c) + "_max_ulps", std::to_string(worst));
  }
}

TEST(Pointwise, PlanningTwiceGivesEqualLaunches) {
  const TensorType type{DType::kF32, {5, 32}}, row{DType::kF32, {32}};
  for (DeviceClass c : device_classes()) {
    EXPECT_TRUE(same_launches(plan_pointwise(c, "add", {type, row}, type),
                              plan_pointwise(c, "add", {type, row}, type)));
  }
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const device::Error& error) {
    return error.what();
  }
  return "";
}

TEST(Pointwise, RefusesWhatHasNoKernel) {
  const TensorType f{DType::kF32, {3}}, i{DType::kI32, {3}}, wide{DType::kF32, {4}};
  EXPECT_EQ(message_of([&] { plan_pointwise(DeviceClass::kCpu, "exp", {i}, i); }),
            "[exp] no kernel takes (i32) and gives i32");
  EXPECT_EQ(message_of([&] { plan_pointwise(DeviceClass::kCpu, "frobnicate", {f}, f); }),
            "[frobnicate] no such pointwise op");
  EXPECT_EQ(message_of([&] {
              plan_pointwise(DeviceClass::kCpu, "add", {f, wide}, wide);
            }),
            "[add] shape [3] does not broadcast to [4]");
}

}  // namespace
}  // namespace ballast::kernels::testing
