// What a stream shares with the buffers it used and with its device: the queue, how far it is, and
// its first failure. Outlives the Stream until those have let go. Thread-safe.
#pragma once

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
  // Commands submitted, and how many of them were known to be done at the last wait.
  std::atomic<uint64_t> submitted{0}, completed{0};
  std::atomic<bool> has_failed{false};
  // Held around each enqueue, so that `last` is the queue's last command.
  std::mutex mutex;
  EventHandle last;
  mutable std::mutex failure_mutex;
  std::optional<Error> failure;  // the first one

  void check() const {
    if (!has_failed.load(std::memory_order_acquire)) return;
    std::lock_guard lock(failure_mutex);
    throw *failure;
  }
  [[noreturn]] void fail_with(Code code, const std::string& why);
  // Makes `event` the last command. A driver passes a failure on to the commands that wait behind
  // it, but not to those enqueued later; looking at each event once, here, misses neither. Costs
  // about 50 ns. Call under `mutex`.
  void advance(EventHandle event);
  // Throws if the event's command failed; `what` names the call that found out.
  void check_event(cl_event event, const char* what);
  // Waits for everything submitted so far; throws and keeps the failure of any command.
  void wait();
  // Waits for one event of the queue; the same.
  void wait(cl_event event, const char* what);
};

}  // namespace ballast::device
