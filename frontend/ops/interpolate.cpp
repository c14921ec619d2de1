#include "frontend/ops/interpolate.h"

#include "frontend/ops/call.h"
#include "frontend/ops/in_f32.h"
#include "frontend/ops/index.h"

#include <algorithm>

namespace ballast::ops {

namespace {

Tensor nearest_along(const Tensor& x, int64_t axis, int64_t size) {
  const int64_t extent = x.shape()[static_cast<size_t>(axis)];
  std::vector<int32_t> picks;
  for (int64_t i = 0; i < size; ++i) picks.push_back(static_cast<int32_t>(i * extent / size));
  return gather(x, Tensor::on_host(picks, {size}), axis);
}

// Where element i of `size` lies among `extent`.
double place_of(int64_t i, int64_t extent, int64_t size, bool align_corners) {
  const auto at = static_cast<double>(i), from = static_cast<double>(extent),
             to = static_cast<double>(size);
  if (align_corners) return size == 1 ? 0 : at * (from - 1) / (to - 1);
  return std::clamp((at + 0.5) * from / to - 0.5, 0.0, from - 1);
}

Tensor linear_along(const Tensor& x, int64_t axis, int64_t size, bool align_corners) {
  const int64_t extent = x.shape()[static_cast<size_t>(axis)];
  std::vector<int32_t> before, behind;
  std::vector<float> shares;  // of the element behind
  for (int64_t i = 0; i < size; ++i) {
    const double place = place_of(i, extent, size, align_corners);
    const auto first = static_cast<int64_t>(place);
    before.push_back(static_cast<int32_t>(first));
    behind.push_back(static_cast<int32_t>(std::min(first + 1, extent - 1)));
    shares.push_back(static_cast<float>(place - static_cast<double>(first)));
  }
  Shape along(x.shape().size() - static_cast<size_t>(axis), 1);
  along[0] = size;
  const Tensor share = Tensor::on_host(shares, along);
  return gather(x, Tensor::on_host(before, {size}), axis) * (1.0 - share) +
         gather(x, Tensor::on_host(behind, {size}), axis) * share;
}

}  // namespace

Tensor interpolate(const Operand& x, const std::vector<int64_t>& size, const std::string& mode,
                   bool align_corners) {
  CallScope scope(x.where());
  const Tensor tensor = x.tensor();
  const auto dims = static_cast<int64_t>(size.size());
  const bool has_elements =
      tensor.rank() >= 3 && std::count(tensor.shape().begin() + 2, tensor.shape().end(), 0) == 0;
  if (!has_elements || dims != tensor.rank() - 2 ||
      *std::min_element(size.begin(), size.end()) < 1) {
    refuse(
        x.where(),
        "[interpolate] input is {}, size {}; expected [N, C, ...] with elements and an extent of "
        "at least 1 for each axis behind",
        ballast::to_string(tensor.type()), ballast::to_string(size));
  }
  constexpr const char* kLinear[] = {"linear", "bilinear", "trilinear"};
  const bool is_nearest = mode == "nearest";
  if (!is_nearest && (dims > 3 || mode != kLinear[dims - 1])) {
    refuse(x.where(), "[interpolate] mode is \"{}\", expected nearest or, for {} axes, {}", mode,
           dims, dims > 3 ? "nothing else" : kLinear[dims - 1]);
  }
  const auto resized = [&](Tensor y) {
    for (int64_t axis = 2; axis < tensor.rank(); ++axis) {
      const int64_t extent = size[static_cast<size_t>(axis) - 2];
      if (extent == tensor.shape()[static_cast<size_t>(axis)]) continue;
      y = is_nearest ? nearest_along(y, axis, extent)
                     : linear_along(y, axis, extent, align_corners);
    }
    return y;
  };
  return is_nearest ? resized(tensor) : in_f32(tensor, resized);
}

}  // namespace ballast::ops
