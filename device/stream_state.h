// What a stream shares with the buffers it used and with its device: the queue, how far it is, and
// its first failure. Outlives the Stream until those have let go. Thread-safe.
#pragma once

#include "device/batch.h"
#include "device/cl.h"
#include "device/error.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace ballast::device {

struct StreamState {
  QueueHandle queue;
  // Launches and other commands submitted, and how many were known to be done at the last wait.
  std::atomic<uint64_t> submitted{0}, completed{0};
  uint64_t enqueued = 0;  // commands; under `mutex`
  std::atomic<bool> has_failed{false};
  // Held around each enqueue (see lock_queue), so that `last` is the queue's last command but for
  // markers, which are done when it is.
  std::mutex mutex;
  EventHandle last;
  // Launches that are submitted but not yet enqueued; nullptr where each is enqueued at once.
  std::unique_ptr<Batch> batch;
  mutable std::mutex failure_mutex;
  std::optional<Error> failure;  // the first one

  void check() const {
    if (!has_failed.load(std::memory_order_acquire)) return;
    std::lock_guard lock(failure_mutex);
    throw *failure;
  }
  // Notes that what was submitted before is done.
  void complete(uint64_t submitted_before);
  [[noreturn]] void fail_with(Code code, const std::string& why);
  // Makes `event` the last command. A driver passes a failure on to the commands that wait behind
  // it, but not to those enqueued later; looking at each event once, here, misses neither. Costs
  // about 50 ns. Call under `mutex`.
  void advance(EventHandle event);
  // Under `mutex`, where there is a batch: whether all that was submitted is done. Throws where it
  // failed; `what` names the call that asks.
  bool is_idle(const char* what);
  // Where a task runs: as a kernel that is enqueued by itself, which wakes an idle device's cores;
  // in the batch; in this call (caller.h).
  enum class Way { kKernel, kBatch, kCaller };
  // Under `mutex`, where there is a batch: the best way at this moment for a launch over so many
  // bytes.
  Way way_of(uint64_t bytes);
  // Goes one of the other two ways. After the last of some launches that belong together:
  // start_batch(), so that they go together.
  void take(Way way, Task task, const TaskWords& launch);
  void start_batch();
  // Under `mutex`, before another command: enqueues the launches that wait in the batch.
  void enqueue_batch();
  // For whoever is about to enqueue something: locks `mutex`, and enqueues what came before.
  std::unique_lock<std::mutex> lock_queue();
  // An event, on its way, that is done when all that was submitted so far is; none where that
  // fails.
  EventHandle mark_end() noexcept;
  // Ends what was submitted so far, whether it fails or not.
  void drain() noexcept;
  // Throws if the event's command failed; `what` names the call that found out.
  void check_event(cl_event event, const char* what);
  // Waits for everything submitted so far; throws and keeps the failure of any command.
  void wait();
  // Waits for one event of the queue; the same.
  void wait(cl_event event, const char* what);
};

}  // namespace ballast::device
