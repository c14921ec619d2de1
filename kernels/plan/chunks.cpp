#include "kernels/plan/chunks.h"

#include <algorithm>

namespace ballast::kernels {

Chunks group_items(int64_t width, int64_t height) {
  constexpr int32_t kItems = 256;
  Chunks items;
  while (items.x < width && items.x < kItems) items.x *= 2;
  while (items.y < height && items.x * items.y < kItems) items.y *= 2;
  return items;
}

std::vector<HostArg> move_chunks(DeviceClass device_class, int64_t lanes, const Shape& extents,
                                 int64_t most) {
  if (device_class == DeviceClass::kGpu) {
    const Chunks items = group_items(extents[0], extents[1]);
    return {1, items.x, items.y, 1};
  }
  std::vector<HostArg> chunks{checked_int32(lanes)};
  for (int64_t steps : {ceil_div(extents[0], lanes), extents[1], extents[2]}) {
    const int64_t chunk = std::min(steps, most);
    chunks.emplace_back(checked_int32(chunk));
    most = std::max<int64_t>(most / chunk, 1);
  }
  return chunks;
}

}  // namespace ballast::kernels
