#include "tests/draw.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ballast::tests {

int64_t Draw::extent(int64_t limit) {
  const int64_t kind = below(10);
  if (kind == 0) return 1;
  if (kind < 4) return 1 + below(std::min<int64_t>(limit, 20));
  if (kind < 7) {
    const int64_t cut = pick<int64_t>({4, 8, 14, 16, 32, 48, 64, 128, 256, 512, 1024, 4096});
    const int64_t near = cut * (1 + below(5)) + pick<int64_t>({0, 0, 0, 1, -1});
    if (near <= limit) return near;
  }
  // As many between 10 and 100 as between 100 and 1000.
  const double power = static_cast<double>(below(1 << 20)) / (1 << 20);
  return std::clamp<int64_t>(std::llround(std::pow(static_cast<double>(limit), power)), 1, limit);
}

DType Draw::element() {
  return pick({DType::kF32, DType::kF32, DType::kF32, DType::kF32, DType::kI32, DType::kI64,
               DType::kU8, DType::kBool});
}

Shape Draw::shape(int64_t rank, int64_t limit) {
  Shape result(static_cast<size_t>(rank), 1);
  std::vector<size_t> order(result.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
  }
  for (size_t axis : order) {
    result[axis] = extent(limit);
    limit /= result[axis];
  }
  if (rank > 0 && one_in(40)) result[static_cast<size_t>(below(rank))] = 0;
  return result;
}

Shape Draw::broadcast_from(const Shape& shape) {
  if (one_in(2)) return shape;
  const auto rank = static_cast<int64_t>(shape.size());
  Shape result(shape.begin() + below(rank + 1), shape.end());
  for (int64_t& extent : result) {
    if (one_in(3)) extent = 1;
  }
  return result;
}

}  // namespace ballast::tests
