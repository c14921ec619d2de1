// The sink: n steps of an executable in one call, fed from device-resident queues.
#pragma once

#include "graph/executable.h"

#include <atomic>
#include <deque>

namespace ballast::graph {

// `slots` values of one input or output, back to back; step i uses slot i % slots.
struct Queue {
  device::BufferPtr buffer;    // outputs: null drops the values
  const void* host = nullptr;  // inputs only: staged before run returns
  uint64_t slots = 1;
};

// Which slot a step uses: backward, step i has slot slots - 1 - i % slots.
enum class Direction { kForward, kBackward };

struct SinkInfo {
  uint64_t launches_per_step = 0, submits = 0, steps = 0;  // of the last run
  uint64_t replay_allocations = 0, bytes_retained = 0;
};

class Sink {
 public:
  // `max_slots`: the longest host queue; its staging memory is made here, so that runs make none.
  Sink(std::shared_ptr<Executable> executable, uint64_t max_slots);
  // Without host queues: the slots that turn out to be needed are made by the first run.
  explicit Sink(std::shared_ptr<Executable> executable);

  void run(device::Stream& stream, uint64_t n_steps, const std::vector<Queue>& inputs,
           const std::vector<Queue>& outputs, Direction direction = Direction::kForward,
           const CancelFlag* is_cancelled = nullptr);
  uint64_t progress() const { return steps_done_; }
  // From another thread: the run stops before its next step, or the next iteration of a loop in its
  // step, whose states are then those of the step before. If there is none, the next run stops.
  void cancel() { is_cancelled_ = true; }
  Executable& executable() const { return *executable_; }
  SinkInfo info() const;

 private:
  // One queue ready for stepping: a buffer per slot, or a slot of ours with copies around it.
  struct Lane {
    device::BufferPtr queue;
    std::vector<device::BufferPtr> views;  // empty: `slot` is copied
    device::BufferPtr slot;
    uint64_t slots = 1;
    uint64_t bytes = 0;
    Direction direction = Direction::kForward;

    bool is_copied() const { return views.empty(); }
    uint64_t number(uint64_t step) const {
      return direction == Direction::kForward ? step % slots : slots - 1 - step % slots;
    }
    const device::BufferPtr& at(uint64_t step) const {
      return is_copied() ? slot : views[number(step)];
    }
  };

  Lane make_lane(const device::BufferPtr& queue, uint64_t slots, uint64_t bytes);
  std::vector<Lane> input_lanes(device::Stream& stream, const std::vector<Queue>& inputs);
  std::vector<Lane> output_lanes(const std::vector<Queue>& outputs);
  void run_steps(device::Stream& stream, uint64_t n_steps, const std::vector<Lane>& inputs,
                 const std::vector<Lane>& outputs, const CancelFlag& is_cancelled);
  void replay_whole(device::Stream& stream, const std::vector<device::BufferPtr>& bindings,
                    const CancelFlag& is_cancelled);
  void run_stitched(device::Stream& stream, uint64_t n_steps, const std::vector<Lane>& inputs,
                    const std::vector<Lane>& outputs, Direction direction,
                    const CancelFlag& is_cancelled);

  std::shared_ptr<Executable> executable_;
  uint64_t max_slots_;
  std::vector<device::BufferPtr> staging_;
  std::vector<device::BufferPtr> saved_;  // the executable's early states before a step
  // Views of the queues seen last, so that a queue used again costs nothing.
  std::deque<std::pair<device::BufferPtr, std::vector<device::BufferPtr>>> known_views_;
  std::atomic<uint64_t> steps_done_{0};
  CancelFlag is_cancelled_{false};
  std::atomic<uint64_t> last_submits_{0}, replay_allocations_{0};
};

}  // namespace ballast::graph
