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
  mutable std::mutex failure_mutex;
  std::optional<Error> failure;  // the first one

  void check() const {
    if (!has_failed.load(std::memory_order_acquire)) return;
    std::lock_guard lock(failure_mutex);
    throw *failure;
  }
  [[noreturn]] void fail_with(Code code, const std::string& why);
  // Waits for everything submitted so far; throws and keeps the failure of any command.
  void wait();
  // Waits for one event of the queue; the same.
  void wait(cl_event event, const char* what);
};

}  // namespace ballast::device
