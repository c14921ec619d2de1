#include "frontend/ops/distance.h"

#include "frontend/ops/call.h"
#include "frontend/ops/in_f32.h"

#include <limits>

namespace ballast::ops {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Of what is not negative, and with a slope of 0 at 0, where that of a root is infinite.
Tensor power(const Tensor& x, double exponent) {
  const Tensor is_zero = equal(x, 0.0), safe = select(is_zero, 1.0, x);
  return select(is_zero, 0.0, exponent == 0.5 ? sqrt(safe) : pow(safe, exponent));
}

void check_floats(const char* op, const Tensor& x, const Where& where) {
  if (is_float(x.dtype())) return;
  refuse(where, "[{}] input is {}, expected floats", op, ballast::to_string(x.type()));
}

Tensor norm_of(const Tensor& x, double ord, const Axes& axes, bool keep_dims) {
  if (ord == 2) return power(reduce_sum(square(x), axes, keep_dims), 0.5);
  if (ord == 0) return reduce_sum(cast(not_equal(x, 0.0), x.dtype()), axes, keep_dims);
  const Tensor magnitude = abs(x);
  if (ord == kInfinity) return reduce_max(magnitude, axes, keep_dims);
  if (ord == -kInfinity) return reduce_min(magnitude, axes, keep_dims);
  if (ord == 1) return reduce_sum(magnitude, axes, keep_dims);
  return power(reduce_sum(power(magnitude, ord), axes, keep_dims), 1 / ord);
}

void check_ord(const char* op, double ord, const Where& where) {
  if (ord >= 0 || ord == -kInfinity) return;
  refuse(where, "[{}] ord is {}, expected at least 0 or an infinity", op, ord);
}

}  // namespace

Tensor norm(const Operand& x, double ord, const Axes& axes, bool keep_dims) {
  CallScope scope(x.where());
  const Tensor tensor = x.tensor();
  check_floats("norm", tensor, x.where());
  check_ord("norm", ord, x.where());
  return in_f32(tensor, [&](const Tensor& wide) { return norm_of(wide, ord, axes, keep_dims); });
}

Tensor normalize(const Operand& x, double ord, int64_t axis, double epsilon) {
  CallScope scope(x.where());
  const Tensor tensor = x.tensor();
  check_floats("normalize", tensor, x.where());
  check_ord("normalize", ord, x.where());
  const int64_t at = checked_axis("normalize", axis, tensor.rank(), x.where());
  return in_f32(tensor, [&](const Tensor& wide) {
    return wide / maximum(norm_of(wide, ord, {at}, true), epsilon);
  });
}

Tensor cosine_similarity(const Operand& a, const Operand& b, int64_t axis, double epsilon) {
  CallScope scope(a.where());
  const Tensor left = a.tensor(), right = b.tensor();
  check_floats("cosine_similarity", left, a.where());
  if (left.dtype() != right.dtype() || left.rank() != right.rank()) {
    refuse(a.where(), "[cosine_similarity] {} and {} differ in dtype or rank",
           ballast::to_string(left.type()), ballast::to_string(right.type()));
  }
  const int64_t at = checked_axis("cosine_similarity", axis, left.rank(), a.where());
  return in_f32(left, [&](const Tensor& wide) {
    const Tensor other = cast(right, wide.dtype());
    const auto length = [&](const Tensor& x) {
      return maximum(norm_of(x, 2, {at}, false), epsilon);
    };
    return reduce_sum(wide * other, {at}) / (length(wide) * length(other));
  });
}

}  // namespace ballast::ops
