#include "kernels/tune.h"

#include "kernels/matmul/matmul.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/test_support.h"

#include <stdlib.h>

#include <filesystem>

namespace ballast::kernels::testing {
namespace {

// Sets a variable of the environment, and puts back what was there.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* before = getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Environment() { before_.empty() ? unsetenv(name_) : setenv(name_, before_.c_str(), 1); }

 private:
  const char* name_;
  std::string before_;
};

class Tune : public ::testing::Test {
 protected:
  Tune() : folder_(std::filesystem::path(::testing::TempDir()) / "ballast_tune_test") {
    std::filesystem::remove_all(folder_);
  }
  ~Tune() override { std::filesystem::remove_all(folder_); }

  size_t files() const {
    size_t count = 0;
    if (!std::filesystem::exists(folder_)) return 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      count += entry.path().extension() == ".tune";
    }
    return count;
  }

  std::filesystem::path folder_;
};

Plan add_plan(int64_t elements) {
  const TensorType type{DType::kF32, {elements}};
  return plan_pointwise(DeviceClass::kCpu, "add", {type, type}, type);
}

TEST_F(Tune, TakesTheFastestAndRemembersIt) {
  const Environment on("BALLAST_TUNE", "1"), cache("BALLAST_CACHE_DIR", folder_.string());
  const TuningScope scope(test_device());
  constexpr int64_t kLarge = 1 << 22;
  int made = 0;
  const auto slow = [&] { return ++made, add_plan(kLarge); };
  const auto fast = [&] { return ++made, add_plan(16); };
  const std::vector<uint64_t> bytes(3, kLarge * sizeof(float));
  EXPECT_EQ(tuned_choice("test large or small", 0, {slow, fast}, bytes), 1u);
  EXPECT_EQ(made, 2);
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(tuned_choice("test large or small", 0, {slow, fast}, bytes), 1u);
  EXPECT_EQ(made, 2);
}

TEST_F(Tune, KeepsTheStandardWhenOff) {
  const auto never = []() -> Plan {
    ADD_FAILURE() << "measured though tuning is off";
    return {};
  };
  {
    const Environment off("BALLAST_TUNE", "0");
    const TuningScope scope(test_device());
    EXPECT_EQ(tuned_choice("test off", 1, {never, never}, {}), 1u);
  }
  const Environment on("BALLAST_TUNE", "1");
  EXPECT_EQ(tuned_choice("test without a scope", 1, {never, never}, {}), 1u);
}

TEST_F(Tune, ATunedProductHasTheSameBits) {
  const MatmulConfig config{70, 112, 48, true, true};
  const HostTensor a = random_f32({48, 70}, 1), b = random_f32({112, 48}, 2);
  const TensorType type{DType::kF32, {70, 112}};
  const DeviceClass device_class = test_device()->info().device_class;
  const HostTensor standard = run_plan(plan_matmul(device_class, config), {a, b}, type);
  const Environment on("BALLAST_TUNE", "1"), cache("BALLAST_CACHE_DIR", folder_.string());
  const TuningScope scope(test_device());
  const HostTensor tuned = run_plan(plan_matmul(device_class, config), {a, b}, type);
  EXPECT_EQ(tuned.bytes, standard.bytes);
}

}  // namespace
}  // namespace ballast::kernels::testing
