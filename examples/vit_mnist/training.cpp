#include "examples/vit_mnist/training.h"

#include "examples/mnist/training.h"
#include "examples/vit_mnist/model.h"
#include "frontend/ballast_frontend.h"

#include <filesystem>

namespace vit_mnist {

using namespace ballast;

namespace {

nn::TrainOneStepCell make_train_net(const Network& network, const TrainOptions& options) {
  const auto steps = static_cast<int64_t>(options.steps);
  const int64_t warm = std::min<int64_t>(100, (steps + 9) / 10);
  const int64_t rest = std::max<int64_t>(1, steps - warm);
  const float rate = options.learning_rate;
  nn::AdamW optimizer(
      network.trainable_params(),
      nn::SequentialLR({nn::WarmUpLR(rate, warm), nn::CosineDecayLR(0, rate, rest)}, {warm}),
      /*beta1=*/0.9f, /*beta2=*/0.999f, /*epsilon=*/1e-8f, /*weight_decay=*/0.05f);
  nn::TrainOneStepCell train_net(nn::WithLossCell(network, nn::CrossEntropyLoss()), optimizer);
  train_net.set_train();
  return train_net;
}

// The file of a run, and what must be the same where the run goes on.
class RunCheckpoint {
 public:
  RunCheckpoint(const TrainOptions& options, const nn::Cell& train_net)
      : path_(options.checkpoint),
        options_(fmt::format("batch {}, seed {}, learning rate {}, {} steps", options.batch,
                             options.seed, options.learning_rate, options.steps)),
        state_(StateDict(train_net).add("generator", default_generator())) {}

  // The steps that are done.
  uint64_t load() const {
    if (path_.empty() || !std::filesystem::exists(path_)) return 0;
    const Checkpoint checkpoint = load_checkpoint(path_);
    const auto options = checkpoint.metadata.find("options");
    const auto step = checkpoint.metadata.find("step");
    if (options == checkpoint.metadata.end() || step == checkpoint.metadata.end()) {
      fail(BALLAST_INVALID_ARGUMENT, "[vit_mnist] {} is no checkpoint of this program", path_);
    }
    if (options->second != options_) {
      fail(BALLAST_INVALID_ARGUMENT, "[vit_mnist] {} is of a run with {}, this one has {}", path_,
           options->second, options_);
    }
    load_into(state_, checkpoint.tensors);
    return std::stoull(step->second);
  }
  void save(uint64_t step) const {
    if (path_.empty()) return;
    save_checkpoint(path_, state_, {{"options", options_}, {"step", std::to_string(step)}});
  }

 private:
  std::string path_, options_;
  StateDict state_;
};

}  // namespace

TrainReport train(const mnist::Data& data, const TrainOptions& options,
                  const std::function<void(const Progress&)>& on_progress) {
  set_seed(options.seed);
  Network network;
  nn::TrainOneStepCell train_net = make_train_net(network, options);
  const RunCheckpoint checkpoint(options, train_net);
  TrainReport report;
  report.first_step = checkpoint.load();

  auto dataset = data::ArrayDataset({data.train_images, data.train_labels})
                     .shuffle(options.seed)
                     .batch(options.batch);
  dataset.start_at(report.first_step);
  data::StackedBatches batches(dataset, options.sink_size, 2);
  auto loop = sink(jit(train_net));
  for (uint64_t done = report.first_step; done < options.steps;) {
    const std::vector<Tensor> stacked = batches.next();
    const auto most = static_cast<uint64_t>(stacked[0].shape()[0]);
    const uint64_t steps = std::min(options.steps - done, most);
    const std::vector<float> losses =
        loop(steps, each(stacked[0]), each(stacked[1])).to_host<float>();
    done += steps;
    checkpoint.save(done);
    report.losses.insert(report.losses.end(), losses.begin(), losses.end());
    if (on_progress) on_progress({done, options.steps, mnist::mean_of(losses)});
  }
  network.set_train(false);
  report.test_accuracy = mnist::test_accuracy(data, network);
  return report;
}

}  // namespace vit_mnist
