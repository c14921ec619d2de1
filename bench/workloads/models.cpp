#include "bench/workloads/models.h"

#include "frontend/ops/ops.h"

namespace workloads {

using namespace ballast;

namespace {

constexpr int64_t kPatch = 16, kDepth = 6, kHeads = 8;

// Takes the parameters one after the other.
class Reader {
 public:
  explicit Reader(const Tensors& parameters) : next_(parameters.begin()) {}

  Tensor take() { return *next_++; }
  Tensor dense(const Tensor& x) {
    const Tensor weight = take();
    return workloads::dense(x, weight, take());
  }
  Tensor norm(const Tensor& x) {
    const Tensor gamma = take();
    return ops::layer_norm(x, gamma, take()).y;
  }
  Tensor patches(const Tensor& images) {  // [B, patches, channels]
    ops::Window2d window;
    window.stride = {kPatch, kPatch};
    const Tensor weight = take();
    const Tensor planes = ops::conv2d(images, weight, take(), window);
    const Shape& shape = planes.shape();
    return ops::transpose(ops::reshape(planes, {shape[0], shape[1], -1}), {0, 2, 1});
  }
  Tensor attention(const Tensor& x) {
    const int64_t batch = x.shape()[0], length = x.shape()[1], channels = x.shape()[2];
    const Tensor projected = ops::reshape(dense(x), {batch, length, 3, kHeads, channels / kHeads});
    const Tensors qkv = ops::split(ops::transpose(projected, {2, 0, 3, 1, 4}), 3);
    const Tensor out = ops::scaled_dot_product_attention(
        ops::squeeze(qkv[0], {0}), ops::squeeze(qkv[1], {0}), ops::squeeze(qkv[2], {0}));
    return dense(ops::reshape(ops::transpose(out, {0, 2, 1, 3}), {batch, length, channels}));
  }

 private:
  Tensors::const_iterator next_;
};

}  // namespace

Tensor dense(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return ops::matmul(x, weight, /*transpose_a=*/false, /*transpose_b=*/true) + bias;
}

Names mlp_parameters() { return {"w0", "b0", "w1", "b1", "w2", "b2"}; }

Tensor mlp(const Tensors& parameters, const Tensor& x) {
  Reader reader(parameters);
  const Tensor first = ops::relu(reader.dense(x));
  const Tensor second = ops::relu(reader.dense(first));
  return reader.dense(second);
}

Names attention_parameters() { return {"qkv_w", "qkv_b", "proj_w", "proj_b"}; }

Tensor attention(const Tensors& parameters, const Tensor& x) {
  return Reader(parameters).attention(x);
}

Names vit_parameters() {
  Names names = {"patch_w", "patch_b", "cls", "pos"};
  for (int64_t block = 0; block < kDepth; ++block) {
    for (const char* part : {"ln1_g", "ln1_b", "qkv_w", "qkv_b", "proj_w", "proj_b", "ln2_g",
                             "ln2_b", "fc1_w", "fc1_b", "fc2_w", "fc2_b"}) {
      names.push_back(part + std::to_string(block));
    }
  }
  names.insert(names.end(), {"norm_g", "norm_b", "head_w", "head_b"});
  return names;
}

Tensor vit(const Tensors& parameters, const Tensor& x) {
  Reader reader(parameters);
  const Tensor patches = reader.patches(x);
  const int64_t batch = patches.shape()[0], channels = patches.shape()[2];
  const Tensor first = ops::broadcast_to(reader.take(), {batch, 1, channels});
  Tensor t = ops::concat({first, patches}, 1) + reader.take();
  for (int64_t block = 0; block < kDepth; ++block) {
    t = t + reader.attention(reader.norm(t));
    const Tensor hidden = ops::gelu(reader.dense(reader.norm(t)));
    t = t + reader.dense(hidden);
  }
  t = ops::squeeze(ops::strided_slice(reader.norm(t), {0, 0}, {batch, 1}), {1});
  return reader.dense(t);
}

}  // namespace workloads
