// What one process exports another runs, with the bits that jit gives here.
#include "frontend/ballast_frontend.h"
#include "frontend/test_support.h"
#include "tests/support/run_command.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace ballast::tests {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string path_of(const std::string& name) {
  const char* device = std::getenv("BALLAST_DEVICE");
  return testing::TempDir() + "export_test_" + (device ? device : "any") + "_" + name;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// What the program without a frontend prints, as lines of numbers.
std::vector<std::vector<float>> run_elsewhere(const std::string& path,
                                              const std::vector<float>& inputs) {
  const char* device = std::getenv("BALLAST_DEVICE");
  std::string command = fmt::format("'{}' '{}' '{}' '{}'", RUN_EXPORTED, BALLAST_PLUGIN_FILE, path,
                                    device ? device : "");
  for (float value : inputs) command += fmt::format(" {}", value);
  const auto [status, text] = run_command(command);
  EXPECT_EQ(status, 0) << text;
  std::vector<std::vector<float>> lines(1);
  for (const char* next = text.c_str(); *next != '\0';) {
    char* end = nullptr;
    lines.back().push_back(std::strtof(next, &end));
    next = end;
    if (*next == '\n') {
      ++next;
      lines.emplace_back();
    }
  }
  lines.pop_back();
  return lines;
}

struct Net {
  Net() { set_seed(3); }
  nn::SequentialCell cell{nn::Dense(3, 16), nn::ReLU(), nn::Dense(16, 2)};
};

TEST(ExportTest, AnotherProcessRunsACell) {
  Net net;
  Tensor x = Tensor::from_host<float>({.1f, -.2f, 3, 4, .5f, -6}, {2, 3});
  const std::string path = path_of("cell");
  export_function(path, net.cell, x);
  const std::vector<float> expected =
      jit([&](Tensor in) { return net.cell(in); })(x).to_host<float>();
  EXPECT_EQ(run_elsewhere(path, x.to_host<float>()).at(0), expected);
  LoadedFunction loaded = load_function(path);
  EXPECT_EQ(loaded.inputs(), (std::vector<TensorType>{x.type()}));
  EXPECT_EQ(loaded({x}).at(0).to_host<float>(), expected);
}

// Trees, state that changes, tensors from outside, draws, and control flow.
TEST(ExportTest, EverythingAFunctionUsesGoesAlong) {
  Parameter total(Tensor::from_host<float>({1, 2}, {2}), "total");
  Tensor outside = Tensor::from_host<float>({.5f, 2}, {2});
  Generator generator(5);
  auto step = [&](std::pair<Tensor, Tensor> in) {
    Tensor noise = ops::random_uniform(Shape{2}, 0, 1, generator);
    total.assign(total + in.first * outside + noise);
    Tensor doubled = while_loop([](Tensor c) { return ops::less(ops::sum(c), 50); },
                                [](Tensor c) { return c * 2.0f; }, total.value());
    return std::pair(doubled, std::vector<Tensor>{in.second * total, noise});
  };
  const auto arguments = std::pair(Tensor::from_host<float>({3, 4}, {2}), Tensor::scalar(2));
  const std::string path = path_of("everything");
  export_function(path, step, arguments);
  const auto here = run_elsewhere(path, {3, 4, 2});
  LoadedFunction loaded = load_function(path);
  auto jitted = jit(step);
  for (int run = 0; run < 3; ++run) {
    const std::vector<Tensor> expected = leaves_of(jitted(arguments));
    const std::vector<Tensor> got = loaded(leaves_of(arguments));
    ASSERT_EQ(got.size(), 3u);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].to_host<float>(), expected[i].to_host<float>()) << run;
      if (run == 0) {
        EXPECT_EQ(here.at(i), expected[i].to_host<float>());
      }
    }
  }
}

TEST(ExportTest, LevelsAgreeWithJits) {
  Net net;
  Tensor x = Tensor::from_host<float>({.1f, -.2f, 3}, {1, 3});
  const std::string path = path_of("levels");
  auto fn = [&](Tensor in) { return ops::softmax(net.cell(in) * 3.0f); };
  export_function(path, fn, x);
  for (const JitLevel level : {JitLevel::kO0, JitLevel::kO1}) {
    EXPECT_EQ(load_function(path, {level})({x})[0].to_host<float>(),
              jit(fn, {level})(x).to_host<float>());
  }
}

TEST(ExportTest, PrintsGoAlong) {
  const std::string path = path_of("prints");
  export_function(
      path,
      [](Tensor x) {
        ops::print("x", x);
        return x;
      },
      Tensor::scalar(1));
  std::vector<std::string> texts;
  set_print_sink([&](const std::string& text) { texts.push_back(text); });
  load_function(path)({Tensor::scalar(2)});
  set_print_sink(nullptr);
  EXPECT_THAT(texts, testing::ElementsAre("x\nTensor(shape=[], dtype=Float32, value= 2)\n"));
}

TEST(ExportTest, DamagedFilesAreRefused) {
  Parameter w(Tensor::from_host<float>({1, 2}, {2}), "w");
  const std::string path = path_of("whole"), broken = path_of("broken");
  export_function(
      path, [&](Tensor x) { return x * w; }, Tensor::ones({2}));
  const std::string bytes = content_of(path);
  auto message = [&](const std::string& changed) {
    write(broken, changed);
    return message_of(BALLAST_INVALID_ARGUMENT, [&] { load_function(broken); });
  };
  const uint64_t in_use = memory_stats().in_use;
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THAT(message(bytes.substr(0, length)), HasSubstr(broken)) << length;
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] ^= 1;
    EXPECT_THAT(message(changed), HasSubstr(broken)) << at;
  }
  EXPECT_EQ(memory_stats().in_use, in_use) << "nothing of them is kept";
  EXPECT_THAT(message("ballast.function 2\n"), HasSubstr("has version 2, this plugin reads 1"));
  EXPECT_THAT(message("PK\3\4"), HasSubstr("is no exported function"));
  EXPECT_THAT(message(bytes + "x"), HasSubstr("bytes after its head, which names"));
  EXPECT_THAT(message_of(BALLAST_NOT_FOUND, [&] { load_function(path_of("nowhere")); }),
              HasSubstr("there is no such file"));
  EXPECT_THAT(message_of([&] { load_function(testing::TempDir()); }), HasSubstr("cannot be read"));
}

TEST(ExportTest, MistakesAreNamed) {
  Tensor x = Tensor::ones({2});
  const std::string path = path_of("mistakes");
  export_function(
      path, [](Tensor a) { return a * 2.0f; }, x);
  const std::string before = content_of(path);
  EXPECT_THAT(
      message_of(BALLAST_INVALID_ARGUMENT, [&] { load_function(path)({Tensor::ones({3})}); }),
      HasSubstr("[load_function] the arguments are f32[3], the function takes f32[2]"));
  EXPECT_THAT(message_of(BALLAST_INVALID_ARGUMENT, [&] { load_function(path)({}); }),
              HasSubstr("the arguments are none"));
  auto nested = [&](Tensor outer) {
    export_function(
        path, [](Tensor a) { return a; }, outer);
    return outer;
  };
  EXPECT_THAT(message_of(BALLAST_FAILED_PRECONDITION, [&] { jit(nested)(x); }),
              HasSubstr("[export_function] called inside a traced function"));
  EXPECT_THAT(message_of(BALLAST_INVALID_ARGUMENT,
                         [&] {
                           export_function(
                               path_of("no/such/folder"), [](Tensor a) { return a; }, x);
                         }),
              HasSubstr("cannot be created"));
  EXPECT_EQ(content_of(path), before);
  fs::remove(path);
}

}  // namespace
}  // namespace ballast::tests
