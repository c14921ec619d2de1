#include "kernels/shape/bits.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ballast::kernels {
namespace {

template <class T>
Bits raw_bits(T value) {
  Bits bits;
  static_assert(sizeof(T) <= 8);
  std::memcpy(static_cast<void*>(&bits), &value, sizeof(T));
  return bits;
}

// Rounded to nearest, ties to even, to a format with `exponent` and `fraction` bits.
uint16_t narrow(double value, int exponent, int fraction) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int top = (1 << exponent) - 1, bias = top >> 1;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | top << fraction | 1 << (fraction - 1));
  const double magnitude = std::fabs(value);
  int power = 1 - bias;  // of a zero, too
  if (magnitude > 0 && std::isfinite(magnitude)) std::frexp(magnitude, &power);
  const int scale = std::max(power - 1, 1 - bias);
  // Overflow and carries run into the exponent by themselves.
  const double steps = std::nearbyint(std::ldexp(magnitude, fraction - scale));
  const double code = steps + std::ldexp(scale + bias - 1, fraction);
  const double infinity = std::ldexp(top, fraction);
  return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::min(code, infinity)));
}

}  // namespace

Bits bits_of(double value, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return raw_bits(static_cast<float>(value));
    case DType::kF64:
      return raw_bits(value);
    case DType::kF16:
      return raw_bits(narrow(value, 5, 10));
    case DType::kBF16:
      return raw_bits(narrow(value, 8, 7));
    case DType::kI32:
      return raw_bits(static_cast<int32_t>(value));
    case DType::kI64:
      return raw_bits(static_cast<int64_t>(value));
    case DType::kU8:
      return raw_bits(static_cast<uint8_t>(value));
    case DType::kBool:
      return raw_bits(static_cast<uint8_t>(value != 0));
  }
  return {};
}

}  // namespace ballast::kernels
