// The vision transformer learns real images.
#include "examples/vit_mnist/training.h"

#include <gtest/gtest.h>

namespace vit_mnist {
namespace {

TEST(VitMnist, ReachesTheAccuracy) {
  TrainOptions options;
  options.steps = 1000;  // 8 epochs
  const TrainReport report =
      train(mnist::load(std::string(BALLAST_SOURCE_DIR) + "/.venv/data"), options);
  EXPECT_EQ(report.losses.size(), options.steps);
  EXPECT_GE(report.test_accuracy, 0.84);  // 0.95 after 30 epochs
}

}  // namespace
}  // namespace vit_mnist
