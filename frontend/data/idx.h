// Reads IDX files, the format of MNIST (big-endian; any rank; u1, i4, f4, f8), packed by gzip or
// not, into host tensors. A truncated or malformed file is an Error naming the file and the byte
// offset.
#pragma once

#include "frontend/tensor/tensor.h"

#include <string>

namespace ballast::data {

Tensor load_idx(const std::string& path);

}  // namespace ballast::data
