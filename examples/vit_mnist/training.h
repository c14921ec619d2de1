// Trains the vision transformer on MNIST, sunk, with a checkpoint after every run of steps:
// weights, Adam's moments, the step, the place in the data and the random numbers' state. A run
// that was stopped at any moment goes on from there and ends with the bits of one that was not.
#pragma once

#include "examples/mnist/mnist_data.h"

#include <functional>
#include <string>
#include <vector>

namespace vit_mnist {

struct TrainOptions {
  uint64_t steps = 3750;  // 30 epochs
  uint64_t sink_size = 25;
  int64_t batch = 32;
  uint64_t seed = 1;
  float learning_rate = 1.5e-3f;  // at its highest; it warms up and falls along a cosine
  std::string checkpoint;         // its file; empty: none
};

struct Progress {
  uint64_t steps_done = 0, steps = 0;
  double loss = 0;  // the mean since the last report
};

struct TrainReport {
  uint64_t first_step = 0;    // where the checkpoint ended
  std::vector<float> losses;  // of the steps since
  double test_accuracy = 0;
};

// A checkpoint of other options than these is an Error.
TrainReport train(const mnist::Data& data, const TrainOptions& options,
                  const std::function<void(const Progress&)>& on_progress = {});

}  // namespace vit_mnist
