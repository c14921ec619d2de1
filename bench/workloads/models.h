// The models of the workloads. Weights of dense layers are [out, in]; a model takes its parameters
// in the order of their names.
#pragma once

#include "frontend/tensor/tensor.h"

#include <string>
#include <vector>

namespace workloads {

using Names = std::vector<std::string>;
using Tensors = std::vector<ballast::Tensor>;

ballast::Tensor dense(const ballast::Tensor& x, const ballast::Tensor& weight,
                      const ballast::Tensor& bias);

// 784 to 512 to 512 to 10, with ReLU between: logits of x [B, 784].
Names mlp_parameters();
ballast::Tensor mlp(const Tensors& parameters, const ballast::Tensor& x);

// Self-attention with 8 heads, between projections: x and the result are [B, N, C].
Names attention_parameters();
ballast::Tensor attention(const Tensors& parameters, const ballast::Tensor& x);

// A vision transformer: 16 x 16 patches of 224 x 224 images, 6 blocks of 256 channels with 8 heads,
// 100 classes. Logits of images [B, 3, 224, 224].
Names vit_parameters();
ballast::Tensor vit(const Tensors& parameters, const ballast::Tensor& x);

}  // namespace workloads
