// The sink: many steps of a jitted function in one host call.
//   auto loop = sink(train_step);
//   Tensor losses = loop(100, each(images), repeat(label));   // losses[i] is step i's result
//   auto epoch = data_sink(train_step, dataset, 100);
//   Tensor losses = epoch();                                  // the dataset's next 100 batches
// A run is asynchronous; reading a result waits for it. cancel() stops the call in progress, if
// there is one, from another thread: when its step has been compiled, before its next step, or the
// next iteration of a while_loop or scan in its step (but what is one launch, as a small scan, ends
// first). The call then throws BALLAST_CANCELLED, and parameters have the values that they had
// after the last whole step.
#pragma once

#include "frontend/data/dataset.h"
#include "frontend/modes/jit.h"

#include <array>
#include <memory>
#include <utility>

namespace ballast {

// How many steps, and the line that asks for them, which errors name.
struct Steps {
  Steps(uint64_t n, Where line = Where::here()) : count(n), where(line) {}

  uint64_t count;
  Where where;
};

template <class F>
class Sink {
 public:
  explicit Sink(Jit<F> step) : step_(std::move(step)) {}

  // Runs n steps; every argument is a Queue. Returns the step's result with stacked leaves.
  template <class... Queues>
  auto operator()(const Steps& steps, const Queues&... queues) {
    return run(steps, std::array<Queue, sizeof...(Queues)>{queues...});
  }

  template <size_t kCount>
  auto run(const Steps& steps, const std::array<Queue, kCount>& queues) {
    return at_line(steps.where, [&] { return run_at_line(steps.count, queues); });
  }

  void cancel() { step_.cancellation().request(); }
  CompiledInfo info() const { return step_.info(); }

 private:
  template <size_t kCount>
  auto run_at_line(uint64_t n, const std::array<Queue, kCount>& queues) {
    const Cancellation::Call call(step_.cancellation());
    std::array<Tensor, kCount> arguments;
    using Value = std::decay_t<decltype(std::apply(std::declval<F&>(), arguments))>;
    std::vector<TensorType> types;
    for (const Queue& queue : queues) types.push_back(queue.step_type());
    auto entry = step_.compile(types, std::vector<size_t>(kCount, 1), arguments);
    return with_leaves(
        std::any_cast<const Value&>(entry->prototype),
        entry->compiled->run_sink(n, {queues.begin(), queues.end()}, step_.cancellation()));
  }

  Jit<F> step_;
};

template <class F>
Sink<F> sink(Jit<F> step) {
  return Sink<F>(std::move(step));
}

// Feeds a sink from a dataset, over and over: each call runs the next sink_size batches (fewer at
// the end of an epoch or before a smaller last batch). Batches are gathered on a background thread
// while the device works.
template <class F, size_t kColumns>
class DataSink {
 public:
  DataSink(Jit<F> step, data::Dataset dataset, const Steps& sink_size)
      : sink_(std::move(step)), batches_(at_line(sink_size.where, [&] {
          return data::StackedBatches(std::move(dataset), sink_size.count, kColumns);
        })) {}

  auto operator()(Where where = Where::here()) {
    std::vector<Tensor> stacked = at_line(where, [&] { return batches_.next(); });
    std::array<Queue, kColumns> queues;
    for (size_t i = 0; i < kColumns; ++i) queues[i] = each(stacked[i]);
    last_steps_ = static_cast<uint64_t>(stacked[0].shape()[0]);
    return sink_.run({last_steps_, where}, queues);
  }

  void cancel() { sink_.cancel(); }
  uint64_t last_steps() const { return last_steps_; }  // how many steps the last call ran
  CompiledInfo info() const { return sink_.info(); }

 private:
  Sink<F> sink_;
  data::StackedBatches batches_;
  uint64_t last_steps_ = 0;
};

// The step takes one tensor per column of the dataset.
template <size_t kColumns = 2, class F>
DataSink<F, kColumns> data_sink(Jit<F> step, data::Dataset dataset, const Steps& sink_size) {
  return DataSink<F, kColumns>(std::move(step), std::move(dataset), sink_size);
}

}  // namespace ballast
