// A small vision transformer for 28 x 28 images: 49 patches and a class token, 4 blocks of 64
// channels with 4 heads, normalised first. In training it drops values, and moves each image by up
// to 2 pixels.
#pragma once

#include "frontend/nn/layers.h"

namespace vit_mnist {

// x + attention(norm(x)), then x + mlp(norm(x)).
class Block : public ballast::nn::Cell {
 public:
  Block();
  using Cell::construct;
  ballast::Tensor construct(const ballast::Tensor& x) override;

 private:
  ballast::nn::LayerNorm norm1_, norm2_;
  ballast::nn::MultiHeadAttention attention_;
  ballast::nn::SequentialCell mlp_;
  ballast::nn::Dropout dropout_;
};

// Images [B, 28, 28] -> logits [B, 10].
class Network : public ballast::nn::Cell {
 public:
  Network();
  using Cell::construct;
  ballast::Tensor construct(const ballast::Tensor& images) override;

 private:
  ballast::nn::Conv2d patch_embed_;
  ballast::nn::SequentialCell blocks_;
  ballast::nn::LayerNorm norm_;
  ballast::nn::Dense head_;
  ballast::Parameter cls_token_, pos_embed_;
};

}  // namespace vit_mnist
