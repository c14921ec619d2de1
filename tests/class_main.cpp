// Runs a suite with the schedules of the class of devices that BALLAST_TEST_CLASS names (gpu),
// whatever the device is; without it, with the device's own.
#include "tests/gpu_class.h"

#include <cstdlib>
#include <string>

namespace {

class ClassEnvironment : public testing::Environment {
  void SetUp() override {
    const char* name = std::getenv("BALLAST_TEST_CLASS");
    if (name != nullptr && std::string(name) == "gpu") ballast::tests::use_gpu_class();
  }
  // PoCL may still be compiling what no test has waited for, and does not bear the end of a
  // process.
  void TearDown() override { ballast::device()->sync(); }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new ClassEnvironment);
  return RUN_ALL_TESTS();
}
