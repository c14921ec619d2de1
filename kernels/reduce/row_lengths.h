// Rows that the kernels along one axis treat in a way of their own, by their elements.
#pragma once

namespace ballast::kernels {

constexpr int kLongestCachedRow = 4096;  // a kernel keeps rows up to these on its stack
constexpr int kShortRow = 256;           // and takes several at once of rows up to these

}  // namespace ballast::kernels
