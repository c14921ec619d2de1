// Integers, logic, select and cast.
#include "kernels/pointwise/pointwise_reference.h"

namespace ballast::kernels::testing {
namespace {

// What an op of two integers gives; unary ops ignore the second.
template <class T>
const std::map<std::string, std::function<T(T, T)>>& integer_rows() {
  const auto wrapped = [](uint64_t x) { return static_cast<T>(x); };
  const int bits = static_cast<int>(sizeof(T)) * 8;
  static const std::map<std::string, std::function<T(T, T)>> rows = {
      {"neg", [wrapped](T x, T) { return wrapped(0 - static_cast<uint64_t>(x)); }},
      {"abs", [wrapped](T x, T) { return x < 0 ? wrapped(0 - static_cast<uint64_t>(x)) : x; }},
      {"sign", [](T x, T) { return static_cast<T>((x > 0) - (x < 0)); }},
      {"square",
       [wrapped](T x, T) { return wrapped(static_cast<uint64_t>(x) * static_cast<uint64_t>(x)); }},
      {"add",
       [wrapped](T x, T y) {
         return wrapped(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
       }},
      {"sub",
       [wrapped](T x, T y) {
         return wrapped(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
       }},
      {"mul",
       [wrapped](T x, T y) {
         return wrapped(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
       }},
      {"pow",
       [wrapped](T x, T y) {
         const bool is_unit = x == 1 || x == static_cast<T>(-1);
         if (y < 0) return is_unit ? (y % 2 != 0 ? x : T{1}) : T{0};
         uint64_t power = 1;
         for (int bit = bits; bit-- > 0;) {
           power *= power;
           if (y >> bit & 1) power *= static_cast<uint64_t>(x);
         }
         return wrapped(power);
       }},
      {"maximum", [](T x, T y) { return std::max(x, y); }},
      {"minimum", [](T x, T y) { return std::min(x, y); }},
      {"floor_div",
       [wrapped](T x, T y) {
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
       [wrapped](T x, T y) {
         return y < 0 || y >= bits ? T{0} : wrapped(static_cast<uint64_t>(x) << y);
       }},
      {"right_shift",
       [](T x, T y) { return static_cast<T>(y < 0 || y >= bits ? (x < 0 ? -1 : 0) : x >> y); }},
      {"identity", [](T x, T) { return x; }},
      {"equal", [](T x, T y) { return static_cast<T>(x == y); }},
      {"not_equal", [](T x, T y) { return static_cast<T>(x != y); }},
      {"less", [](T x, T y) { return static_cast<T>(x < y); }},
      {"less_equal", [](T x, T y) { return static_cast<T>(x <= y); }},
      {"greater", [](T x, T y) { return static_cast<T>(x > y); }},
      {"greater_equal", [](T x, T y) { return static_cast<T>(x >= y); }},
  };
  return rows;
}

// Small numbers of both signs, every third one of any size or at an end of the range.
template <class T>
HostTensor mixed_integers(DType dtype, const Shape& shape, uint32_t seed) {
  using L = std::numeric_limits<T>;
  const T ends[] = {L::min(), L::max(), T{0}, static_cast<T>(-1), static_cast<T>(L::max() / 3)};
  std::mt19937_64 engine(seed);
  std::vector<T> values(elements(shape));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t drawn = engine();
    values[i] = static_cast<T>(i % 3 != 0   ? drawn % 23 - 11
                               : i % 6 == 0 ? drawn
                                            : static_cast<uint64_t>(ends[drawn % 5]));
  }
  return {dtype, shape, values};
}

template <class T>
void check_integer_op(DeviceClass c, const PointwiseOp& op, DType dtype, const Broadcast& shapes) {
  const HostTensor a = mixed_integers<T>(dtype, shapes.a, 1),
                   b = mixed_integers<T>(dtype, shapes.b, 2);
  const bool is_bool = gives_bool(op);
  const TensorType type{is_bool ? DType::kBool : dtype, shapes.result};
  const std::vector<HostTensor> inputs = op.arity == 1 ? std::vector{a} : std::vector{a, b};
  std::vector<TensorType> types;
  for (const HostTensor& input : inputs) types.push_back(input.type);
  const HostTensor got = run_plan(plan_pointwise(c, op.name, types, type), inputs, type);
  const auto values = is_bool ? std::vector<T>(got.bytes.begin(), got.bytes.end()) : got.as<T>();
  const auto x = repeated(a.as<T>(), shapes.a, shapes.result);
  const auto y = op.arity == 1 ? x : repeated(b.as<T>(), shapes.b, shapes.result);
  const std::function<T(T, T)>& reference = integer_rows<T>().at(op.name);
  for (size_t i = 0; i < x.size(); ++i) {
    const T want = reference(x[i], y[i]);
    if (values[i] == want) continue;
    ADD_FAILURE() << class_name(c) << " " << op.name << "(" << +x[i] << ", " << +y[i] << ") of "
                  << name_of(dtype) << " at " << i << " of " << to_string(shapes.result) << " is "
                  << +values[i] << ", not " << +want;
  }
}

template <class T>
void check_integers(DType dtype) {
  size_t tested = 0;
  for (const PointwiseOp& op : pointwise_ops()) {
    const DType result = op.rule == PointwiseRule::kCompare ? DType::kBool : dtype;
    const std::vector<DType> dtypes(static_cast<size_t>(op.arity), dtype);
    if (op.rule == PointwiseRule::kCast || !accepts(op, dtypes, result)) continue;
    ASSERT_EQ(integer_rows<T>().count(op.name), 1u) << op.name;
    ++tested;
    if (is_simulated() && !is_chosen(op.name)) continue;
    const auto check = [&](const Broadcast& shapes) {
      for (DeviceClass c : device_classes()) {
        if (!has_rare_groups(c, shapes)) check_integer_op<T>(c, op, dtype, shapes);
      }
    };
    for (const Broadcast& shapes : kDenseLines) {
      const int64_t n = elements(shapes.result);
      if (!is_left_out(shapes) && (n < 4096 || is_chosen(op.name))) check(shapes);
    }
    for (const Broadcast& shapes : kRepeatedLines) {
      if (is_chosen(op.name) && !is_simulated()) check(shapes);
    }
  }
  EXPECT_EQ(tested, integer_rows<T>().size());
}

TEST(Pointwise, Integers) {
  check_integers<int32_t>(DType::kI32);
  check_integers<int64_t>(DType::kI64);
  check_integers<uint8_t>(DType::kU8);
}

// f(shapes) for all the pairs of both tables that are not too large.
template <class F>
void for_each_broadcast(const F& f) {
  for (const Broadcast& shapes : kDenseLines) {
    if (!is_left_out(shapes)) f(shapes);
  }
  for (const Broadcast& shapes : kRepeatedLines) {
    if (!is_left_out(shapes)) f(shapes);
  }
}

HostTensor random_bytes(DType dtype, const Shape& shape, uint32_t seed) {
  HostTensor tensor(TensorType{dtype, shape});
  std::mt19937 engine(seed);
  for (uint8_t& byte : tensor.bytes) {
    byte = static_cast<uint8_t>(dtype == DType::kBool ? engine() & 1 : engine());
  }
  return tensor;
}

TEST(Pointwise, LogicalOps) {
  const std::map<std::string, std::function<bool(bool, bool)>> rows = {
      {"logical_and", [](bool x, bool y) { return x && y; }},
      {"logical_or", [](bool x, bool y) { return x || y; }},
      {"logical_xor", [](bool x, bool y) { return x != y; }},
      {"logical_not", [](bool x, bool) { return !x; }}};
  for_each_broadcast([&](const Broadcast& shapes) {
    const HostTensor a = random_bytes(DType::kBool, shapes.a, 3),
                     b = random_bytes(DType::kBool, shapes.b, 4);
    const TensorType type{DType::kBool, shapes.result};
    const auto x = repeated(a.bytes, shapes.a, shapes.result),
               y = repeated(b.bytes, shapes.b, shapes.result);
    for (const auto& [name, reference] : rows) {
      std::vector<uint8_t> want;
      for (size_t i = 0; i < x.size(); ++i) want.push_back(reference(x[i] != 0, y[i] != 0));
      const bool is_unary = name == "logical_not";
      const std::vector<HostTensor> inputs = is_unary ? std::vector{a} : std::vector{a, b};
      const std::vector<TensorType> types =
          is_unary ? std::vector{a.type} : std::vector{a.type, b.type};
      for (DeviceClass c : device_classes()) {
        if (has_rare_groups(c, shapes)) continue;
        EXPECT_EQ(run_plan(plan_pointwise(c, name, types, type), inputs, type).bytes, want)
            << class_name(c) << " " << name << " " << to_string(shapes.result);
      }
    }
  });
}

// Of any bits, the conditions of the first shape, one choice of the second, the other of a third.
void check_select(DType dtype, const Broadcast& shapes, const Shape& other) {
  const HostTensor condition = random_bytes(DType::kBool, shapes.a, 5);
  const HostTensor x = random_bytes(dtype, shapes.b, 6), y = random_bytes(dtype, other, 7);
  const TensorType type{dtype, shapes.result};
  const size_t size = size_of(dtype);
  std::vector<uint8_t> want;
  for_each_index(shapes.result, [&](const std::vector<int64_t>& index) {
    const bool is_first = condition.bytes[broadcast_offset(shapes.a, index)] != 0;
    const int64_t at = broadcast_offset(is_first ? shapes.b : other, index);
    const auto from = (is_first ? x : y).bytes.begin() + at * static_cast<int64_t>(size);
    want.insert(want.end(), from, from + static_cast<int64_t>(size));
  });
  for (DeviceClass c : device_classes()) {
    if (has_rare_groups(c, shapes)) continue;
    const Plan plan = plan_pointwise(c, "select", {condition.type, x.type, y.type}, type);
    EXPECT_EQ(run_plan(plan, {condition, x, y}, type).bytes, want)
        << class_name(c) << " " << name_of(dtype) << " " << to_string(shapes.a) << " "
        << to_string(shapes.b) << " " << to_string(other);
  }
}

TEST(Pointwise, Selects) {
  for (DType dtype : {DType::kF32, DType::kBool, DType::kBF16, DType::kI64, DType::kU8, DType::kF16,
                      DType::kI32}) {
    for_each_broadcast([&](const Broadcast& shapes) {
      // As a chain, which has more loops, a narrow NaN becomes quiet.
      if (size_of(dtype) == 2 && shapes.result.size() == 6) return;
      check_select(dtype, shapes, shapes.result);
      const bool is_repeated = shapes.result == Shape{3, 144} || shapes.result == Shape{1, 137};
      if (is_repeated) check_select(dtype, shapes, {});
    });
  }
}

const double kFloats[] = {0,
                          -0.0,
                          1,
                          -1,
                          0.5,
                          -0.5,
                          2.7,
                          -2.7,
                          254.9,
                          255,
                          255.5,
                          256,
                          300,
                          -1.5,
                          1e30,
                          -1e30,
                          INFINITY,
                          -INFINITY,
                          NAN,
                          0x1p-149,
                          -0x1p-149,
                          3e9,
                          -3e9,
                          0x1p31,
                          -0x1p31,
                          0x1p63,
                          -0x1p63,
                          1e19,
                          -1e19,
                          0x1.fffffep30,
                          -0x1.000002p31,
                          0x1.fffffep62,
                          -0x1.000002p63,
                          8388607.5,
                          0x1p53,
                          5e12,
                          -5e12};
const int64_t kIntegers[] = {0,
                             1,
                             -1,
                             127,
                             128,
                             200,
                             255,
                             256,
                             257,
                             -128,
                             -255,
                             -256,
                             -257,
                             65535,
                             65536,
                             16777217,
                             16777219,
                             -16777219,
                             33554431,
                             0x7fffffff,
                             -0x80000000LL,
                             0x80000000LL,
                             0xffffffffLL,
                             0x100000000LL,
                             0x100000005LL,
                             -0x100000001LL,
                             0x123456789abLL,
                             (1LL << 53) + 1,
                             (1LL << 62) + (1LL << 38),
                             (1LL << 40) + (1LL << 16) + 1,
                             std::numeric_limits<int64_t>::max(),
                             std::numeric_limits<int64_t>::min()};

// `count` of the numbers that are listed for the type, over and over.
template <class T, class Given>
std::vector<T> numbers_of(const Given& given, int64_t count) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<T>(given[static_cast<size_t>(i) % std::size(given)]));
  }
  return values;
}
template <class T>
std::vector<T> numbers_of(int64_t count) {
  if constexpr (std::is_same_v<T, bool>) return numbers_of<T>(std::vector{0, 1, 1}, count);
  if constexpr (std::is_same_v<T, float>) return numbers_of<T>(kFloats, count);
  return numbers_of<T>(kIntegers, count);
}

// What docs/ops.md promises.
template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<To, bool>) return value != 0;
  if constexpr (std::is_same_v<From, float> && std::is_integral_v<To>) return saturated<To>(value);
  return static_cast<To>(value);
}

template <class To, class From>
void check_cast(DType from, DType to) {
  for_each_broadcast([&](const Broadcast& shapes) {
    // What all casts have in common, one shows.
    if (elements(shapes.result) > 4096 && (from != DType::kI32 || to != DType::kF32)) return;
    const auto given = numbers_of<From>(elements(shapes.a));
    // Stored, a bool is a byte.
    using Stored = std::conditional_t<std::is_same_v<From, bool>, uint8_t, From>;
    using Result = std::conditional_t<std::is_same_v<To, bool>, uint8_t, To>;
    const HostTensor input(from, shapes.a, std::vector<Stored>(given.begin(), given.end()));
    std::vector<Result> want;
    for (From value : given) want.push_back(converted<To>(value));
    want = repeated(want, shapes.a, shapes.result);
    const TensorType type{to, shapes.result};
    for (DeviceClass c : device_classes()) {
      if (has_rare_groups(c, shapes)) continue;
      EXPECT_EQ(run_plan(plan_pointwise(c, "cast", {input.type}, type), {input}, type)
                    .template as<Result>(),
                want)
          << class_name(c) << " " << name_of(from) << " to " << name_of(to) << " "
          << to_string(shapes.result);
    }
  });
}

template <class From>
void check_casts(DType from) {
  check_cast<int32_t, From>(from, DType::kI32);
  check_cast<int64_t, From>(from, DType::kI64);
  check_cast<uint8_t, From>(from, DType::kU8);
  check_cast<bool, From>(from, DType::kBool);
  if (from != DType::kF32) check_cast<float, From>(from, DType::kF32);  // NaN differs from itself
}

TEST(Pointwise, CastsAllPairs) {
  check_casts<float>(DType::kF32);
  check_casts<int32_t>(DType::kI32);
  check_casts<int64_t>(DType::kI64);
  check_casts<uint8_t>(DType::kU8);
  check_casts<bool>(DType::kBool);
}

}  // namespace
}  // namespace ballast::kernels::testing
