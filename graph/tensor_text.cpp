#include "graph/tensor_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace ballast::graph {

namespace {

constexpr int64_t kMostElements = 1000;
constexpr int64_t kEdge = 3;  // elements shown at either end of a long axis

const char* title_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "Float32";
    case DType::kF64:
      return "Float64";
    case DType::kF16:
      return "Float16";
    case DType::kBF16:
      return "BFloat16";
    case DType::kI32:
      return "Int32";
    case DType::kI64:
      return "Int64";
    case DType::kU8:
      return "UInt8";
    case DType::kBool:
      return "Bool";
  }
  return "?";
}

template <class T>
T read(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

float float_of_bf16(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  return read<float>(reinterpret_cast<const uint8_t*>(&wide));
}

float float_of_f16(uint16_t bits) {
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  const int units = exponent == 0 ? fraction : fraction + 1024;
  return sign * std::ldexp(static_cast<float>(units), std::max(exponent, 1) - 25);
}

template <class T>
std::string real_text(T value, bool is_scalar) {
  return is_scalar ? fmt::format("{}", value) : fmt::format("{:>15.8e}", value);
}

std::string element_text(DType dtype, const uint8_t* bytes, bool is_scalar) {
  switch (dtype) {
    case DType::kF32:
      return real_text(read<float>(bytes), is_scalar);
    case DType::kF64:
      return real_text(read<double>(bytes), is_scalar);
    case DType::kF16:
      return real_text(float_of_f16(read<uint16_t>(bytes)), is_scalar);
    case DType::kBF16:
      return real_text(float_of_bf16(read<uint16_t>(bytes)), is_scalar);
    case DType::kI32:
      return fmt::format("{}", read<int32_t>(bytes));
    case DType::kI64:
      return fmt::format("{}", read<int64_t>(bytes));
    case DType::kU8:
      return fmt::format("{}", *bytes);
    case DType::kBool:
      return *bytes != 0 ? "True" : "False";
  }
  return "?";
}

class Writer {
 public:
  Writer(const TensorType& type, const uint8_t* bytes)
      : type_(type), bytes_(bytes), is_cut_(type.elements() > kMostElements) {}

  std::string run() {
    visit(0, 0, [&](int64_t element) { width_ = std::max(width_, text(element).size()); });
    out_.clear();
    visit(0, 0, [&](int64_t element) { out_ += fmt::format("{:>{}}", text(element), width_); });
    return out_;
  }

 private:
  std::string text(int64_t element) const {
    const auto at = static_cast<uint64_t>(element) * kernels::size_of(type_.dtype);
    return element_text(type_.dtype, bytes_ + at, type_.shape.empty());
  }

  // Calls `element` for what is shown of part number `part` along the first axes; writes brackets.
  template <class Element>
  void visit(size_t axis, int64_t part, const Element& element) {
    if (axis == type_.shape.size()) return element(part);
    const int64_t extent = type_.shape[axis];
    const bool is_last = axis + 1 == type_.shape.size();
    const std::string line(axis + 1, ' ');
    const std::string blank_lines(type_.shape.size() - axis - 1, '\n');
    const bool has_gap = is_cut_ && extent > 2 * kEdge;
    out_ += '[';
    for (int64_t i = 0; i < extent; ++i) {
      const bool is_gap = has_gap && i == kEdge;
      if (i > 0 && is_last) out_ += is_gap ? " ... " : ", ";
      if (i > 0 && !is_last) {
        out_ +=
            (is_gap ? "" : ",") + blank_lines + line + (is_gap ? "..." + blank_lines + line : "");
      }
      if (is_gap) i = extent - kEdge;
      visit(axis + 1, part * extent + i, element);
    }
    out_ += ']';
  }

  const TensorType& type_;
  const uint8_t* bytes_;
  bool is_cut_;
  size_t width_ = 0;
  std::string out_;
};

}  // namespace

std::string tensor_text(const TensorType& type, const uint8_t* bytes) {
  const char* separator = type.shape.size() > 1 ? "\n" : " ";
  return fmt::format("Tensor(shape={}, dtype={}, value={}{})", to_string(type.shape),
                     title_of(type.dtype), separator, Writer(type, bytes).run());
}

}  // namespace ballast::graph
