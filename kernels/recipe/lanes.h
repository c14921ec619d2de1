#pragma once

namespace ballast::kernels {

// Elements per explicit vector: the widest that OpenCL C has.
constexpr int kLanes = 16;

}  // namespace ballast::kernels
