// Operand: an argument of an op: a tensor, a parameter or a number, with the user's source line
// (taken at the implicit conversion). A number takes the dtype of the tensor beside it.
// CallScope: while one is open, ops report its line instead, so that what a layer or a composite op
// does inside is attributed to the line that called it. Per thread.
#pragma once

#include "frontend/tensor/parameter.h"
#include "frontend/tensor/tensor.h"

#include <cstdint>
#include <optional>
#include <type_traits>

namespace ballast {

class Operand {
 public:
  Operand(const Tensor& tensor, Where where = Where::here()) : tensor_(tensor), where_(where) {}
  Operand(const Parameter& parameter, Where where = Where::here())
      : tensor_(parameter.value()), where_(where) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Operand(T number, Where where = Where::here())
      : number_(static_cast<double>(number)),
        whole_(whole_of(number)),
        is_number_(true),
        is_real_(std::is_floating_point_v<T>),
        where_(where) {}

  bool is_number() const { return is_number_; }
  const Tensor* given() const { return is_number_ ? nullptr : &tensor_; }  // null for a number
  // A real number beside an integer tensor is an error, not a rounding, and so is a whole one that
  // the dtype cannot hold.
  Tensor as(DType dtype) const;
  // A number by itself is an f32 scalar (bool and whole numbers too).
  Tensor tensor() const { return is_number_ ? Tensor::scalar(number_) : tensor_; }
  const Where& where() const { return where_; }

 private:
  Tensor tensor_;
  template <class T>
  static std::optional<int64_t> whole_of(T number) {
    if constexpr (std::is_floating_point_v<T>) return std::nullopt;
    if (number > 0 && static_cast<uint64_t>(number) > uint64_t{INT64_MAX}) return std::nullopt;
    return static_cast<int64_t>(number);
  }

  double number_ = 0;
  std::optional<int64_t> whole_;  // the number, where it is an integer that fits
  bool is_number_ = false;
  bool is_real_ = false;
  Where where_;
};

class CallScope {
 public:
  explicit CallScope(const Where& where, bool is_override = false);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  // The open scope's line, or `where`.
  static Where resolve(const Where& where);

 private:
  bool is_open_;
  bool had_scope_;
  Where previous_;
};

}  // namespace ballast
