// Element types and shapes, shared by the kernels and the graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ballast::kernels {

// The values are the ABI's (include/ballast/base.h).
enum class DType : int {
  kF32 = 1,
  kF64 = 2,
  kF16 = 3,
  kBF16 = 4,
  kI32 = 5,
  kI64 = 6,
  kU8 = 7,
  kBool = 8,
};

using Shape = std::vector<int64_t>;  // row-major extents; empty for a scalar

int64_t elements_of(const Shape& shape);

// A dense tensor seen around one of its axes.
struct AxisSplit {
  int64_t outer = 1, axis = 1, inner = 1;

  int64_t elements() const { return outer * axis * inner; }
};
AxisSplit split_around(const Shape& shape, size_t axis);

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;

  int64_t elements() const { return elements_of(shape); }
  uint64_t bytes() const;
  bool operator==(const TensorType& o) const { return dtype == o.dtype && shape == o.shape; }
  bool operator!=(const TensorType& o) const { return !(*this == o); }
};

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

uint64_t size_of(DType dtype);                  // bytes of one element
bool is_integer(DType dtype);                   // i32, i64, u8
bool is_narrow_float(DType dtype);              // bf16 or f16: stored narrow, computed with as f32
const char* name_of(DType dtype);               // "f32", "i32", "bool", ...
DType dtype_named(const std::string& name);     // throws kInvalidArgument
std::string to_string(const Shape& shape);      // "[64, 784]"
std::string to_string(const TensorType& type);  // "f32[64, 784]"

}  // namespace ballast::kernels
