// The vision transformer of vit_train: 16 x 16 patches of 224 x 224 images, 6 blocks of 256
// channels with 8 heads, 100 classes.
#pragma once

#include "frontend/tensor/parameter.h"

#include <string>
#include <vector>

namespace workloads {

// The names of its parameters, in the order in which vit() takes them.
std::vector<std::string> vit_parameters();
// Logits of images [B, 3, 224, 224].
ballast::Tensor vit(const std::vector<ballast::Parameter>& parameters, const ballast::Tensor& x);

}  // namespace workloads
