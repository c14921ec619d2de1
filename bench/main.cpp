// The kernels against the machine's limits and against rivals; see docs/performance.md.
#include "bench/report.h"
#include "bench/rows.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sched.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>

namespace ballast::bench {
namespace {

struct Options {
  std::string filter = ".";
  std::string json = "build/bench/kernels.json";
  int rounds = 7;
  int threads = 2;
  bool has_rivals = true;
  bool only_lists = false;
  bool is_gpu_class = false;
};

// The table is ours to print, line by line as rows finish.
class NoReport final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.error_occurred) {
        fmt::print("{}: {}\n", run.benchmark_name(), run.error_message);
      }
    }
  }
};

// As many cores as threads, for this process and the rivals it starts. Gives those there were.
cpu_set_t limit_threads(int threads) {
  cpu_set_t all, some;
  CPU_ZERO(&all);
  CPU_ZERO(&some);
  sched_getaffinity(0, sizeof(all), &all);
  for (int cpu = 0, taken = 0; cpu < CPU_SETSIZE && taken < threads; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    CPU_SET(cpu, &some);
    ++taken;
  }
  sched_setaffinity(0, sizeof(some), &some);
  const std::string count = std::to_string(threads);
  setenv("POCL_MAX_PTHREAD_COUNT", count.c_str(), 1);
  setenv("POCL_CPU_MAX_CU_COUNT", count.c_str(), 1);
  return all;
}

class Bench {
 public:
  // `cores`: all that the host has.
  Bench(const Options& options, const std::string& folder, const cpu_set_t& cores)
      : options_(options), limits_(limits_of(device(), options.threads)) {
    const bool is_gpu = !limits_->are_of_host();
    // Nobody computes on the host's cores then, but rivals compile there.
    if (is_gpu) sched_setaffinity(0, sizeof(cores), &cores);
    if (options.has_rivals) rivals_ = start_rivals(folder, options.threads, is_gpu);
    context_ = context_of(rivals_, *limits_, options.threads);
    fmt::print("{}{}", preamble(context_), heading());
    save();
  }

  void add(const Case& c) {
    benchmark::RegisterBenchmark(c.name.c_str(),
                                 [this, c](benchmark::State& state) { run(state, c); })
        ->UseManualTime()
        ->Iterations(options_.rounds)
        ->Unit(benchmark::kMillisecond);
  }

 private:
  void run(benchmark::State& state, const Case& c) {
    try {
      measure(state, c);
    } catch (const std::exception& error) {
      state.SkipWithError(error.what());
    }
  }

  void measure(benchmark::State& state, const Case& c) {
    Contest contest(c, rivals_, *limits_);
    for (auto _ : state) {
      state.SetIterationTime(contest.measurement().missing.empty() ? contest.round() : 0);
    }
    const Measurement& m = contest.measurement();
    if (m.missing.empty()) {
      const double seconds = 1e-3 * m.milliseconds();
      state.counters["gflops"] = 1e-9 * m.work.flops / seconds;
      state.counters["gb_per_s"] =
          1e-9 * static_cast<double>(m.work.read + m.work.written) / seconds;
      state.counters["percent"] = m.percent(m.ours);
    }
    fmt::print("{}", line_of(m));
    std::fflush(stdout);
    rows_.push_back(m);
    save();
  }

  // After each row: a long run that is cut off leaves what it measured.
  void save() const { write_json(options_.json, context_, rows_); }

  const Options options_;
  std::unique_ptr<Limits> limits_;
  std::vector<std::unique_ptr<Rival>> rivals_;
  nlohmann::json context_;
  std::vector<Measurement> rows_;
};

int run(const Options& options, const std::string& program) {
  if (options.only_lists) {
    for (const Case& c : all_rows()) fmt::print("{:<34} {:<28} {}\n", c.name, c.op, c.shapes());
    return 0;
  }
  const cpu_set_t cores = limit_threads(options.threads);
  if (options.is_gpu_class) open_as_gpu();
  Bench bench(options, std::filesystem::path(program).parent_path(), cores);
  for (const Case& c : all_rows()) bench.add(c);
  std::vector<std::string> words = {program, "--benchmark_filter=" + options.filter};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  NoReport reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
  fmt::print("\nevery sample: {}\n", options.json);
  return 0;
}

}  // namespace
}  // namespace ballast::bench

int main(int argc, char** argv) {
  ballast::bench::Options options;
  CLI::App app{"Times Ballast's kernels beside rivals and the machine's own limits."};
  app.add_option("--filter", options.filter, "regular expression on the rows' names");
  app.add_option("--rounds", options.rounds, "paired runs of a row")->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "of ours and of each rival");
  app.add_option("--json", options.json, "where every sample is written");
  app.add_flag("!--no-rivals", options.has_rivals, "ours and the limits alone");
  app.add_flag("--gpu-class", options.is_gpu_class, "takes the device for a GPU");
  app.add_flag("--list", options.only_lists, "names the rows and ends");
  CLI11_PARSE(app, argc, argv);
  return ballast::bench::run(options, std::filesystem::read_symlink("/proc/self/exe"));
}
