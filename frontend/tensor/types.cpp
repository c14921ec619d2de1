#include "frontend/tensor/types.h"

#include "frontend/program/token.h"
#include "frontend/tensor/error.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace ballast {

int64_t TensorType::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

uint64_t TensorType::bytes() const { return static_cast<uint64_t>(elements()) * size_of(dtype); }

uint64_t size_of(DType dtype) {
  if (dtype == kToken) return 0;
  switch (dtype) {
    case DType::kU8:
    case DType::kBool:
      return 1;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF64:
    case DType::kI64:
      return 8;
  }
  fail(BALLAST_INVALID_ARGUMENT, "[dtype] {} is no element type", static_cast<int>(dtype));
}

const char* name_of(DType dtype) {
  if (dtype == kToken) return "token";
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kU8:
      return "u8";
    case DType::kBool:
      return "bool";
  }
  return "?";
}

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

namespace {

// A 16-bit float with `digits` bits of significand (the hidden one too) and exponents down to
// `lowest` for normal numbers.
struct Narrow {
  int digits, lowest;

  uint16_t infinity() const {
    return static_cast<uint16_t>(0x7fff >> (digits - 1) << (digits - 1));
  }

  uint16_t encode(double value) const {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return sign | infinity() | static_cast<uint16_t>(1 << (digits - 2));
    if (std::isinf(value)) return sign | infinity();
    // In units of the last place; nearbyint rounds half to even. A carry moves into the exponent.
    const int exponent = value == 0 ? lowest : std::max(std::ilogb(value), lowest);
    const double units = std::nearbyint(std::ldexp(std::fabs(value), digits - 1 - exponent));
    const int64_t bits =
        static_cast<int64_t>(units) + (static_cast<int64_t>(exponent - lowest) << (digits - 1));
    return sign | static_cast<uint16_t>(std::min<int64_t>(bits, infinity()));
  }

  double decode(uint16_t bits) const {
    const int magnitude = bits & 0x7fff, hidden = 1 << (digits - 1);
    const double sign = bits & 0x8000 ? -1 : 1;
    if (magnitude > infinity()) return std::numeric_limits<double>::quiet_NaN();
    if (magnitude == infinity()) return sign * std::numeric_limits<double>::infinity();
    const int exponent = magnitude >> (digits - 1), fraction = magnitude & (hidden - 1);
    const int units = exponent == 0 ? fraction : fraction | hidden;
    return sign * std::ldexp(units, lowest - (digits - 1) + std::max(exponent - 1, 0));
  }
};

constexpr Narrow kBF16Format{8, -126}, kF16Format{11, -14};

template <class T>
void write(uint8_t* bytes, T value) {
  std::memcpy(bytes, &value, sizeof(T));
}

// As the op cast: toward zero, the nearest there is, 0 of a NaN.
template <class T>
T whole(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

}  // namespace

void encode(double value, DType dtype, uint8_t* bytes) {
  switch (dtype) {
    case DType::kF32:
      return write(bytes, static_cast<float>(value));
    case DType::kF64:
      return write(bytes, value);
    case DType::kBF16:
      return write(bytes, kBF16Format.encode(value));
    case DType::kF16:
      return write(bytes, kF16Format.encode(value));
    case DType::kI32:
      return write(bytes, whole<int32_t>(value));
    case DType::kI64:
      return write(bytes, whole<int64_t>(value));
    case DType::kU8:
      return write(bytes, whole<uint8_t>(value));
    case DType::kBool:
      return write(bytes, static_cast<uint8_t>(value != 0));
  }
  fail(BALLAST_INVALID_ARGUMENT, "[scalar] {} is no element type", static_cast<int>(dtype));
}

std::vector<uint8_t> encode(double value, DType dtype) {
  std::vector<uint8_t> bytes(size_of(dtype));
  encode(value, dtype, bytes.data());
  return bytes;
}

double decode(const uint8_t* bytes, DType dtype) {
  auto read = [bytes](auto zero) {
    std::memcpy(&zero, bytes, sizeof(zero));
    return zero;
  };
  auto as = [&](auto zero) { return static_cast<double>(read(zero)); };
  switch (dtype) {
    case DType::kF32:
      return as(float{});
    case DType::kF64:
      return as(double{});
    case DType::kI32:
      return as(int32_t{});
    case DType::kI64:
      return as(int64_t{});
    case DType::kU8:
    case DType::kBool:
      return as(uint8_t{});
    case DType::kBF16:
      return kBF16Format.decode(read(uint16_t{}));
    case DType::kF16:
      return kF16Format.decode(read(uint16_t{}));
  }
  fail(BALLAST_INVALID_ARGUMENT, "[to_host] {} is no element type", static_cast<int>(dtype));
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string to_string(const TensorType& type) {
  return is_token(type) ? "token" : name_of(type.dtype) + to_string(type.shape);
}

std::string to_string(const Where& where) {
  std::string file = where.file;
  size_t slash = file.rfind('/');
  if (slash != std::string::npos) file.erase(0, slash + 1);
  return fmt::format("{}:{}", file, where.line);
}

}  // namespace ballast
