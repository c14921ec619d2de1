// Reads numpy's .npy files (versions 1 to 3; little-endian, C order; f2, f4, f8, i4, i8, u1, b1)
// and .npz archives of them, packed or not, into host tensors. A truncated or malformed file is an
// Error naming the file and the byte offset.
#pragma once

#include "frontend/tensor/tensor.h"

#include <map>
#include <string>

namespace ballast::data {

Tensor load_npy(const std::string& path);
std::map<std::string, Tensor> load_npz(const std::string& path);
void save_npy(const std::string& path, const Tensor& tensor);

}  // namespace ballast::data
