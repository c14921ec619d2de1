// Trains the Flatten-784-512-ReLU-512-ReLU-10 network and counts what it costs. One function for
// all modes: they differ in how the same train step is called.
#pragma once

#include "examples/mnist/mnist_data.h"
#include "frontend/modes/context.h"
#include "frontend/nn/cell.h"

#include <functional>
#include <optional>
#include <vector>

namespace mnist {

enum class RunMode { kEager, kJit, kSink };

struct TrainOptions {
  RunMode mode = RunMode::kSink;
  uint64_t steps = 1000;
  uint64_t sink_size = 100;  // steps per host call; in the other modes, steps between two readings
  int64_t batch = 64;
  uint64_t seed = 1;
  float learning_rate = 0.05f;
  float momentum = 0.9f;
};

struct Progress {
  uint64_t steps_done = 0, steps = 0;
  double loss = 0, accuracy = 0;  // means over the steps since the last report
  double steps_per_second = 0;    // without the first call, unless it is the only one
};

struct TrainReport {
  std::vector<float> losses;  // one per step
  double test_accuracy = 0;
  double first_run_seconds = 0;  // of the first call, compilation included
  double steps_per_second = 0;
  // Counted by the plugin over the calls that train (again without the first), not over those that
  // read results back.
  double host_calls_per_step = 0;
  double launches_per_step = 0;
  double bytes_moved_per_step = 0;
  uint64_t peak_bytes = 0;                     // device memory in use at once during training
  std::optional<uint64_t> every_tensor_bytes;  // had each tensor memory of its own; not in eager
};

TrainReport train(const Data& data, const TrainOptions& options,
                  const std::function<void(const Progress&)>& on_progress = {});

// The part of the test images to which a network gives the right digit.
double test_accuracy(const Data& data, ballast::nn::Cell& net, RunMode mode = RunMode::kJit);

double mean_of(const std::vector<float>& values);

}  // namespace mnist
