#include "examples/mnist/training.h"

#include "frontend/ballast_frontend.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace mnist {
namespace {

using namespace ballast;
using Clock = std::chrono::steady_clock;

struct Network : nn::Cell {
  nn::SequentialCell layers{nn::Flatten(), nn::Dense(28 * 28, 512), nn::ReLU(), nn::Dense(512, 512),
                            nn::ReLU(),    nn::Dense(512, 10)};
  Network() { add("layers", layers); }
  Tensor construct(const Tensor& x) override { return layers(x); }
};

Tensor hits(const Tensor& logits, const Tensor& labels) {
  return ops::cast(ops::equal(ops::argmax(logits), labels), DType::kF32);
}

// Calls the train step in runs of up to sink_size steps; what a run returns lies on the device.
class Runner {
 public:
  struct Results {
    std::vector<Tensor> losses, accuracies;  // one scalar per step, or one tensor for all
  };

  virtual ~Runner() = default;
  virtual uint64_t run(uint64_t max_steps, Results* results) = 0;  // returns the steps done
  virtual uint64_t first_run_steps(uint64_t max_steps) const { return max_steps; }
  virtual std::optional<CompiledInfo> info() const { return std::nullopt; }
  virtual uint64_t queue_bytes() const = 0;  // of the batches that one run takes
};

template <class Step>
struct IsJit : std::false_type {};
template <class F>
struct IsJit<Jit<F>> : std::true_type {};

template <class Step>
class StepwiseRunner : public Runner {
 public:
  StepwiseRunner(Step step, data::Dataset dataset) : step_(std::move(step)), dataset_(dataset) {}

  uint64_t run(uint64_t max_steps, Results* results) override {
    for (uint64_t i = 0; i < max_steps; ++i) {
      if (!(next_ != dataset_.end())) next_ = dataset_.begin();
      const data::Batch& batch = *next_;
      batch_bytes_ = batch[0].type().bytes() + batch[1].type().bytes();
      auto [loss, accuracy] = step_(batch[0], batch[1]);
      results->losses.push_back(loss);
      results->accuracies.push_back(accuracy);
      ++next_;
    }
    return max_steps;
  }
  uint64_t queue_bytes() const override { return batch_bytes_; }
  // One step, so that its time is that of compiling.
  uint64_t first_run_steps(uint64_t) const override { return 1; }
  std::optional<CompiledInfo> info() const override {
    if constexpr (IsJit<Step>::value) return step_.info();
    return std::nullopt;
  }

 private:
  Step step_;
  data::Dataset dataset_;
  data::Dataset::Iterator next_;
  uint64_t batch_bytes_ = 0;
};

template <class F>
class SinkRunner : public Runner {
 public:
  SinkRunner(Jit<F> step, data::Dataset dataset, uint64_t sink_size)
      : loop_(std::move(step)), batches_(std::move(dataset), sink_size, 2) {}

  uint64_t run(uint64_t max_steps, Results* results) override {
    std::vector<Tensor> batches = batches_.next();
    uint64_t steps = std::min<uint64_t>(max_steps, batches[0].shape()[0]);
    queue_bytes_ = std::max(queue_bytes_, batches[0].type().bytes() + batches[1].type().bytes());
    auto [losses, accuracies] = loop_(steps, each(batches[0]), each(batches[1]));
    results->losses.push_back(losses);
    results->accuracies.push_back(accuracies);
    return steps;
  }
  std::optional<CompiledInfo> info() const override { return loop_.info(); }
  uint64_t queue_bytes() const override { return queue_bytes_; }

 private:
  uint64_t queue_bytes_ = 0;
  Sink<F> loop_;
  data::StackedBatches batches_;
};

// A function of (images, labels) that trains once and returns loss and accuracy of the batch.
auto make_train_step(Network net, nn::Momentum optimizer) {
  auto forward = [net](const Tensor& images, const Tensor& labels) mutable {
    Tensor logits = net(images);
    Tensor loss = nn::CrossEntropyLoss()(logits, labels);
    return std::pair(loss, logits);
  };
  auto grad_fn = value_and_grad(forward, std::nullopt, optimizer.parameters(), true);
  return [grad_fn, optimizer](const Tensor& images, const Tensor& labels) mutable {
    auto [value, gradients] = grad_fn(images, labels);
    auto [loss, logits] = value;
    Tensor accuracy = ops::mean(hits(logits, labels));
    return std::pair(depend(loss, optimizer(gradients)), accuracy);
  };
}

std::unique_ptr<Runner> make_runner(const Data& data, const TrainOptions& options, Network net) {
  auto step = make_train_step(
      net, nn::Momentum(net.trainable_params(), options.learning_rate, options.momentum));
  auto batches = data::ArrayDataset({data.train_images, data.train_labels})
                     .shuffle(options.seed)
                     .batch(options.batch);
  using Step = decltype(step);
  if (options.mode == RunMode::kEager) {
    return std::make_unique<StepwiseRunner<Step>>(step, batches.prefetch(8));
  }
  if (options.mode == RunMode::kJit) {
    return std::make_unique<StepwiseRunner<Jit<Step>>>(jit(step), batches.prefetch(8));
  }
  return std::make_unique<SinkRunner<Step>>(jit(step), batches, options.sink_size);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<float> read_all(const std::vector<Tensor>& tensors) {
  std::vector<float> values;
  for (const Tensor& tensor : tensors) {
    for (float value : tensor.to_host<float>()) values.push_back(value);
  }
  return values;
}

// What the plugin counted while training, summed over runs.
struct Costs {
  uint64_t host_calls = 0, launches = 0, bytes = 0;

  void add(const Counters& before, const Counters& after) {
    host_calls += after.host_calls - before.host_calls;
    launches += after.kernel_launches - before.kernel_launches;
    bytes += after.bytes_to_device - before.bytes_to_device + after.bytes_to_host -
             before.bytes_to_host + after.bytes_on_device - before.bytes_on_device;
  }
};

uint64_t bytes_of(const std::vector<Parameter>& parameters) {
  uint64_t bytes = 0;
  for (const Parameter& parameter : parameters) bytes += parameter.type().bytes();
  return bytes;
}

}  // namespace

double mean_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TrainReport train(const Data& data, const TrainOptions& options,
                  const std::function<void(const Progress&)>& on_progress) {
  set_seed(options.seed);
  Network net;
  std::unique_ptr<Runner> runner = make_runner(data, options, net);
  synchronize();
  reset_peak_memory();

  TrainReport report;
  Costs costs;
  Clock::time_point start = Clock::now();
  uint64_t done = 0, counted_from = 0;
  while (done < options.steps) {
    uint64_t most = std::min(options.sink_size, options.steps - done);
    if (done == 0) most = runner->first_run_steps(most);
    Counters before = counters();
    Runner::Results results;
    uint64_t steps = runner->run(most, &results);
    costs.add(before, counters());
    std::vector<float> losses = read_all(results.losses);
    std::vector<float> accuracies = read_all(results.accuracies);
    done += steps;
    report.losses.insert(report.losses.end(), losses.begin(), losses.end());
    report.steps_per_second = static_cast<double>(done - counted_from) / seconds_since(start);
    if (done == steps) report.first_run_seconds = seconds_since(start);
    if (on_progress) {
      on_progress(
          {done, options.steps, mean_of(losses), mean_of(accuracies), report.steps_per_second});
    }
    if (done == steps && done < options.steps) {  // from here on nothing is compiled
      counted_from = done;
      costs = {};
      start = Clock::now();
    }
  }

  double counted = static_cast<double>(std::max<uint64_t>(1, done - counted_from));
  report.host_calls_per_step = static_cast<double>(costs.host_calls) / counted;
  report.launches_per_step = static_cast<double>(costs.launches) / counted;
  report.bytes_moved_per_step = static_cast<double>(costs.bytes) / counted;
  report.peak_bytes = memory_stats().peak_in_use;
  if (auto info = runner->info()) {
    // Parameters and their accumulators, the batches, and everything in between.
    report.every_tensor_bytes = info->naive_bytes + info->constant_bytes + runner->queue_bytes() +
                                2 * bytes_of(net.trainable_params());
  }
  report.test_accuracy = test_accuracy(data, net, options.mode);
  return report;
}

double test_accuracy(const Data& data, nn::Cell& net, RunMode mode) {
  auto count_hits = [&](const Tensor& images, const Tensor& labels) {
    return ops::sum(hits(net(images), labels));
  };
  auto compiled = jit(count_hits);
  double count = 0;
  for (const data::Batch& batch :
       data::ArrayDataset({data.test_images, data.test_labels}).batch(250)) {
    Tensor sum =
        mode == RunMode::kEager ? count_hits(batch[0], batch[1]) : compiled(batch[0], batch[1]);
    count += sum.item<float>();
  }
  return count / static_cast<double>(data.test_labels.elements());
}

}  // namespace mnist
