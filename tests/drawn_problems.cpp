// Ops at extents drawn at random against the reference: what nobody thought of when writing the
// rows of tests/ops. A problem's number decides all about it, so that one found again is the same:
//
//   drawn_problems --family conv --first 1000 --count 500
//   drawn_problems --family conv --first 1234 --count 1      # that one alone
#include "frontend/backend/backend.h"
#include "tests/op_check.h"
#include "tests/samples.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>

namespace ballast::tests {
namespace {

// Every third case is narrow.
OpCase as_drawn(const OpCase& row, Draw& draw) {
  const DType dtype = draw.pick({DType::kBF16, DType::kF16});
  const bool stays_wide = draw.one_in(3);
  if (!draw.one_in(3)) return row;
  return narrowed(row, dtype, stays_wide).value_or(row);
}

std::string failure_of(const OpCase& row) {
  try {
    return disagreement(row);
  } catch (const std::exception& error) {
    return fmt::format("{}\n", error.what());
  }
}

struct Count {
  int cases = 0, failures = 0;
};

void run(const OpFamily& family, uint64_t number, Count& count) {
  Draw draw(number);
  seed_samples(number);
  OpFamilies drawn;
  family.draw(drawn, draw);
  for (const OpCase& row : drawn.cases) {
    const OpCase problem = as_drawn(row, draw);
    const std::string why = failure_of(problem);
    ++count.cases;
    if (why.empty()) continue;
    ++count.failures;
    std::ostringstream text;
    text << problem;
    fmt::print("{} {}: {}\n{}\n", family.name, number, text.str(), why);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace ballast::tests

int main(int argc, char** argv) {
  using namespace ballast;
  CLI::App app("Ops at extents drawn at random, against the reference in double");
  std::string family;
  uint64_t first = 1, number = 15;
  bool on_gpu_class = false;
  app.add_option("--family", family, "a file of tests/ops; all of them without");
  app.add_option("--first", first, "the first problem's number");
  app.add_option("--count", number, "how many problems of each family");
  app.add_flag("--gpu-class", on_gpu_class, "with the schedules of GPUs");
  CLI11_PARSE(app, argc, argv);
  if (on_gpu_class) {
    DeviceOptions options;
    options.device_class = BALLAST_CLASS_GPU;
    set_device("", options);
  }
  tests::Count count;
  for (const tests::OpFamily& one : tests::op_family_list()) {
    if (!family.empty() && family != one.name) continue;
    for (uint64_t i = 0; i < number; ++i) tests::run(one, first + i, count);
  }
  fmt::print("{} cases, {} wrong\n", count.cases, count.failures);
  return count.failures == 0 && count.cases > 0 ? 0 : 1;
}
