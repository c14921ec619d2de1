#include "examples/mnist/progress_bar.h"

#include <fmt/core.h>
#include <unistd.h>

#include <string>

namespace mnist {
namespace {

constexpr int kBarWidth = 24;
constexpr int kPlainLines = 20;

std::string time_left(const Progress& p) {
  if (p.steps_per_second <= 0) return "";
  auto seconds =
      static_cast<uint64_t>(static_cast<double>(p.steps - p.steps_done) / p.steps_per_second + 0.5);
  return fmt::format("{}:{:02} left", seconds / 60, seconds % 60);
}

}  // namespace

ProgressBar::ProgressBar() : is_terminal_(isatty(STDOUT_FILENO) == 1) {}

void ProgressBar::show(const Progress& p) {
  bool is_last = p.steps_done >= p.steps;
  if (!is_terminal_ && !is_last && p.steps_done < next_line_) return;
  next_line_ = p.steps_done + (p.steps + kPlainLines - 1) / kPlainLines;

  std::string line =
      fmt::format("step {:>5}/{}  loss {:.4f}  accuracy {:.3f}  {:.0f} steps/s  {}", p.steps_done,
                  p.steps, p.loss, p.accuracy, p.steps_per_second, time_left(p));
  if (is_terminal_) {
    int filled = static_cast<int>(kBarWidth * p.steps_done / p.steps);
    fmt::print("\r[{:=<{}}{:<{}}] {}\033[K", "", filled, "", kBarWidth - filled, line);
    if (is_last) fmt::print("\n");
  } else {
    fmt::print("{}\n", line);
  }
  std::fflush(stdout);
}

}  // namespace mnist
