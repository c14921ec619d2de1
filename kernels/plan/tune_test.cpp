#include "kernels/plan/tune.h"

#include "device/disk_cache.h"
#include "device/test_environment.h"
#include "kernels/matmul/matmul.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/test_support.h"

#include <filesystem>

namespace ballast::kernels::testing {
namespace {

using device::testing::Environment;

class Tune : public ::testing::Test {
 protected:
  Tune() : folder_(std::filesystem::path(::testing::TempDir()) / "ballast_tune_test") {
    std::filesystem::remove_all(folder_);
  }
  ~Tune() override { std::filesystem::remove_all(folder_); }

  // What each file says.
  std::vector<std::string> stored() const {
    const device::DiskCache cache{folder_};
    std::vector<std::string> all;
    if (!std::filesystem::exists(folder_)) return all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.path().extension() != ".tune") continue;
      all.push_back(cache.load(entry.path().filename()).value_or("unreadable"));
    }
    return all;
  }

  std::filesystem::path folder_;
};

// Which is faster on a busy machine is chance: nothing here depends on it.
TEST_F(Tune, RunsEveryCandidateOnceAndRemembersItsChoice) {
  const Environment on("BALLAST_TUNE", "1"), cache("BALLAST_CACHE_DIR", folder_.string());
  const TuningScope scope(test_device());
  const TensorType type{DType::kF32, {64}};
  int made = 0;
  const auto plan = [&] {
    ++made;
    return plan_pointwise(test_device()->info().device_class, "add", {type, type}, type);
  };
  const std::vector<uint64_t> bytes(3, 64 * sizeof(float));
  const size_t choice = tuned_choice("test remembers", 0, {plan, plan}, bytes);
  EXPECT_LT(choice, 2u);
  EXPECT_EQ(made, 2);
  EXPECT_EQ(stored(), std::vector<std::string>{std::to_string(choice)});
  EXPECT_EQ(tuned_choice("test remembers", 0, {plan, plan}, bytes), choice);
  EXPECT_EQ(made, 2);
}

// The times of each candidate, round by round; the last one stays.
size_t fastest_of(size_t standard, const std::vector<std::vector<double>>& times) {
  std::vector<size_t> round(times.size(), 0);
  return fastest_candidate(times.size(), standard, [&](size_t i) {
    return times[i][std::min(round[i]++, times[i].size() - 1)];
  });
}

TEST(TuneChoice, IsTheCandidateWithTheFastestRound) {
  EXPECT_EQ(fastest_of(0, {{3}, {2}, {1}}), 2u);
  EXPECT_EQ(fastest_of(0, {{3, 2, 2}, {9, 9, 1, 9}, {2, 3, 4}}), 1u);
  EXPECT_EQ(fastest_of(1, {{3}, {2}}), 1u);
}

TEST(TuneChoice, IsTheStandardWithinTheNoise) {
  EXPECT_EQ(fastest_of(0, {{1}, {0.98}}), 0u);
  EXPECT_EQ(fastest_of(0, {{1}, {0.96}}), 1u);
  EXPECT_EQ(fastest_of(1, {{0.98}, {1}}), 1u);
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
