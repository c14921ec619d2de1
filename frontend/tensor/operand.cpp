#include "frontend/tensor/operand.h"

namespace ballast {

namespace {

bool fits(int64_t value, DType dtype) {
  if (dtype == DType::kU8) return value >= 0 && value <= UINT8_MAX;
  return dtype != DType::kI32 || (value >= INT32_MIN && value <= INT32_MAX);
}

thread_local bool has_scope = false;
thread_local Where scope;

}  // namespace

Tensor Operand::as(DType dtype) const {
  if (!is_number_) return tensor_;
  if (is_real_ && !is_float(dtype)) {
    fail(BALLAST_INVALID_ARGUMENT, "[operand] {} stands beside a tensor of {} (at {})", number_,
         name_of(dtype), to_string(where_));
  }
  if (is_float(dtype) || dtype == DType::kBool) return Tensor::scalar(number_, dtype);
  if (!whole_ || !fits(*whole_, dtype)) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[operand] {:.0f} does not fit the tensor of {} beside it (at {})", number_,
         name_of(dtype), to_string(where_));
  }
  return Tensor::whole(*whole_, dtype);
}

CallScope::CallScope(const Where& where, bool is_override)
    : is_open_(is_override || !has_scope), had_scope_(has_scope), previous_(scope) {
  if (!is_open_) return;
  has_scope = true;
  scope = where;
}

CallScope::~CallScope() {
  if (!is_open_) return;
  has_scope = had_scope_;
  scope = previous_;
}

Where CallScope::resolve(const Where& where) { return has_scope ? scope : where; }

}  // namespace ballast
