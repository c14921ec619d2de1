#include "bench/measure.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <thread>

namespace ballast::bench {
namespace {

// A sample is a batch of about this long; a turn is the fastest of some samples.
constexpr double kSampleSeconds = 3e-3, kTurnSeconds = 15e-3;
constexpr int kMaxBatch = 2000, kMaxSamples = 5;
// From here on a run is long: nothing needs to be repeated to be measured.
constexpr double kLong = 0.1;
constexpr double kFar = 20;
// A row takes no new round after this.
constexpr std::chrono::seconds kRowTime{4};
// Worker threads of the one before still spin after their last run: OpenBLAS's for some 20 ms, ONNX
// Runtime's for up to 100. A turn waits until hardly anybody has used a processor for as long as
// this, at most so often; ours that followed at once had one core of two. The wait lets cores and
// caches go to sleep too, so a turn begins with runs that are not counted.
constexpr std::chrono::milliseconds kPause{10};
constexpr double kIdle = 1e-3;  // seconds of a processor
constexpr int kMostPauses = 100;
constexpr double kWarmUpSeconds = 3e-3;

std::vector<double> ratios(const std::vector<double>& over, const std::vector<double>& under) {
  std::vector<double> result;
  for (size_t i = 0; i < std::min(over.size(), under.size()); ++i) {
    result.push_back(over[i] / under[i]);
  }
  return result;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double Measurement::milliseconds() const { return 1e3 * median(ours.seconds); }
double Measurement::percent(const Samples& samples) const {
  return 100 * median(ratios(limit_seconds, samples.seconds));
}
double Measurement::ratio(const Samples& rival, const Samples& samples) const {
  return median(ratios(rival.seconds, samples.seconds));
}

const Samples* Measurement::best() const {
  const Samples* best = nullptr;
  for (const Samples& rival : rivals) {
    if (rival.name == "unfused" || rival.seconds.empty()) continue;
    if (!best || ratio(rival, ours) < ratio(*best, ours)) best = &rival;
  }
  return best;
}

Contest::Contest(const Case& c, const std::vector<std::unique_ptr<Rival>>& rivals, Limits& limits)
    : rivals_(rivals), limits_(limits) {
  measurement_.work_case = c;
  measurement_.ours.name = "ours";
  measurement_.sunk.name = "sunk";
  try {
    ours_ = c.steps.empty() ? Ours::of_op(c) : Ours::of_graph(c, c.steps, graph::Level::kO1);
    ours_->run(1);
    if (!c.unfused.empty()) {
      unfused_ = Ours::of_graph(c, c.unfused, graph::Level::kO0);
      unfused_->run(1);
    }
  } catch (const std::exception& error) {
    measurement_.missing = error.what();
    return;
  }
  std::vector<std::vector<int64_t>> shapes;
  for (const auto& type : ours_->outputs()) shapes.push_back(type.shape);
  measurement_.work = work_of(c, ours_->input_bytes(), ours_->output_bytes(), shapes);
  choose_limit();
  add([this](int count) { return ours_->run(count); }, &measurement_.ours);
  add_sunk();
  add_rivals();
}

void Contest::add_sunk() {
  try {
    sunk_ = Ours::sunk(measurement_.work_case);
    sunk_->run(1);
  } catch (const device::Error& error) {
    if (error.code() != device::Code::kUnimplemented) throw;
    return;
  }
  add([this](int count) { return sunk_->run(count); }, &measurement_.sunk);
}

void Contest::choose_limit() {
  const Work& work = measurement_.work;
  const auto fma_seconds = [this] {
    return measurement_.work.flops / (1e9 * limits_.fma_peak_gflops());
  };
  limit_seconds_ = limits_.stream(work.read, work.written);
  const double at_peak = fma_seconds(), streaming = limit_seconds_();
  if (at_peak > streaming) {
    limit_seconds_ = fma_seconds;
    measurement_.limit = "FMA";
  } else {
    measurement_.limit = limits_.bound_of(work.read + work.written, streaming);
  }
}

void Contest::add_rivals() {
  struct Entry {
    Rival* rival;
    size_t variant;
  };
  std::vector<Entry> entries;
  std::vector<Samples>& list = measurement_.rivals;
  for (const auto& rival : rivals_) {
    const std::vector<std::string> names = rival->prepare(measurement_.work_case);
    for (size_t i = 0; i < names.size(); ++i) {
      entries.push_back({rival.get(), i});
      list.push_back({names[i], {}, true});
    }
  }
  if (unfused_) list.push_back({"unfused", {}, true});
  // From here on the list does not grow: contestants keep addresses of its elements.
  const std::vector<Checksum> expected = ours_->check();
  const auto same = [&](const std::vector<Checksum>& sums) {
    return !measurement_.work_case.is_compared ||
           (!sums.empty() && sums.size() <= expected.size() &&
            std::equal(sums.begin(), sums.end(), expected.begin(), agree));
  };
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry entry = entries[i];
    try {
      entry.rival->run(entry.variant, 1);
      list[i].agrees = same(entry.rival->check(entry.variant));
      add([entry](int count) { return entry.rival->run(entry.variant, count); }, &list[i]);
    } catch (const std::exception& error) {
      fmt::print(stderr, "  {}: {}: {}\n", list[i].name, measurement_.work_case.name, error.what());
    }
  }
  if (unfused_) {
    add([this](int count) { return unfused_->run(count); }, &list.back());
    list.back().agrees = same(unfused_->check());
  }
}

void Contest::add(std::function<double(int)> run, Samples* samples) {
  double one = run(1);
  if (one < kSampleSeconds) one = run(4) / 4;
  Contestant contestant{std::move(run), samples};
  contestant.count = std::clamp(static_cast<int>(kSampleSeconds / one), 1, kMaxBatch);
  const double sample = one * contestant.count;
  contestant.samples_a_turn = std::clamp(static_cast<int>(kTurnSeconds / sample), 1, kMaxSamples);
  contestant.one = one;
  contestant.is_hopeless = !contestants_.empty() && one > kLong && one > kFar * contestants_[0].one;
  contestants_.push_back(std::move(contestant));
}

void Contest::wait_until_idle() const {
  if (!limits_.are_of_host()) return;
  const auto used = [&] {
    double seconds = cpu_seconds(getpid());
    for (const auto& rival : rivals_) seconds += rival->cpu_seconds();
    return seconds;
  };
  double before = used();
  for (int i = 0; i < kMostPauses; ++i) {
    std::this_thread::sleep_for(kPause);
    const double now = used();
    if (now - before < kIdle) return;
    before = now;
  }
}

double Contest::turn(const Contestant& contestant) const {
  wait_until_idle();
  if (contestant.one < kLong) {
    contestant.run(std::clamp(static_cast<int>(kWarmUpSeconds / contestant.one), 1, kMaxBatch));
  }
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < contestant.samples_a_turn; ++i) {
    best = std::min(best, contestant.run(contestant.count) / contestant.count);
  }
  return best;
}

double Contest::round() {
  if (rounds_ == 0) start_ = Clock::now();
  if (rounds_ > 0 && Clock::now() - start_ > kRowTime) return measurement_.ours.seconds.back();
  wait_until_idle();
  measurement_.limit_seconds.push_back(limit_seconds_());
  // Another one begins each time, and every second round goes backwards, so that none always
  // follows the same one.
  const size_t count = contestants_.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t step = rounds_ % 2 ? count - 1 - i : i;
    Contestant& contestant = contestants_[(step + rounds_) % count];
    if (rounds_ > 0 && contestant.is_hopeless) continue;
    try {
      contestant.samples->seconds.push_back(turn(contestant));
    } catch (const std::runtime_error& error) {
      if (&contestant == &contestants_[0]) throw;
      fmt::print(stderr, "  {}: {}\n", contestant.samples->name, error.what());
      contestant.is_hopeless = true;
    }
  }
  ++rounds_;
  return measurement_.ours.seconds.back();
}

}  // namespace ballast::bench
