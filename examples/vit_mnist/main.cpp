// Trains a small vision transformer on MNIST; stopped at any moment and started again, it goes on.
#include "examples/vit_mnist/training.h"
#include "frontend/backend/backend.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <chrono>

namespace {

void add_options(CLI::App& app, vit_mnist::TrainOptions& options, std::string& data) {
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--sink-size", options.sink_size, "most steps between two checkpoints")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batch", options.batch)->check(CLI::Range(1, 4000))->capture_default_str();
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_option("--learning-rate", options.learning_rate)->capture_default_str();
  app.add_option("--checkpoint", options.checkpoint,
                 "go on from this file, and keep it up to date");
  app.add_option("--data", data, "folder of images.npy and labels.npy")->capture_default_str();
}

void run(const vit_mnist::TrainOptions& options, const std::string& data) {
  fmt::print("device: {}\n", ballast::device_info().name);
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  auto show = [&](const vit_mnist::Progress& progress) {
    fmt::print("step {:>5} of {}  loss {:.4f}  {:.0f} s\n", progress.steps_done, progress.steps,
               progress.loss, seconds());
    std::fflush(stdout);
  };
  const vit_mnist::TrainReport report = vit_mnist::train(mnist::load(data), options, show);
  if (report.first_step > 0) fmt::print("went on after step {}\n", report.first_step);
  fmt::print("test accuracy {:.4f}, after {:.1f} s\n", report.test_accuracy, seconds());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a small vision transformer on 4,000 MNIST images, sunk.");
  vit_mnist::TrainOptions options;
  std::string data = ".venv/data";
  add_options(app, options, data);
  CLI11_PARSE(app, argc, argv);
  try {
    run(options, data);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "vit_mnist: {}\n", error.what());
    return 1;
  }
}
