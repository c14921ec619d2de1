#include "examples/support/compare_modes.h"

#include "frontend/ops/shape.h"

#include <fmt/core.h>

namespace examples::internal {

using namespace ballast;

namespace {

constexpr double kSecondsToMeasure = 1;
constexpr size_t kMostRounds = 21;

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// 12.3 us, 4.56 ms, 7.89 s
std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

}  // namespace

ModeTime run_mode(Example& example, const std::string& mode, int64_t batches, const RunSteps& run) {
  auto run_until = [&](int64_t begin, int64_t end) {
    std::vector<Tensor> losses;
    for (int64_t i = begin; i < end;) {
      const int64_t first = i % batches, count = std::min(end - i, batches - first);
      for (Tensor& loss : run(first, count)) losses.push_back(std::move(loss));
      i += count;
    }
    return losses;
  };

  ModeTime time{mode};
  std::vector<Tensor> losses, later;
  time.first_call = seconds_of([&] { losses = run_until(0, 1); });
  if (const int64_t steps = example.steps(); steps > 1) {
    std::vector<double> rounds = {seconds_of([&] { later = run_until(1, steps); })};
    double total = rounds[0];
    while (example.prints_table() && total < kSecondsToMeasure && rounds.size() < kMostRounds) {
      rounds.push_back(seconds_of([&] { run_until(1, steps); }));
      total += rounds.back();
    }
    time.per_step = median(rounds) / static_cast<double>(steps - 1);
  }
  losses.insert(losses.end(), later.begin(), later.end());
  std::vector<float> values;
  for (const Tensor& loss : losses) {
    for (float value : loss.to_host<float>()) values.push_back(value);
  }
  example.record(mode, std::move(values));
  return time;
}

void print_table(const std::vector<ModeTime>& times, int64_t steps) {
  fmt::print("\n{:<6}{:>12}{:>12}{:>9}\n", "mode", "first call", "per step", "steps");
  for (const ModeTime& time : times) {
    fmt::print("{:<6}{:>12}{:>12}{:>9}\n", time.mode, time_text(time.first_call),
               steps > 1 ? time_text(time.per_step) : "-", steps);
  }
}

Batches::Batches(const Queue& queue, int64_t count) : all_(queue), rest_(queue) {
  if (!queue.is_stacked) {
    each_.assign(static_cast<size_t>(count), queue.data);
    return;
  }
  const Shape shape = queue.step_type().shape;
  for (int64_t i = 0; i < count; ++i) {
    each_.push_back(ops::reshape(ops::strided_slice(queue.data, {i}, {i + 1}), shape));
  }
  if (count > 1) rest_.data = ops::strided_slice(queue.data, {1}, {count});
}

int64_t count_batches(const std::vector<Queue>& queues, int64_t steps) {
  int64_t count = steps;
  for (const Queue& queue : queues) {
    if (queue.is_stacked) {
      count = std::min(count, queue.data.shape().at(0));
    }
  }
  return count;
}

}  // namespace examples::internal
