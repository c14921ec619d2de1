// Planes, lines and volumes of another size.
#pragma once

#include "frontend/tensor/operand.h"

#include <string>
#include <vector>

namespace ballast::ops {

// x [N, C, ...] with the extents `size` behind the channels, as torch's functional.interpolate.
// mode "nearest" takes element floor(i in / out); "linear" (of [N, C, L]), "bilinear" ([N, C, H,
// W]) and "trilinear" lie between the two next to (i + 0.5) in / out - 0.5, or with align_corners
// to i (in - 1) / (out - 1), and at the ends are the last element.
Tensor interpolate(const Operand& x, const std::vector<int64_t>& size,
                   const std::string& mode = "nearest", bool align_corners = false);

}  // namespace ballast::ops
