// Times one workload in one mode and prints one JSON line, by the peers' protocol: a first call,
// checksums, warm-up, then samples of as many calls as fill 2 ms, each call waited for.
#include "bench/workloads/workloads.h"
#include "frontend/backend/backend.h"
#include "frontend/backend/plugin.h"
#include "frontend/backend/profile.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

namespace {

using workloads::Mode;
using Json = nlohmann::ordered_json;

struct Arguments {
  std::string workload, mode = "sink", inputs;
  uint64_t samples = 30;
  double budget_s = 20;
  int threads = 2;  // only reported; compare.py limits the process
  bool list = false, profile = false, phases = false;
};

const std::map<std::string, Mode>& modes() {
  static const std::map<std::string, Mode> kModes = {
      {"eager", Mode::kEager}, {"jit", Mode::kJit}, {"sink", Mode::kSink}};
  return kModes;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double time_of(const std::function<void()>& call, uint64_t times = 1) {
  double start = now();
  for (uint64_t i = 0; i < times; ++i) call();
  return (now() - start) / static_cast<double>(times);
}

double rounded(double value, double digits) {
  return std::round(value * std::pow(10, digits)) / std::pow(10, digits);
}

// What the results are, and the seconds of the first call.
double check(const workloads::Run& run, bool is_training, Json* json) {
  double first_s;
  if (is_training) {
    std::vector<float> losses;
    double start = now();
    losses = run.first_losses();
    first_s = now() - start;
    (*json)["checksum"] = (static_cast<double>(losses[0]) + losses[1] + losses[2]) / 3;
    (*json)["check2"] = static_cast<double>(losses[0]) - losses[2];
    (*json)["losses"] = losses;
  } else {
    first_s = time_of(run.call);
    auto [magnitude, with_sign] = workloads::checksums(run.outputs());
    (*json)["checksum"] = magnitude;
    (*json)["check2"] = with_sign;
  }
  return first_s;
}

void measure(const workloads::Run& run, const Arguments& a, double first_s, Json* json) {
  double start = now();
  for (int i = 0; i < 200 && now() - start < std::min(0.5, a.budget_s / 10); ++i) run.call();
  double one = time_of(run.call);
  auto inner =
      static_cast<uint64_t>(std::clamp(std::ceil(0.002 / std::max(one, 1e-7)), 1.0, 1000.0));

  double steps = static_cast<double>(run.steps_per_call);
  std::vector<double> samples;  // seconds per step
  start = now();
  while (samples.size() < a.samples && (samples.empty() || now() - start < a.budget_s)) {
    samples.push_back(time_of(run.call, inner) / steps);
  }
  std::sort(samples.begin(), samples.end());
  size_t n = samples.size();
  double median = n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  double p90 = samples[std::min(n - 1, static_cast<size_t>(0.9 * static_cast<double>(n)))];
  (*json)["compile_s"] = rounded(std::max(0.0, first_s - samples[0]), 4);
  (*json)["first_s"] = rounded(first_s, 4);
  (*json)["min_ms"] = rounded(samples[0] * 1e3, 5);
  (*json)["median_ms"] = rounded(median * 1e3, 5);
  (*json)["p90_ms"] = rounded(p90 * 1e3, 5);
  (*json)["iters"] = n;
  (*json)["inner"] = inner;
  (*json)["compile"] = "first-call";
}

// Where a step's device time goes, to standard error: timing kernels costs time itself, so this is
// apart from the samples.
void print_profile(const workloads::Run& run) {
  constexpr uint64_t kCalls = 50;
  ballast::drain_profile();
  time_of(run.call, kCalls);
  fmt::print(stderr, "{}",
             ballast::profile_table(ballast::drain_profile(), kCalls * run.steps_per_call));
}

std::string version() {
  ballast_plugin_info info = BALLAST_INIT(ballast_plugin_info);
  ballast::check(ballast::plugin().plugin_info(&info));
  ballast::DeviceInfo device = ballast::device_info();
  return fmt::format("{} ({}, {})", std::string(info.version.data, info.version.size), device.name,
                     device.platform);
}

Json run(const Arguments& a) {
  Mode mode = modes().at(a.mode);
  Json json = {{"peer", "ballast-" + a.mode}, {"version", nullptr}, {"workload", a.workload}};
  json["threads"] = a.threads;
  if (std::string why = workloads::why_not(a.workload, mode); !why.empty()) {
    json["skipped"] = why;
    return json;
  }
  if (a.profile) {
    ballast::DeviceOptions options;
    options.profile = true;
    ballast::set_device("", options);
  }
  json["version"] = version();
  workloads::Run run = make_run(a.workload, mode, workloads::load_arrays(a.inputs));
  double first_s = check(run, workloads::is_training(a.workload), &json);
  measure(run, a, first_s, &json);
  if (a.profile) print_profile(run);
  if (run.steps_per_call > 1) json["note"] = fmt::format("{} steps per call", run.steps_per_call);
  return json;
}

void print_phases(const Arguments& a) {
  for (const auto& phase :
       workloads::compile_phases(a.workload, workloads::load_arrays(a.inputs))) {
    fmt::print("{:<32}{:>10.2f} ms\n", phase.name, phase.seconds * 1e3);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times one workload and prints one JSON line.");
  Arguments a;
  app.add_option("--workload", a.workload)->check(CLI::IsMember(workloads::names()));
  app.add_option("--mode", a.mode)->check(CLI::IsMember({"eager", "jit", "sink"}));
  app.add_option("--inputs", a.inputs, "folder of the workload's .npy files");
  app.add_option("--iters", a.samples)->check(CLI::PositiveNumber);
  app.add_option("--budget-s", a.budget_s);
  app.add_option("--threads", a.threads);
  app.add_flag("--profile", a.profile, "print the time of every kernel (and slow all of it down)");
  app.add_flag("--phases", a.phases, "print what compiling a training workload costs, and stop");
  app.add_flag("--list", a.list, "print the workloads' names and stop");
  CLI11_PARSE(app, argc, argv);
  if (a.list) {
    for (const std::string& name : workloads::names()) fmt::print("{}\n", name);
    return 0;
  }
  try {
    if (a.phases) {
      print_phases(a);
    } else {
      fmt::print("{}\n", run(a).dump());
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "ballast_workloads: {}\n", error.what());
    return 1;
  }
}
