#include "device/stream_state.h"

#include "device/caller.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

namespace ballast::device {
namespace {

// A sleeping waiter is woken late (about 25 us on PoCL), and small work is done sooner than that.
constexpr std::chrono::microseconds kSpin{50};

}  // namespace

void StreamState::fail_with(Code code, const std::string& why) {
  std::lock_guard lock(failure_mutex);
  if (!failure) failure.emplace(code, why);
  has_failed.store(true, std::memory_order_release);
  throw *failure;
}

void StreamState::check_event(cl_event event, const char* what) {
  const cl_int status = event_status(event);
  if (status >= CL_COMPLETE) return;
  fail_with(Code::kDeviceLost,
            fmt::format("[{}] a command of the stream failed: {} ({}); the work submitted after it "
                        "is lost",
                        what, cl_code_name(status), status));
}

void StreamState::advance(EventHandle event) {
  submitted.fetch_add(1);
  ++enqueued;
  const EventHandle before = std::exchange(last, std::move(event));
  if (before) check_event(before.get(), "submit");
}

bool StreamState::is_idle(const char* what) {
  if (!batch->is_idle()) return false;
  if (!last) return true;
  if (event_status(last.get()) > CL_COMPLETE) return false;
  check_event(last.get(), what);
  last.reset();
  return true;
}

StreamState::Way StreamState::way_of(uint64_t bytes) {
  if (!is_idle("submit")) return Way::kBatch;
  return is_for_caller(bytes) ? Way::kCaller : Way::kKernel;
}

void StreamState::take(Way way, Task task, const TaskWords& launch) {
  if (way == Way::kCaller) return run_on_caller(task, launch);
  batch->add(task, launch);
  submitted.fetch_add(1);
}

void StreamState::start_batch() {
  if (batch && batch->should_start()) enqueue_batch();
}

void StreamState::enqueue_batch() {
  if (!batch || batch->is_empty()) return;
  cl_event event = nullptr;
  const cl_int code = batch->enqueue(queue.get(), last.get(), &event);
  if (code != CL_SUCCESS) {
    fail_with(code_of(code),
              fmt::format("[submit] the launches cannot be enqueued: {}", cl_code_name(code)));
  }
  advance(EventHandle(event));
}

std::unique_lock<std::mutex> StreamState::lock_queue() {
  std::unique_lock lock(mutex);
  enqueue_batch();
  return lock;
}

EventHandle StreamState::mark_end() noexcept {
  try {
    const auto lock = lock_queue();
  } catch (const Error&) {
    // Every later call on the stream throws it; what was enqueued before still runs.
  }
  cl_event event = nullptr;
  if (clEnqueueMarkerWithWaitList(queue.get(), 0, nullptr, &event) != CL_SUCCESS) return nullptr;
  clFlush(queue.get());
  return EventHandle(event);
}

void StreamState::drain() noexcept {
  try {
    const auto lock = lock_queue();
  } catch (const Error&) {
    // The same.
  }
  clFinish(queue.get());
}

void StreamState::wait() {
  check();
  cl_event marker = nullptr;
  EventHandle before;
  uint64_t submitted_before = 0;
  {
    std::lock_guard lock(mutex);
    if (batch && is_idle("sync")) return complete(submitted.load());
    enqueue_batch();
    submitted_before = submitted.load();
    cl_check(clEnqueueMarkerWithWaitList(queue.get(), 0, nullptr, &marker),
             "clEnqueueMarkerWithWaitList");
    before = std::exchange(last, EventHandle(marker));
    clRetainEvent(marker);
  }
  const EventHandle owned(marker);
  if (before) check_event(before.get(), "sync");
  wait(marker, "sync");
  if (before) check_event(before.get(), "sync");
  complete(submitted_before);
}

void StreamState::complete(uint64_t submitted_before) {
  uint64_t known = completed.load();
  while (known < submitted_before && !completed.compare_exchange_weak(known, submitted_before)) {
  }
}

void StreamState::wait(cl_event event, const char* what) {
  clFlush(queue.get());
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  while (event_status(event) > CL_COMPLETE && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();  // the worker may need this core
  }
  const cl_int code = clWaitForEvents(1, &event);
  check_event(event, what);
  if (code != CL_SUCCESS)
    fail_with(Code::kDeviceLost, fmt::format("[{}] {}", what, cl_code_name(code)));
}

}  // namespace ballast::device
