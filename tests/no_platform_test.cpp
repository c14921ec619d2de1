// Run where no OpenCL implementation is installed (see CMakeLists.txt).
#include "frontend/tensor/tensor.h"

#include <gtest/gtest.h>

namespace ballast::tests {
namespace {

TEST(NoPlatformTest, ListingIsEmptyAndUsingADeviceSaysWhy) {
  EXPECT_TRUE(list_devices().empty());
  try {
    Tensor::zeros({2});
    FAIL() << "no error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), BALLAST_NOT_FOUND);
    EXPECT_NE(std::string(error.what()).find("OpenCL"), std::string::npos) << error.what();
  }
}

TEST(NoPlatformTest, TypesAreInferredWithoutADevice) {
  TensorType type{DType::kF32, {2, 3}};
  EXPECT_EQ(infer("exp", {type}, {}).at(0), type);
}

}  // namespace
}  // namespace ballast::tests
