// The main job: trains a small network on MNIST, by default sunk on the device.
#include "examples/mnist/loss_plot.h"
#include "examples/mnist/progress_bar.h"
#include "examples/mnist/training.h"
#include "frontend/backend/backend.h"
#include "frontend/backend/plugin.h"
#include "frontend/backend/profile.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <map>

namespace {

struct Arguments {
  mnist::TrainOptions train;
  std::string device, plugin, data = ".venv/data", plot;
  ballast::JitLevel level = ballast::JitLevel::kO1;
  bool list_devices = false, profile = false;
};

void add_options(CLI::App& app, Arguments& a) {
  static const std::map<std::string, mnist::RunMode> kModes = {{"eager", mnist::RunMode::kEager},
                                                               {"jit", mnist::RunMode::kJit},
                                                               {"sink", mnist::RunMode::kSink}};
  static const std::map<std::string, ballast::JitLevel> kLevels = {{"O0", ballast::JitLevel::kO0},
                                                                   {"O1", ballast::JitLevel::kO1}};
  app.add_option("--mode", a.train.mode,
                 "eager: op by op; jit: one call per step; sink: one call "
                 "for many steps (default)")
      ->transform(CLI::CheckedTransformer(kModes));
  app.add_option("--level", a.level, "optimization of jit and sink: O0 or O1 (default)")
      ->transform(CLI::CheckedTransformer(kLevels));
  app.add_option("--device", a.device, "pocl, intel, a number or part of a name");
  app.add_option("--steps", a.train.steps)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--sink-size", a.train.sink_size, "most steps per host call")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batch", a.train.batch)->check(CLI::Range(1, 4000))->capture_default_str();
  app.add_option("--seed", a.train.seed)->capture_default_str();
  app.add_option("--learning-rate", a.train.learning_rate)->capture_default_str();
  app.add_option("--data", a.data, "folder of images.npy and labels.npy")->capture_default_str();
  app.add_option("--plot", a.plot, "write the loss curve to this SVG file");
  app.add_option("--plugin", a.plugin, "the plugin to load instead of libballast.so");
  app.add_flag("--profile", a.profile, "print the device time of every kernel at the end");
  app.add_flag("--list-devices", a.list_devices, "list the devices and stop");
}

void list_devices() {
  for (const ballast::DeviceInfo& info : ballast::list_devices()) {
    fmt::print("{}  {}  ({}, driver {}, {} compute units, {} MiB{})\n", info.ordinal, info.name,
               info.platform, info.driver, info.compute_units, info.memory_bytes >> 20,
               info.has_command_buffer ? ", command buffers" : "");
  }
}

void print_report(const mnist::TrainReport& report) {
  auto mib = [](uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  fmt::print("\ntest accuracy          {:.4f}\n", report.test_accuracy);
  fmt::print("steps per second       {:.0f}\n", report.steps_per_second);
  fmt::print("first call             {:.2f} s (compiles)\n", report.first_run_seconds);
  fmt::print("host calls per step    {:.4g}\n", report.host_calls_per_step);
  fmt::print("launches per step      {:.4g}\n", report.launches_per_step);
  fmt::print("bytes moved per step   {:.0f}\n", report.bytes_moved_per_step);
  fmt::print("peak device memory     {:.1f} MiB", mib(report.peak_bytes));
  if (report.every_tensor_bytes) {
    fmt::print(" (each tensor by itself: {:.1f} MiB)", mib(*report.every_tensor_bytes));
  }
  fmt::print("\n");
}

void run(const Arguments& a) {
  if (!a.plugin.empty()) ballast::set_plugin_path(a.plugin);
  if (a.list_devices) return list_devices();
  ballast::ContextOptions context;
  context.jit_level = a.level;
  if (!a.device.empty() || a.profile) context.device = a.device;
  context.device_options.profile = a.profile;
  ballast::set_context(context);
  mnist::Data data = mnist::load(a.data);
  ballast::DeviceInfo info = ballast::device_info();
  fmt::print("device: {} ({})\n", info.name, info.platform);

  mnist::ProgressBar bar;
  mnist::TrainReport report =
      mnist::train(data, a.train, [&](const mnist::Progress& progress) { bar.show(progress); });
  print_report(report);
  if (a.profile) {  // the evaluation's kernels are in it
    fmt::print("\n{}\n", ballast::profile_table(ballast::drain_profile(), a.train.steps));
  }
  if (a.plot.empty()) return;
  mnist::write_loss_plot(a.plot, fmt::format("MNIST, test accuracy {:.3f}", report.test_accuracy),
                         report.losses);
  fmt::print("loss curve             {}\n", a.plot);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains Flatten-784-512-ReLU-512-ReLU-10 on 4,000 MNIST images.");
  Arguments arguments;
  add_options(app, arguments);
  CLI11_PARSE(app, argc, argv);
  try {
    run(arguments);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "ballast_mnist: {}\n", error.what());
    return 1;
  }
}
