// The programs of the seeds, run as a user runs them: they print what they promise, their losses
// are JAX's (tests/fixtures/make_seed_losses.py), and eager, jit and sink give the same bits where
// they run the same kernels.
#include "tests/support/run_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ballast {
namespace {

using ::testing::HasSubstr;
using tests::Outcome;
using tests::run_command;
using Values = std::vector<double>;
using Records = std::map<std::string, Values>;

constexpr double kTolerance = 1e-4;  // relative

// Programs leave their files in the folder.
Outcome run_program(const std::string& name, const std::string& options,
                    const std::string& folder = ".") {
  const std::string program = BALLAST_EXAMPLES_DIR "/" + name + "/" + name;
  return run_command("cd '" + folder + "' && '" + program + "' " + options + " 2>&1");
}

struct Program {
  const char* name;
  std::vector<std::string> says;
};

std::ostream& operator<<(std::ostream& out, const Program& program) { return out << program.name; }

class SeedPrograms : public ::testing::TestWithParam<Program> {
 protected:
  SeedPrograms() { std::filesystem::create_directories(folder_); }
  ~SeedPrograms() override { std::filesystem::remove_all(folder_); }

  // Runs the program and returns what it recorded; text_ is what it printed.
  Records run(const std::string& options) {
    Outcome outcome = run_program(GetParam().name, options + " --losses losses.json", folder_);
    text_ = outcome.text;
    EXPECT_EQ(outcome.status, 0) << text_;
    std::ifstream file(folder_ + "/losses.json");
    return nlohmann::json::parse(file).get<Records>();
  }

  const std::string folder_ =
      std::filesystem::temp_directory_path() / ("ballast_seeds_" + std::to_string(getpid()));
  std::string text_;
};

bool is_mode(const std::string& name) { return name == "eager" || name == "jit" || name == "sink"; }

Records fixture_of(const std::string& program) {
  std::ifstream file(BALLAST_SOURCE_DIR "/tests/fixtures/seed_losses.json");
  return nlohmann::json::parse(file).at(program).get<Records>();
}

// Every record of the fixture's, and nothing that it does not know.
void expect_jax(const Records& records, const Records& fixture) {
  EXPECT_EQ(records.size(), fixture.size() + 2);  // "losses" are those of three modes
  for (const auto& [name, values] : records) {
    const auto found = fixture.find(is_mode(name) ? "losses" : name);
    ASSERT_NE(found, fixture.end()) << name;
    const Values& expected = found->second;
    ASSERT_EQ(values.size(), expected.size()) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], expected[i], kTolerance * std::abs(expected[i])) << name << ", " << i;
    }
  }
}

TEST_P(SeedPrograms, ModesAgreeBitForBitUnfused) {
  Records records = run("--no-table --level O0");
  expect_jax(records, fixture_of(GetParam().name));
  EXPECT_EQ(records["eager"], records["jit"]);
  EXPECT_EQ(records["eager"], records["sink"]);
}

TEST_P(SeedPrograms, LossesAreThoseOfJaxAndTheTableIsPrinted) {
  Records records = run("");
  expect_jax(records, fixture_of(GetParam().name));
  EXPECT_EQ(records["jit"], records["sink"]);
  for (const std::string& said : GetParam().says) EXPECT_THAT(text_, HasSubstr(said));
  EXPECT_THAT(text_, HasSubstr("\nmode    first call    per step    steps\neager "));
  EXPECT_THAT(text_, HasSubstr("\njit "));
  EXPECT_THAT(text_, HasSubstr("\nsink "));
}

const Program kPrograms[] = {
    {"autodiff",
     {"The derivative of x sin x is a program:\n", " = cos a\n", "\nat 1.5 ",
      "\nfor              5.062500   13.500000   27.000000   36.000000\n"}},
    {"custom_training_loop", {"Start training on ", "Epoch: 1, Loss: ", "Epoch: 5, Loss: "}},
    {"eager_and_graph",
     {"Debug Info - Intermediate value z: f32[2, 2] [[2, 2], [2, 2]]\n",
      "Final Output:\nf32[2, 2] [[4, 4], [4, 4]]\n2 kernels launched\n",
      "Graph Mode Output:\nf32[2, 2] [[4, 4], [4, 4]]\n1 kernel launched\n",
      "value z:\nTensor(shape=[2, 2], dtype=Float32, value=\n[[ 2.00000000e+00,  "
      "2.00000000e+00],\n",
      "Start warmup (Graph Compilation)...\nWarmup done.\n",
      "100 steps finished. Average time per step: "}},
    {"vision_transformer",
     {"Attention shape: [2, 8, 196, 196]\n", "Gradient shape: [2, 196, 256]\n",
      "Epoch [2/2], Average Loss: ",
      "Loaded vit_ascend.safetensors: 2 epochs are done\nEpoch [3/5], ",
      "Dynamic debug: Attention output shape [2, 8, 196, 32]\n"}},
    {"ways_to_jit",
     {"PyNative mode\nTensor(shape=[2, 10], dtype=Float32, value=\n[[ 6.4891",
      "\nGraph mode\nTensor(", "An if on a tensor:\n  [tensor] a traced f32[] has no value",
      "use cond, while_loop or ",
      "A tensor kept from a trace:\n  [add] input 0 is a traced f32[64, 1, 28, 28] whose trace has "
      "ended",
      "Another shape:\n  [matmul] inner extents differ: 756 of input 0"}},
};

INSTANTIATE_TEST_SUITE_P(All, SeedPrograms, ::testing::ValuesIn(kPrograms),
                         [](const auto& of) { return std::string(of.param.name); });

TEST(SeedProgramOptions, AMistakeEndsTheProgram) {
  Outcome outcome = run_program("custom_training_loop", "--steps 0");
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.text, HasSubstr("--steps"));
  outcome = run_program("custom_training_loop", "--no-table --steps 1 --losses /nowhere/losses");
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.text, HasSubstr("[--losses] cannot write /nowhere/losses"));
}

}  // namespace
}  // namespace ballast
