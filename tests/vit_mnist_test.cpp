// examples/vit_mnist as a process that is killed: in the middle of a run of steps, and while it
// writes a checkpoint. Started again it goes on, and its last checkpoint has the bytes of that of a
// run that nobody stopped.
#include "frontend/state/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace ballast {
namespace {

constexpr uint64_t kSteps = 60;

class VitMnist : public ::testing::Test {
 protected:
  VitMnist() { std::filesystem::create_directories(folder_); }
  ~VitMnist() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  // Files of checkpoints that are not finished.
  int temporaries() const {
    int found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      found += entry.path().extension() == ".tmp" ? 1 : 0;
    }
    return found;
  }

  const std::string folder_ = ::testing::TempDir() + "vit_mnist_" + std::to_string(getpid());
};

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The process that trains.
class Training {
 public:
  explicit Training(const std::string& checkpoint) {
    const std::string data = BALLAST_SOURCE_DIR "/.venv/data", steps = std::to_string(kSteps);
    const char* const program = BALLAST_VIT_MNIST;
    const std::vector<const char*> arguments = {
        program,  "--steps",    steps.c_str(),  "--sink-size",      "4",    "--batch", "16",
        "--data", data.c_str(), "--checkpoint", checkpoint.c_str(), nullptr};
    pid_ = fork();
    if (pid_ != 0) return;
    execv(program, const_cast<char* const*>(arguments.data()));
    _exit(127);
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  void kill() {
    ::kill(pid_, SIGKILL);
    const int status = wait();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  }
  // What waitpid says once it has ended.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return status;
  }

 private:
  pid_t pid_ = -1;
};

uint64_t steps_in(const std::string& checkpoint) {
  if (!std::filesystem::exists(checkpoint)) return 0;
  return std::stoull(load_checkpoint(checkpoint).metadata.at("step"));
}

// Kills a run among the steps that follow this one; gives the step of its last checkpoint.
uint64_t kill_after(uint64_t step, const std::string& checkpoint) {
  Training run(checkpoint);
  while (steps_in(checkpoint) < step) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  run.kill();
  return steps_in(checkpoint);
}

TEST_F(VitMnist, KilledAnywhereItEndsWithTheSameBytes) {
  ASSERT_EQ(Training(file("whole")).wait(), 0);
  ASSERT_EQ(steps_in(file("whole")), kSteps);

  const std::string path = file("stopped");
  const uint64_t first = kill_after(4, path);
  EXPECT_GE(first, 4u);
  const uint64_t second = kill_after(first + 4, path);
  ASSERT_LT(second, kSteps);

  // Now while a checkpoint is written, so that a part of one is left beside the last. Whoever waits
  // for that may come too late.
  for (int attempt = 0; attempt < 5 && temporaries() == 0; ++attempt) {
    const auto before = std::filesystem::last_write_time(path);
    Training run(path);
    while (temporaries() == 0 && std::filesystem::last_write_time(path) == before) {
    }
    run.kill();
  }
  EXPECT_GE(temporaries(), 1);

  ASSERT_EQ(Training(path).wait(), 0);
  EXPECT_EQ(steps_in(path), kSteps);
  EXPECT_EQ(temporaries(), 0);
  EXPECT_TRUE(bytes_of(path) == bytes_of(file("whole")));
}

TEST_F(VitMnist, RefusesACheckpointOfAnotherRun) {
  save_checkpoint(file("other"), TensorMap{{"x", Tensor::on_host(std::vector<float>{1}, {1})}});
  const int status = Training(file("other")).wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
}

}  // namespace
}  // namespace ballast
