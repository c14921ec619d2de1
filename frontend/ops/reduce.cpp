#include "frontend/ops/reduce.h"

#include "frontend/ops/call.h"
#include "frontend/ops/in_f32.h"
#include "frontend/ops/ops.h"

#include <algorithm>
#include <limits>

namespace ballast::ops {

namespace {

Tensor reduce(const char* name, const Operand& x, const Axes& axes, bool keep_dims) {
  Tensor tensor = x.tensor();
  Axes sorted;
  for (int64_t axis : axes) sorted.push_back(from_start(axis, tensor.rank()));
  std::sort(sorted.begin(), sorted.end());
  return apply_primitive(name, {tensor}, {{"axes", sorted}, {"keep_dims", int64_t{keep_dims}}},
                         x.where())[0];
}

// Truth values and bytes are counted and multiplied in i32.
Tensor widened(const Operand& x) {
  const DType dtype = x.tensor().dtype();
  return dtype == DType::kBool || dtype == DType::kU8 ? cast(x, DType::kI32) : x.tensor();
}

// What has a mean: of whole numbers and truth values in f32.
Tensor as_floats(const Operand& x) {
  return is_float(x.tensor().dtype()) ? x.tensor() : cast(x, DType::kF32);
}

Tensor arg_reduce(const char* name, const Operand& x, int64_t axis, bool keep_dims) {
  CallScope scope(x.where());
  Tensor tensor = x.tensor();
  if (tensor.dtype() == DType::kBool) tensor = cast(tensor, DType::kU8);
  Attrs attrs = {{"axis", from_start(axis, tensor.rank())}};
  if (keep_dims) attrs.emplace_back("keep_dims", int64_t{1});
  return apply_primitive(name, {tensor}, attrs, x.where())[0];
}

}  // namespace

Tensor reduce_sum(const Operand& x, const Axes& axes, bool keep_dims) {
  CallScope scope(x.where());
  return reduce("reduce_sum", widened(x), axes, keep_dims);
}
Tensor reduce_mean(const Operand& x, const Axes& axes, bool keep_dims) {
  CallScope scope(x.where());
  return reduce("reduce_mean", as_floats(x), axes, keep_dims);
}
Tensor reduce_max(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_max", x, axes, keep_dims);
}
Tensor reduce_min(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce("reduce_min", x, axes, keep_dims);
}
Tensor reduce_prod(const Operand& x, const Axes& axes, bool keep_dims) {
  CallScope scope(x.where());
  return reduce("reduce_prod", widened(x), axes, keep_dims);
}
Tensor reduce_any(const Operand& x, const Axes& axes, bool keep_dims) {
  CallScope scope(x.where());
  return reduce("reduce_any", truth(x), axes, keep_dims);
}
Tensor reduce_all(const Operand& x, const Axes& axes, bool keep_dims) {
  CallScope scope(x.where());
  return reduce("reduce_all", truth(x), axes, keep_dims);
}
Tensor argmax(const Operand& x, int64_t axis, bool keep_dims) {
  return arg_reduce("argmax", x, axis, keep_dims);
}
Tensor argmin(const Operand& x, int64_t axis, bool keep_dims) {
  return arg_reduce("argmin", x, axis, keep_dims);
}

Tensor reduce_var(const Operand& x, const Axes& axes, int64_t ddof, bool keep_dims) {
  CallScope scope(x.where());
  return in_f32(as_floats(x), [&](const Tensor& wide) {
    const Tensor mean = reduce_mean(wide, axes, true);
    const Tensor total = reduce_sum(square(wide - mean), axes, keep_dims);
    const int64_t lines = std::max<int64_t>(1, mean.elements());
    const int64_t freedom = std::max<int64_t>(0, wide.elements() / lines - ddof);
    return total * (1.0 / static_cast<double>(freedom));
  });
}

Tensor reduce_std(const Operand& x, const Axes& axes, int64_t ddof, bool keep_dims) {
  CallScope scope(x.where());
  return in_f32(as_floats(x),
                [&](const Tensor& wide) { return sqrt(reduce_var(wide, axes, ddof, keep_dims)); });
}

Tensor logsumexp(const Operand& x, const Axes& axes, bool keep_dims) {
  CallScope scope(x.where());
  return in_f32(as_floats(x), [&](const Tensor& wide) {
    // The shift cancels out; an infinite one would leave NaN.
    Tensor peak = stop_gradient(reduce_max(wide, axes, true));
    Tensor shift = select(less(abs(peak), std::numeric_limits<float>::infinity()), peak, 0.0);
    Tensor result = log(reduce_sum(exp(wide - shift), axes, true)) + shift;
    return keep_dims ? result : reshape(result, reduce_sum(wide, axes).shape());
  });
}

Tensor cumsum(const Operand& x, int64_t axis, bool exclusive, bool reverse) {
  CallScope scope(x.where());
  Tensor tensor = widened(x);
  return apply_primitive("cumsum", {tensor},
                         {{"axis", from_start(axis, tensor.rank())},
                          {"exclusive", int64_t{exclusive}},
                          {"reverse", int64_t{reverse}}},
                         x.where())[0];
}

Tensor sum(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce_sum(x, axes, keep_dims);
}
Tensor mean(const Operand& x, const Axes& axes, bool keep_dims) {
  return reduce_mean(x, axes, keep_dims);
}

}  // namespace ballast::ops
