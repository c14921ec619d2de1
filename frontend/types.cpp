#include "frontend/types.h"

#include "frontend/error.h"

#include <fmt/ranges.h>

#include <cstring>

namespace ballast {

int64_t TensorType::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

uint64_t TensorType::bytes() const { return static_cast<uint64_t>(elements()) * size_of(dtype); }

uint64_t size_of(DType dtype) {
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

namespace {

template <class T>
std::vector<uint8_t> bytes_of(T value) {
  std::vector<uint8_t> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

}  // namespace

std::vector<uint8_t> encode(double value, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return bytes_of(static_cast<float>(value));
    case DType::kF64:
      return bytes_of(value);
    case DType::kI32:
      return bytes_of(static_cast<int32_t>(value));
    case DType::kI64:
      return bytes_of(static_cast<int64_t>(value));
    case DType::kU8:
      return bytes_of(static_cast<uint8_t>(value));
    case DType::kBool:
      return bytes_of(static_cast<uint8_t>(value != 0));
    default:
      fail(BALLAST_UNIMPLEMENTED, "[scalar] no host values of dtype {}", name_of(dtype));
  }
}

double decode(const uint8_t* bytes, DType dtype) {
  auto as = [bytes](auto zero) {
    std::memcpy(&zero, bytes, sizeof(zero));
    return static_cast<double>(zero);
  };
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
    default:
      fail(BALLAST_UNIMPLEMENTED, "[to_host] no host values of dtype {}", name_of(dtype));
  }
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string to_string(const TensorType& type) {
  return name_of(type.dtype) + to_string(type.shape);
}

std::string to_string(const Where& where) {
  std::string file = where.file;
  size_t slash = file.rfind('/');
  if (slash != std::string::npos) file.erase(0, slash + 1);
  return fmt::format("{}:{}", file, where.line);
}

}  // namespace ballast
