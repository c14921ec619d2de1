#include "examples/vit_mnist/model.h"

#include "frontend/ops/ops.h"

namespace vit_mnist {

using namespace ballast;

namespace {

constexpr int64_t kImage = 28, kPatch = 4, kPatches = (kImage / kPatch) * (kImage / kPatch);
constexpr int64_t kChannels = 64, kHeads = 4, kHidden = 128, kClasses = 10;
constexpr double kDropout = 0.1;
constexpr int64_t kMoved = 2;  // pixels

// Each image moved by up to kMoved pixels, down and across.
Tensor moved(const Tensor& images) {
  Tensor x = ops::pad(images, {{0, 0}, {kMoved, kMoved}, {kMoved, kMoved}});
  for (size_t axis : {1, 2}) {
    Shape places = {1, 1, 1}, shape = x.shape();
    places[axis] = shape[axis] = kImage;
    const Tensor index = ops::randint({shape[0], 1, 1}, 0, 2 * kMoved + 1) +
                         ops::reshape(ops::arange(0, kImage, 1, DType::kI32), places);
    x = ops::gather_elements(x, ops::broadcast_to(index, shape), static_cast<int64_t>(axis));
  }
  return x;
}

}  // namespace

Block::Block()
    : norm1_({kChannels}),
      norm2_({kChannels}),
      attention_(kChannels, kHeads),
      mlp_(nn::Dense(kChannels, kHidden), nn::GELU(), nn::Dense(kHidden, kChannels)),
      dropout_(kDropout) {
  add("norm1", norm1_);
  add("attention", attention_);
  add("norm2", norm2_);
  add("mlp", mlp_);
  add("dropout", dropout_);
}

Tensor Block::construct(const Tensor& x) {
  const Tensor seen = x + dropout_(attention_(norm1_(x)));
  return seen + dropout_(mlp_(norm2_(seen)));
}

Network::Network()
    : patch_embed_(1, kChannels, kPatch, kPatch),
      blocks_(Block(), Block(), Block(), Block()),
      norm_({kChannels}),
      head_(kChannels, kClasses) {
  cls_token_ = add("cls_token", nn::TruncatedNormal(0.02)({1, 1, kChannels}));
  pos_embed_ = add("pos_embed", nn::TruncatedNormal(0.02)({1, kPatches + 1, kChannels}));
  add("patch_embed", patch_embed_);
  add("blocks", blocks_);
  add("norm", norm_);
  add("head", head_);
}

Tensor Network::construct(const Tensor& images) {
  const int64_t batch = images.shape()[0];
  const Tensor seen = is_training() ? moved(images) : images;
  const Tensor planes = patch_embed_(ops::reshape(seen, {batch, 1, kImage, kImage}));
  const Tensor patches =
      ops::transpose(ops::reshape(planes, {batch, kChannels, kPatches}), {0, 2, 1});
  const Tensor cls_tokens = ops::broadcast_to(cls_token_, {batch, 1, kChannels});
  const Tensor x = norm_(blocks_(ops::concat({cls_tokens, patches}, 1) + pos_embed_));
  return head_(ops::squeeze(ops::strided_slice(x, {0, 0}, {batch, 1}), {1}));
}

}  // namespace vit_mnist
