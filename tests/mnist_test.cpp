// The main job in every mode, with its default options, on the real images.
#include "examples/mnist/training.h"

#include <gtest/gtest.h>

namespace mnist {
namespace {

class Mnist : public ::testing::TestWithParam<RunMode> {};

TEST_P(Mnist, ReachesTheAccuracy) {
  TrainOptions options;
  options.mode = GetParam();
  TrainReport report = train(load(std::string(BALLAST_SOURCE_DIR) + "/.venv/data"), options);
  EXPECT_GE(report.test_accuracy, 0.93);
  EXPECT_EQ(report.losses.size(), options.steps);
  EXPECT_LT(report.losses.back(), report.losses.front() / 10);
}

INSTANTIATE_TEST_SUITE_P(Modes, Mnist,
                         ::testing::Values(RunMode::kEager, RunMode::kJit, RunMode::kSink));

}  // namespace
}  // namespace mnist
