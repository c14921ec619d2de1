// Integers, logic, select and cast.
#include "kernels/pointwise/pointwise_ops.h"
#include "kernels/test_support.h"

#include <limits>
#include <map>

namespace ballast::kernels::testing {
namespace {

template <class T>
void check_integers(DType dtype) {
  const Shape shape = {35};
  std::vector<T> a, b;
  for (int i = 0; i < 35; ++i) {
    a.push_back(static_cast<T>(i * 7919 % 23 - 11)),
        b.push_back(static_cast<T>(i * 104729 % 17 - 8));
  }
  a[5] = std::numeric_limits<T>::min(), b[5] = static_cast<T>(-1);
  a[6] = std::numeric_limits<T>::max(), b[6] = 0;
  const auto wrapped = [](uint64_t x) { return static_cast<T>(x); };
  const int bits = static_cast<int>(sizeof(T)) * 8;
  const std::map<std::string, std::function<T(T, T)>> references = {
      {"neg", [&](T x, T) { return wrapped(0 - static_cast<uint64_t>(x)); }},
      {"abs", [&](T x, T) { return x < 0 ? wrapped(0 - static_cast<uint64_t>(x)) : x; }},
      {"sign", [](T x, T) { return static_cast<T>((x > 0) - (x < 0)); }},
      {"square",
       [&](T x, T) { return wrapped(static_cast<uint64_t>(x) * static_cast<uint64_t>(x)); }},
      {"add",
       [&](T x, T y) { return wrapped(static_cast<uint64_t>(x) + static_cast<uint64_t>(y)); }},
      {"sub",
       [&](T x, T y) { return wrapped(static_cast<uint64_t>(x) - static_cast<uint64_t>(y)); }},
      {"mul",
       [&](T x, T y) { return wrapped(static_cast<uint64_t>(x) * static_cast<uint64_t>(y)); }},
      {"maximum", [](T x, T y) { return std::max(x, y); }},
      {"minimum", [](T x, T y) { return std::min(x, y); }},
      {"floor_div",
       [&](T x, T y) {
         if (y == 0) return T{0};
         if (std::is_signed_v<T> && y == static_cast<T>(-1))
           return wrapped(0 - static_cast<uint64_t>(x));
         return static_cast<T>(x / y - (x % y != 0 && (x % y < 0) != (y < 0)));
       }},
      {"floor_mod",
       [](T x, T y) {
         if (y == 0 || (std::is_signed_v<T> && y == static_cast<T>(-1))) return T{0};
         const T rest = static_cast<T>(x % y);
         return static_cast<T>(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
       }},
      {"bitwise_and", [](T x, T y) { return static_cast<T>(x & y); }},
      {"bitwise_or", [](T x, T y) { return static_cast<T>(x | y); }},
      {"bitwise_xor", [](T x, T y) { return static_cast<T>(x ^ y); }},
      {"bitwise_not", [](T x, T) { return static_cast<T>(~x); }},
      {"left_shift",
       [&](T x, T y) {
         return y < 0 || y >= bits ? T{0} : wrapped(static_cast<uint64_t>(x) << y);
       }},
      {"right_shift",
       [&](T x, T y) { return static_cast<T>(y < 0 || y >= bits ? (x < 0 ? -1 : 0) : x >> y); }},
      {"identity", [](T x, T) { return x; }},
      {"equal", [](T x, T y) { return static_cast<T>(x == y); }},
      {"not_equal", [](T x, T y) { return static_cast<T>(x != y); }},
      {"less", [](T x, T y) { return static_cast<T>(x < y); }},
      {"less_equal", [](T x, T y) { return static_cast<T>(x <= y); }},
      {"greater", [](T x, T y) { return static_cast<T>(x > y); }},
      {"greater_equal", [](T x, T y) { return static_cast<T>(x >= y); }},
  };
  const TensorType type{dtype, shape};
  size_t tested = 0;
  for (const PointwiseOp& op : pointwise_ops()) {
    const bool is_bool = op.rule == PointwiseRule::kCompare;
    const TensorType out{is_bool ? DType::kBool : dtype, shape};
    const std::vector<DType> dtypes(static_cast<size_t>(op.arity), dtype);
    if (op.rule == PointwiseRule::kCast || !accepts(op, dtypes, out.dtype)) continue;
    ASSERT_EQ(references.count(op.name), 1u) << op.name;
    ++tested;
    std::vector<HostTensor> inputs = {HostTensor(dtype, shape, a)};
    if (op.arity == 2) inputs.emplace_back(dtype, shape, b);
    for (DeviceClass c : kClasses) {
      const Plan plan =
          plan_pointwise(c, op.name, std::vector<TensorType>(inputs.size(), type), out);
      const HostTensor got = run_plan(plan, inputs, out);
      for (size_t i = 0; i < a.size(); ++i) {
        const T value = is_bool ? static_cast<T>(got.bytes[i]) : got.as<T>()[i];
        EXPECT_EQ(value, references.at(op.name)(a[i], b[i]))
            << op.name << "(" << +a[i] << ", " << +b[i] << ") of " << name_of(dtype);
      }
    }
  }
  EXPECT_EQ(tested, references.size());
}

TEST(Pointwise, Integers) {
  check_integers<int32_t>(DType::kI32);
  check_integers<int64_t>(DType::kI64);
  check_integers<uint8_t>(DType::kU8);
}

TEST(Pointwise, LogicalOps) {
  for (int64_t n : {4, 16, 37}) {
    std::vector<uint8_t> a, b;
    for (int64_t i = 0; i < n; ++i) a.push_back(i & 1), b.push_back(i >> 1 & 1);
    const TensorType type{DType::kBool, {n}};
    const HostTensor ta(DType::kBool, {n}, a), tb(DType::kBool, {n}, b);
    for (DeviceClass c : kClasses) {
      const auto both =
          run_plan(plan_pointwise(c, "logical_and", {type, type}, type), {ta, tb}, type);
      const auto any =
          run_plan(plan_pointwise(c, "logical_or", {type, type}, type), {ta, tb}, type);
      const auto no = run_plan(plan_pointwise(c, "logical_not", {type}, type), {ta}, type);
      const auto one =
          run_plan(plan_pointwise(c, "logical_xor", {type, type}, type), {ta, tb}, type);
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(one.bytes[i], a[i] != b[i]);
        EXPECT_EQ(both.bytes[i], a[i] && b[i]);
        EXPECT_EQ(any.bytes[i], a[i] || b[i]);
        EXPECT_EQ(no.bytes[i], !a[i]);
      }
    }
  }
}

TEST(Pointwise, Selects) {
  for (int64_t n : {1, 16, 33, 64}) {
    std::vector<uint8_t> choice;
    for (int64_t i = 0; i < n; ++i) choice.push_back(i % 3 == 0);
    const HostTensor condition(DType::kBool, {n}, choice);
    const HostTensor x = random_f32({n}, 5), y = random_f32({}, 6);
    for (DeviceClass c : kClasses) {
      const Plan plan = plan_pointwise(c, "select", {condition.type, x.type, y.type}, x.type);
      const auto got = run_plan(plan, {condition, x, y}, x.type).as<float>();
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(got[i], choice[i] ? x.as<float>()[i] : y.as<float>()[0]);
      }
    }
  }
}

template <class T>
HostTensor typed(DType dtype, const std::vector<double>& values) {
  std::vector<T> converted;
  for (double v : values) converted.push_back(static_cast<T>(v));
  return {dtype, {static_cast<int64_t>(values.size())}, converted};
}

HostTensor typed(DType dtype, const std::vector<double>& values) {
  switch (dtype) {
    case DType::kF32:
      return typed<float>(dtype, values);
    case DType::kI32:
      return typed<int32_t>(dtype, values);
    case DType::kI64:
      return typed<int64_t>(dtype, values);
    case DType::kU8:
      return typed<uint8_t>(dtype, values);
    default: {
      std::vector<double> truth;
      for (double v : values) truth.push_back(v != 0);
      return typed<uint8_t>(DType::kBool, truth);
    }
  }
}

TEST(Pointwise, CastsAllPairs) {
  const std::vector<DType> types = {DType::kF32, DType::kI32, DType::kI64, DType::kU8,
                                    DType::kBool};
  for (int count : {5, 16}) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back(i * 9);
    values[1] = 1;
    for (DType from : types) {
      for (DType to : types) {
        // What the source holds, so that bool sources give 0 and 1.
        std::vector<double> held = values;
        if (from == DType::kBool) {
          for (double& v : held) v = v != 0;
        }
        const HostTensor input = typed(from, values), want = typed(to, held);
        for (DeviceClass c : kClasses) {
          const Plan plan = plan_pointwise(c, "cast", {input.type}, want.type);
          EXPECT_EQ(run_plan(plan, {input}, want.type).bytes, want.bytes)
              << name_of(from) << " to " << name_of(to);
        }
      }
    }
  }
  const HostTensor halves = f32({4}, {2.7f, -2.7f, -0.5f, std::nanf("")});
  const TensorType ints{DType::kI32, {3}}, bools{DType::kBool, {4}};
  const HostTensor three = f32({3}, {2.7f, -2.7f, -0.5f});
  const auto cut =
      run_plan(plan_pointwise(DeviceClass::kCpu, "cast", {three.type}, ints), {three}, ints);
  EXPECT_EQ(cut.as<int32_t>(), (std::vector<int32_t>{2, -2, 0}));
  const auto truth =
      run_plan(plan_pointwise(DeviceClass::kCpu, "cast", {halves.type}, bools), {halves}, bools);
  EXPECT_EQ(truth.bytes, (std::vector<uint8_t>{1, 1, 1, 1}));
}

}  // namespace
}  // namespace ballast::kernels::testing
