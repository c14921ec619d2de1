// One step in every mode: eager, jit and sink make the same steps from the same start, their losses
// are recorded, and a table tells the time of a step.
#pragma once

#include "examples/support/example.h"
#include "frontend/modes/sink.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

namespace examples {

namespace internal {

// Runs `count` steps on the batches from number `first` on; gives their losses, one by one or
// stacked.
using RunSteps = std::function<std::vector<ballast::Tensor>(int64_t first, int64_t count)>;

struct ModeTime {
  std::string mode;
  double first_call = 0;  // seconds of the first step, which compiles
  double per_step = 0;    // seconds: the median of rounds over all further steps
};

// Makes the example's steps, over `batches` batches again and again, and records their losses.
ModeTime run_mode(Example& example, const std::string& mode, int64_t batches, const RunSteps& run);
void print_table(const std::vector<ModeTime>& times, int64_t steps);

// A queue's batches: all of them, those from the second on, and each.
class Batches {
 public:
  Batches(const ballast::Queue& queue, int64_t count);
  const ballast::Queue& from(int64_t first) const { return first == 0 ? all_ : rest_; }
  const ballast::Tensor& operator[](int64_t i) const { return each_[static_cast<size_t>(i)]; }

 private:
  ballast::Queue all_, rest_;
  std::vector<ballast::Tensor> each_;
};

// How many batches the queues have; at most `steps`.
int64_t count_batches(const std::vector<ballast::Queue>& queues, int64_t steps);

}  // namespace internal

// make_step() gives a function of one tensor per queue that makes one step and returns its loss;
// each mode starts with a new one. Step i gets batch i of ballast::each(stacked), around and
// around, and what is in ballast::repeat(tensor) always. Records "eager", "jit" and "sink".
//   compare_modes(example, make_train_step, each(x), each(y));
template <class MakeStep, class... Queues>
void compare_modes(Example& example, MakeStep make_step, const Queues&... queues) {
  using ballast::Tensor;
  const int64_t count = internal::count_batches({queues...}, example.steps());
  const std::array<internal::Batches, sizeof...(Queues)> batches{
      internal::Batches(queues, count)...};
  auto one_by_one = [&](auto& step) -> internal::RunSteps {
    return [&](int64_t first, int64_t steps) {
      std::vector<Tensor> losses;
      for (int64_t i = first; i < first + steps; ++i) {
        losses.push_back(
            std::apply([&](const auto&... batch) { return step(batch[i]...); }, batches));
      }
      return losses;
    };
  };
  auto eager = make_step();
  auto eager_time = internal::run_mode(example, "eager", count, one_by_one(eager));
  auto jitted = ballast::jit(make_step());
  auto jit_time = internal::run_mode(example, "jit", count, one_by_one(jitted));
  auto sunk = ballast::sink(ballast::jit(make_step()));
  auto run_sunk = [&](int64_t first, int64_t steps) {
    return std::vector<Tensor>{std::apply(
        [&](const auto&... batch) {
          return sunk(static_cast<uint64_t>(steps), batch.from(first)...);
        },
        batches)};
  };
  auto sink_time = internal::run_mode(example, "sink", count, run_sunk);
  if (example.prints_table()) {
    internal::print_table({eager_time, jit_time, sink_time}, example.steps());
  }
}

}  // namespace examples
