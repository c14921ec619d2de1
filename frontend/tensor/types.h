// Element types, shapes and source positions: the vocabulary of the frontend. Plain values.
#pragma once

#include <ballast/base.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ballast {

// The values are the ABI's.
enum class DType : int32_t {
  kF32 = BALLAST_F32,
  kF64 = BALLAST_F64,
  kF16 = BALLAST_F16,
  kBF16 = BALLAST_BF16,
  kI32 = BALLAST_I32,
  kI64 = BALLAST_I64,
  kU8 = BALLAST_U8,
  kBool = BALLAST_BOOL,
};

using Shape = std::vector<int64_t>;  // row-major extents; empty for a scalar

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;

  int64_t elements() const;
  uint64_t bytes() const;
  bool operator==(const TensorType& o) const { return dtype == o.dtype && shape == o.shape; }
  bool operator!=(const TensorType& o) const { return !(*this == o); }
};
// Where one type serves many tensors, as that of an op's result does.
using SharedType = std::shared_ptr<const TensorType>;

uint64_t size_of(DType dtype);
const char* name_of(DType dtype);               // "f32", "i32", "bool", ...
std::string to_string(const Shape& shape);      // "[64, 784]"
std::string to_string(const TensorType& type);  // "f32[64, 784]"

bool is_float(DType dtype);  // f32, f64, bf16 or f16

// One element as bytes and back. Narrow floats round to nearest even, integers as the op cast does.
std::vector<uint8_t> encode(double value, DType dtype);
void encode(double value, DType dtype, uint8_t* bytes);
double decode(const uint8_t* bytes, DType dtype);

// The element type that holds a C++ type.
template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::kF32;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::kI32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::kI64;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::kU8;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::kBool;
}

// A line of the user's program. As a default argument it names the caller's line.
struct Where {
  const char* file = "";
  int line = 0;

  static Where here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};
std::string to_string(const Where& where);  // "train.cpp:12"

}  // namespace ballast
