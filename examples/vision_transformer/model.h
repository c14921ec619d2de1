// The vision transformer of the program beside it: one attention block over the patches of an
// image.
#pragma once

#include "examples/support/random.h"
#include "frontend/nn/layers.h"
#include "frontend/nn/loss.h"
#include "frontend/nn/train.h"
#include "frontend/ops/ops.h"

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

namespace vision_transformer {

using ballast::Parameter;
using ballast::Shape;
using ballast::Tensor;
namespace nn = ballast::nn;
namespace ops = ballast::ops;

// How much each query [B, heads, N, depth] attends to each key: [B, heads, N, N].
inline Tensor attention_of(const Tensor& q, const Tensor& k) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape().back()));
  return ops::softmax(ops::matmul(q, k, /*transpose_a=*/false, /*transpose_b=*/true) * scale);
}

inline Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v) {
  return ops::matmul(attention_of(q, k), v);
}

// x [B, N, C] -> [B, N, C]
class AttentionBlock : public nn::Cell {
 public:
  using Attend = std::function<Tensor(const Tensor& q, const Tensor& k, const Tensor& v)>;

  AttentionBlock(int64_t dim, int64_t num_heads, Attend attend = vision_transformer::attend)
      : num_heads_(num_heads), attend_(std::move(attend)), qkv_(dim, dim * 3), proj_(dim, dim) {
    add("qkv", qkv_);
    add("proj", proj_);
  }

  using Cell::construct;
  Tensor construct(const Tensor& x) override {
    const int64_t batch = x.shape()[0], length = x.shape()[1], dim = x.shape()[2];
    const Tensor heads = ops::reshape(qkv_(x), {batch, length, 3, num_heads_, dim / num_heads_});
    const std::vector<Tensor> qkv = ops::split(ops::transpose(heads, {2, 0, 3, 1, 4}), 3);
    const Tensor out =
        attend_(ops::squeeze(qkv[0], {0}), ops::squeeze(qkv[1], {0}), ops::squeeze(qkv[2], {0}));
    return proj_(ops::reshape(ops::transpose(out, {0, 2, 1, 3}), {batch, length, dim}));
  }

 private:
  int64_t num_heads_;
  Attend attend_;
  nn::Dense qkv_, proj_;
};

// Images [B, 3, S, S] -> logits [B, classes]
class VisionTransformer : public nn::Cell {
 public:
  explicit VisionTransformer(int64_t img_size = 224, int64_t patch_size = 16, int64_t dim = 256,
                             int64_t num_heads = 8, int64_t num_classes = 100)
      : dim_(dim),
        patch_embed_(3, dim, /*kernel_size=*/patch_size, /*stride=*/patch_size),
        attention_(dim, num_heads),
        norm_(Shape{dim}),
        head_(dim, num_classes) {
    const int64_t num_patches = (img_size / patch_size) * (img_size / patch_size);
    add("patch_embed", patch_embed_);
    cls_token_ = add("cls_token", examples::randn({1, 1, dim}));
    pos_embed_ = add("pos_embed", examples::randn({1, num_patches + 1, dim}));
    add("attention", attention_);
    add("norm", norm_);
    add("head", head_);
  }

  using Cell::construct;
  Tensor construct(const Tensor& images) override {
    const int64_t batch = images.shape()[0];
    Tensor x = ops::reshape(patch_embed_(images), {batch, dim_, -1});
    x = ops::transpose(x, {0, 2, 1});
    const Tensor cls_tokens = ops::broadcast_to(cls_token_, {batch, 1, dim_});
    x = ops::concat({cls_tokens, x}, 1) + pos_embed_;
    x = norm_(attention_(x));
    const Tensor cls_output = ops::squeeze(ops::strided_slice(x, {0, 0}, {batch, 1}), {1});
    return head_(cls_output);
  }

 private:
  int64_t dim_;
  nn::Conv2d patch_embed_;
  AttentionBlock attention_;
  nn::LayerNorm norm_;
  nn::Dense head_;
  Parameter cls_token_, pos_embed_;
};

// (images, labels) -> the loss before a step of Adam.
inline nn::TrainOneStepCell make_train_net(VisionTransformer model) {
  nn::CrossEntropyLoss loss_fn;
  nn::Adam optimizer(model.trainable_params(), /*learning_rate=*/0.001);
  nn::WithLossCell net_with_loss(std::move(model), loss_fn);
  nn::TrainOneStepCell train_net(net_with_loss, optimizer);
  train_net.set_train();
  return train_net;
}

}  // namespace vision_transformer
