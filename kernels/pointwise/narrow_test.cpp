// bf16 and f16.
#include "kernels/pointwise/pointwise_reference.h"

namespace ballast::kernels::testing {
namespace {

// bf16 and f16 by plain arithmetic on the value, independent of the bit tricks of the kernels.
struct NarrowFormat {
  DType dtype;
  int digits, lowest;  // of the significand; exponent of the smallest normal number
  double largest;

  double decode(uint16_t bits) const {
    const int fraction_bits = digits - 1, top = 0x7fff >> fraction_bits;
    const int exponent = (bits & 0x7fff) >> fraction_bits;
    const int fraction = bits & ((1 << fraction_bits) - 1);
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == top) return fraction ? std::nan("") : sign * INFINITY;
    const int units = exponent ? fraction + (1 << fraction_bits) : fraction;
    return sign * std::ldexp(units, lowest - fraction_bits + std::max(exponent, 1) - 1);
  }
  // The nearest value, ties to the even fraction.
  double round(double x) const {
    if (!std::isfinite(x) || x == 0) return x;
    const int unit = std::max(std::ilogb(x), lowest) - (digits - 1);
    const double nearest = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
    return std::fabs(nearest) > largest ? std::copysign(INFINITY, x) : nearest;
  }

  // Any bits, or every other one a number whose size is near 1.
  HostTensor numbers(const Shape& shape, uint32_t seed) const {
    const int fraction_bits = digits - 1, bias = 0x7fff >> fraction_bits >> 1;
    std::mt19937 engine(seed);
    std::vector<uint16_t> bits(elements(shape));
    for (size_t i = 0; i < bits.size(); ++i) {
      bits[i] = static_cast<uint16_t>(engine());
      const int exponent = bias - 3 + static_cast<int>(engine() % 5);
      const int rest = bits[i] & (0x8000 | ((1 << fraction_bits) - 1));
      if (i % 2 == 0) bits[i] = static_cast<uint16_t>(rest | exponent << fraction_bits);
    }
    return {dtype, shape, bits};
  }
  std::vector<double> decoded(const HostTensor& tensor) const {
    std::vector<double> values;
    for (uint16_t bits : tensor.as<uint16_t>()) values.push_back(decode(bits));
    return values;
  }

  // Whether the result is that of f32, which may be off by the row's bounds, rounded once.
  bool is_right(const FloatRow& row, double got, double a, double b) const {
    const double want = row.reference(a, b);
    if (std::isnan(want)) return std::isnan(got);
    const auto nearest = static_cast<float>(want);
    double error = bound_of(row, a, b);
    if (std::isfinite(nearest) && row.max_ulps > 0) {
      const float above = std::nextafterf(std::fabs(nearest), INFINITY);
      error += row.max_ulps * (double{above} - std::fabs(nearest));
    }
    if (got == 0 && want == 0 && row.signs_zeros && std::signbit(got) != std::signbit(want)) {
      return false;
    }
    return round(nearest - error) <= got && got <= round(nearest + error);
  }
};
const NarrowFormat kNarrowFormats[] = {{DType::kBF16, 8, -126, std::ldexp(255, 120)},
                                       {DType::kF16, 11, -14, 65504}};

TEST(Narrow, WidensEveryValueExactly) {
  std::vector<uint16_t> all;
  for (uint32_t bits = 0; bits < 65536; bits += is_too_large(65536) ? 37 : 1) {
    all.push_back(static_cast<uint16_t>(bits));
  }
  const Shape shape = {static_cast<int64_t>(all.size())};
  for (const NarrowFormat& format : kNarrowFormats) {
    const TensorType narrow{format.dtype, shape}, wide{DType::kF32, shape};
    const HostTensor input(format.dtype, shape, all);
    for (DeviceClass c : device_classes()) {
      const HostTensor floats = run_plan(plan_pointwise(c, "cast", {narrow}, wide), {input}, wide);
      const std::vector<float> got = floats.as<float>();
      for (size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(ulps(got[i], format.decode(all[i])), 0) << name_of(format.dtype) << " " << all[i];
      }
      // And back; a NaN comes back quiet.
      const HostTensor back = run_plan(plan_pointwise(c, "cast", {wide}, narrow), {floats}, narrow);
      const std::vector<uint16_t> bits = back.as<uint16_t>();
      for (size_t i = 0; i < all.size(); ++i) {
        const bool is_nan = std::isnan(format.decode(all[i]));
        const int quiet = is_nan ? 1 << (format.digits - 2) : 0;
        ASSERT_EQ(bits[i], all[i] | quiet) << name_of(format.dtype);
      }
    }
  }
}

// All of f32 in steps, and the neighbours of every boundary between two narrow values.
TEST(Narrow, RoundsToNearestEven) {
  std::vector<float> values;
  const uint64_t step = is_too_large(65536) ? 40000003 : 40009;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += step) {
    values.push_back(float_of(static_cast<uint32_t>(bits)));
  }
  for (uint32_t i = 0; i < 65536; i += is_too_large(65536) ? 1021 : 1) {
    for (uint32_t low : {0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      values.push_back(float_of(i << 16 | low));
    for (uint32_t low : {0x0fffu, 0x1000u, 0x1001u}) {  // f16's, of the exponents that it has
      values.push_back(float_of((i << 13 | low) + (i & 0x8000 ? 0x80000000u : 0u) + 0x32000000u));
    }
  }
  const Shape shape = {static_cast<int64_t>(values.size())};
  const HostTensor input = f32(shape, values);
  for (const NarrowFormat& format : kNarrowFormats) {
    const TensorType narrow{format.dtype, shape};
    for (DeviceClass c : device_classes()) {
      const auto got =
          run_plan(plan_pointwise(c, "cast", {input.type}, narrow), {input}, narrow).as<uint16_t>();
      for (size_t i = 0; i < values.size(); ++i) {
        const double want = format.round(values[i]), value = format.decode(got[i]);
        ASSERT_TRUE(value == want || (std::isnan(value) && std::isnan(want)))
            << name_of(format.dtype) << "(" << values[i] << ") is " << value << ", expected "
            << want;
        ASSERT_EQ(got[i] >> 15, std::signbit(values[i])) << values[i];
      }
    }
  }
}

// A narrow op is the f32 op on the widened values, rounded once.
TEST(Narrow, OpsComputeInF32) {
  if (is_simulated()) GTEST_SKIP() << "too slow on the simulator";
  const std::vector<float> values = special_values();
  std::vector<float> a, b;
  for (float x : values) {
    for (float y : values) a.push_back(x), b.push_back(y);
  }
  const Shape shape = {static_cast<int64_t>(a.size())};
  const TensorType wide{DType::kF32, shape};
  for (const NarrowFormat& format : kNarrowFormats) {
    const TensorType narrow{format.dtype, shape};
    const auto convert = [&](const HostTensor& from, const TensorType& to) {
      return run_plan(plan_pointwise(DeviceClass::kCpu, "cast", {from.type}, to), {from}, to);
    };
    const HostTensor narrow_a = convert(f32(shape, a), narrow),
                     narrow_b = convert(f32(shape, b), narrow);
    const HostTensor wide_a = convert(narrow_a, wide), wide_b = convert(narrow_b, wide);
    for (const PointwiseOp& op : pointwise_ops()) {
      const std::vector<DType> floats(static_cast<size_t>(op.arity), DType::kF32);
      const bool is_bool = accepts(op, floats, DType::kBool);
      if (op.rule == PointwiseRule::kCast) continue;
      if (!is_bool && !accepts(op, floats, DType::kF32)) continue;
      const std::string name = op.name;
      // f16 runs between casts, which a few ops show.
      if (format.dtype == DType::kF16 && !is_chosen(name)) continue;
      const TensorType result = is_bool ? TensorType{DType::kBool, shape} : narrow;
      const TensorType wide_result = is_bool ? result : wide;
      const size_t count = static_cast<size_t>(op.arity);
      for (DeviceClass c : device_classes()) {
        std::vector<HostTensor> in = {narrow_a, narrow_b}, wide_in = {wide_a, wide_b};
        in.resize(count, narrow_a), wide_in.resize(count, wide_a);
        const auto plan = plan_pointwise(c, name, std::vector<TensorType>(count, narrow), result);
        if (format.dtype == DType::kBF16) {
          EXPECT_EQ(plan.launches.size(), 1) << name;
        }
        const HostTensor got = run_plan(plan, in, result);
        const HostTensor exact =
            run_plan(plan_pointwise(c, name, std::vector<TensorType>(count, wide), wide_result),
                     wide_in, wide_result);
        if (is_bool) {
          EXPECT_EQ(got.bytes, exact.bytes) << class_name(c) << " " << name;
          continue;
        }
        const auto bits = got.as<uint16_t>(), want = convert(exact, narrow).as<uint16_t>();
        for (size_t i = 0; i < bits.size(); ++i) {  // a NaN is a NaN
          const bool are_nan =
              std::isnan(format.decode(bits[i])) && std::isnan(format.decode(want[i]));
          ASSERT_TRUE(bits[i] == want[i] || are_nan)
              << class_name(c) << " " << name_of(format.dtype) << " " << name << "(" << a[i] << ", "
              << b[i] << ") is " << bits[i] << ", expected " << want[i];
        }
      }
    }
  }
}

void check_narrow(DeviceClass c, const NarrowFormat& format, const std::string& name,
                  const Broadcast& shapes) {
  const PointwiseOp& op = *find_pointwise(name);
  const FloatRow& row = float_rows().at(name);
  const HostTensor a = format.numbers(shapes.a, 5), b = format.numbers(shapes.b, 6);
  const std::vector<HostTensor> inputs = op.arity == 1 ? std::vector{a} : std::vector{a, b};
  std::vector<TensorType> types;
  for (const HostTensor& input : inputs) types.push_back(input.type);
  const bool is_bool = gives_bool(op);
  const TensorType type{is_bool ? DType::kBool : format.dtype, shapes.result};
  const HostTensor result = run_plan(plan_pointwise(c, name, types, type), inputs, type);
  const auto got = is_bool ? std::vector<double>(result.bytes.begin(), result.bytes.end())
                           : format.decoded(result);
  const auto x = repeated(format.decoded(a), shapes.a, shapes.result);
  const auto y = op.arity == 1 ? x : repeated(format.decoded(b), shapes.b, shapes.result);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_TRUE(format.is_right(row, got[i], x[i], y[i]))
        << class_name(c) << " " << name_of(format.dtype) << " " << name << "(" << x[i] << ", "
        << y[i] << ") = " << got[i] << ", expected " << row.reference(x[i], y[i]) << " at " << i
        << " of " << to_string(shapes.result);
  }
}

TEST(Narrow, OpsMatchDoubleOnEveryShape) {
  for (const NarrowFormat& format : kNarrowFormats) {
    for (const auto& [name, row] : float_rows()) {
      if ((format.dtype == DType::kF16 || is_simulated()) && !is_chosen(name)) continue;
      const auto check = [&, &op = name](const Broadcast& shapes) {
        for (DeviceClass c : device_classes()) {
          if (!has_rare_groups(c, shapes)) check_narrow(c, format, op, shapes);
        }
      };
      for (const Broadcast& shapes : kDenseLines) {
        const int64_t n = elements(shapes.result);
        if (!is_left_out(shapes) && (n < 4096 || is_chosen(name))) check(shapes);
      }
      for (const Broadcast& shapes : kRepeatedLines) {
        if (is_chosen(name) && !is_simulated()) check(shapes);
      }
    }
  }
}

// To integers and bool, and back; every value, and integers that f32 and the format round.
template <class T>
void check_narrow_casts(const NarrowFormat& format, DType dtype) {
  std::vector<uint16_t> all;
  std::vector<T> saturate, whole;
  std::vector<double> rounded;
  for (uint32_t bits = 0; bits < 65536; bits += is_simulated() ? 4099 : 17) {
    const double value = format.decode(static_cast<uint16_t>(bits));
    all.push_back(static_cast<uint16_t>(bits));
    saturate.push_back(dtype == DType::kBool ? static_cast<T>(value != 0) : saturated<T>(value));
    const uint64_t number = uint64_t{bits} * 0x9e3779b97f4a7c15 >> bits % 64;
    whole.push_back(static_cast<T>(dtype == DType::kBool ? number & 1 : number));
    rounded.push_back(format.round(static_cast<float>(whole.back())));
  }
  const Shape shape = {static_cast<int64_t>(all.size())};
  const TensorType narrow{format.dtype, shape}, wide{dtype, shape};
  for (DeviceClass c : device_classes()) {
    EXPECT_EQ(run_plan(plan_pointwise(c, "cast", {narrow}, wide),
                       {HostTensor(format.dtype, shape, all)}, wide)
                  .template as<T>(),
              saturate)
        << class_name(c) << " " << name_of(format.dtype) << " to " << name_of(dtype);
    const HostTensor back = run_plan(plan_pointwise(c, "cast", {wide}, narrow),
                                     {HostTensor(dtype, shape, whole)}, narrow);
    EXPECT_EQ(format.decoded(back), rounded)
        << class_name(c) << " " << name_of(dtype) << " to " << name_of(format.dtype);
  }
}

TEST(Narrow, CastsGoThroughF32) {
  for (const NarrowFormat& format : kNarrowFormats) {
    check_narrow_casts<int32_t>(format, DType::kI32);
    check_narrow_casts<int64_t>(format, DType::kI64);
    check_narrow_casts<uint8_t>(format, DType::kU8);
    check_narrow_casts<uint8_t>(format, DType::kBool);
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
