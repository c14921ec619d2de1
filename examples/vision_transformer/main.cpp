// Three ways to run one model: op by op, to look into it; compiled, to train it, with checkpoints;
// and mixed, op by op around a compiled part. Then a training step in every mode.
#include "examples/support/compare_modes.h"
#include "examples/vision_transformer/model.h"
#include "frontend/ballast_frontend.h"

#include <fmt/core.h>

#include <filesystem>

using namespace ballast;
using namespace vision_transformer;

namespace {

constexpr int64_t kImageSize = 32, kClasses = 100, kBatchSize = 32;
constexpr uint64_t kBatches = 20;  // of an epoch

void debug_model_with_pynative() {
  set_context({Mode::kPyNative});
  AttentionBlock model(256, 8, [](auto& q, auto& k, auto& v) {
    Tensor attention = attention_of(q, k);
    fmt::print("Attention shape: {}\n", to_string(attention.shape()));
    return ops::matmul(attention, v);
  });
  Tensor x = examples::randn({2, 196, 256});
  fmt::print("Input shape: {}\n", to_string(x.shape()));
  fmt::print("Output shape: {}\n", to_string(model(x).shape()));
  auto grad_fn = grad([&](const Tensor& input) { return ops::sum(model(input)); });
  fmt::print("Gradient shape: {}\n", to_string(grad_fn(x).shape()));
}

std::pair<Tensor, Tensor> random_batches(uint64_t count) {
  const int64_t n = static_cast<int64_t>(count) * kBatchSize;
  return {examples::randn({n, 3, kImageSize, kImageSize}), examples::randint(0, kClasses, {n})};
}

nn::TrainOneStepCell new_train_net() {
  set_seed(0);
  return make_train_net(VisionTransformer(kImageSize));
}

// Up to this many epochs: goes on where the checkpoint ends, if there is one.
void train_model_with_graph(const std::string& path, int epochs) {
  set_context({Mode::kGraph});
  auto train_net = new_train_net();
  auto [images, labels] = random_batches(kBatches);
  auto dataset = data::ArrayDataset({images, labels}).batch(kBatchSize).shuffle(/*seed=*/1000);
  int done = 0;
  if (std::filesystem::exists(path)) {
    load_into(train_net, path);  // weights, moments of Adam, its powers
    done = std::stoi(load_checkpoint(path).metadata.at("epochs"));
    dataset.start_at(done * kBatches);
    fmt::print("Loaded {}: {} epochs are done\n", path, done);
  }
  for (int epoch = done; epoch < epochs; ++epoch) {
    float total_loss = 0;
    for (const data::Batch& batch : dataset)
      total_loss += train_net(batch[0], batch[1]).item<float>();
    fmt::print("Epoch [{}/{}], Average Loss: {:.6f}\n", epoch + 1, epochs, total_loss / kBatches);
    save_checkpoint(path, train_net, {{"epochs", std::to_string(epoch + 1)}});
  }
}

void test_mixed_mode() {
  set_context({Mode::kPyNative});
  auto static_attention_compute = jit(attend);
  AttentionBlock model(256, 8, [=](auto& q, auto& k, auto& v) mutable {
    fmt::print("Dynamic debug: Q shape {}\n", to_string(q.shape()));
    Tensor out = static_attention_compute(q, k, v);  // compiled
    fmt::print("Dynamic debug: Attention output shape {}\n", to_string(out.shape()));
    return out;
  });
  Tensor output = model(examples::randn({2, 196, 256}));
  fmt::print("Mixed mode output shape: {}\n", to_string(output.shape()));
}

}  // namespace

int main(int argc, char** argv) {
  std::string path = "vit_ascend.safetensors";
  auto run = [&](examples::Example& example) {
    debug_model_with_pynative();
    std::filesystem::remove(path);
    train_model_with_graph(path, 2);
    train_model_with_graph(path, 5);  // goes on
    test_mixed_mode();
    set_seed(1);
    auto [images, labels] = random_batches(example.steps());
    examples::compare_modes(example, new_train_net,
                            each(ops::reshape(images, {-1, kBatchSize, 3, kImageSize, kImageSize})),
                            each(ops::reshape(labels, {-1, kBatchSize})));
  };
  return examples::run_example(
      argc, argv, "A vision transformer, by hand", run,
      [&](CLI::App& app) { app.add_option("--checkpoint", path)->capture_default_str(); });
}
