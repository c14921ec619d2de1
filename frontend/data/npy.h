// Reads numpy's .npy files (versions 1 to 3; little-endian, C order; f4, i4, i8, u1, b1) into host
// tensors. A truncated or malformed file is an Error naming the file and the byte offset.
#pragma once

#include "frontend/tensor.h"

#include <string>

namespace ballast::data {

Tensor load_npy(const std::string& path);
void save_npy(const std::string& path, const Tensor& tensor);

}  // namespace ballast::data
