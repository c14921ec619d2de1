#include "kernels/types.h"

#include "device/error.h"

#include <fmt/ranges.h>

#include <numeric>

namespace ballast::kernels {
namespace {

struct Row {
  DType dtype;
  const char* name;
  uint64_t size;
};

constexpr Row kRows[] = {
    {DType::kF32, "f32", 4},   {DType::kF64, "f64", 8},   {DType::kF16, "f16", 2},
    {DType::kBF16, "bf16", 2}, {DType::kI32, "i32", 4},   {DType::kI64, "i64", 8},
    {DType::kU8, "u8", 1},     {DType::kBool, "bool", 1},
};

const Row& row_of(DType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return row;
  }
  device::fail(device::Code::kInvalidArgument, "[dtype] no element type has the number {}",
               static_cast<int>(dtype));
}

}  // namespace

int64_t elements_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

AxisSplit split_around(const Shape& shape, size_t axis) {
  AxisSplit split;
  for (size_t d = 0; d < shape.size(); ++d) {
    (d < axis ? split.outer : d == axis ? split.axis : split.inner) *= shape[d];
  }
  return split;
}

uint64_t TensorType::bytes() const { return static_cast<uint64_t>(elements()) * size_of(dtype); }

uint64_t size_of(DType dtype) { return row_of(dtype).size; }

bool is_integer(DType dtype) {
  return dtype == DType::kI32 || dtype == DType::kI64 || dtype == DType::kU8;
}

bool is_narrow_float(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF16; }

const char* name_of(DType dtype) { return row_of(dtype).name; }

DType dtype_named(const std::string& name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  device::fail(device::Code::kInvalidArgument, "[dtype] no element type is called \"{}\"", name);
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string to_string(const TensorType& type) {
  return name_of(type.dtype) + to_string(type.shape);
}

}  // namespace ballast::kernels
