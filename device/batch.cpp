#include "device/batch.h"

#include "device/device.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

namespace ballast::device {
namespace {

// The device does two waves while the next is collected, which grows to so many launches.
constexpr size_t kRunning = 2, kMostLaunches = 128;
constexpr int kSpins = 2000;  // some 50 us, then others may have the core

struct TaskLaunch {
  Task task;
  uint64_t groups;
  size_t begin, end;  // of its words
};

// What one command does.
class Wave {
 public:
  std::vector<TaskLaunch> launches;
  TaskWords words;  // of all launches
  EventHandle done;
  std::vector<EventHandle> helpers;

  bool is_done() const {
    const auto has_ended = [](const EventHandle& event) {
      return event_status(event.get()) <= CL_COMPLETE;
    };
    return has_ended(done) && std::all_of(helpers.begin(), helpers.end(), has_ended);
  }

  uint64_t most_groups() const {
    uint64_t most = 0;
    for (const TaskLaunch& launch : launches) most = std::max(most, launch.groups);
    return most;
  }

  void reset() {
    launches.clear();
    words.clear();
    done.reset();
    helpers.clear();
    turn_ = 0;
    ended_ = 0;
  }

  // Every other worker takes groups from the end, so that a worker meets the same part of memory in
  // launch after launch.
  void work(bool from_end) {
    alignas(64) std::byte shared[kTaskLocalBytes];
    for (uint64_t i = 0; i < launches.size(); ++i) {
      const TaskLaunch& launch = launches[i];
      const TaskCall call(launch.task, words.data() + launch.begin, words.data() + launch.end,
                          shared);
      uint64_t group = 0;
      while (take(i, launch.groups, from_end, &group)) {
        call.run(group);
        end_group(i, launch.groups);
      }
      wait_for_end(i);
    }
  }

 private:
  // Of `turn_`: the launch's number, and how many of its groups were taken from the end and from
  // the beginning. A worker that comes late finds the launches behind it closed.
  static constexpr int kNumber = 40, kFromEnd = 20;
  static_assert(kMostTaskGroups < uint64_t{1} << kFromEnd);

  bool take(uint64_t number, uint64_t groups, bool from_end, uint64_t* group) {
    uint64_t now = turn_.load(std::memory_order_acquire);
    for (;;) {
      const uint64_t first = now & kMostTaskGroups, last = now >> kFromEnd & kMostTaskGroups;
      if (now >> kNumber != number || first + last >= groups) return false;
      *group = from_end ? groups - 1 - last : first;
      const uint64_t next = now + (from_end ? uint64_t{1} << kFromEnd : 1);
      if (turn_.compare_exchange_weak(now, next, std::memory_order_acq_rel)) return true;
    }
  }

  // Whoever ends a launch's last group opens the next one.
  void end_group(uint64_t number, uint64_t groups) {
    if (ended_.fetch_add(1, std::memory_order_acq_rel) + 1 != groups) return;
    ended_.store(0, std::memory_order_relaxed);
    turn_.store((number + 1) << kNumber, std::memory_order_release);
  }

  void wait_for_end(uint64_t number) const {
    for (int spins = 0; turn_.load(std::memory_order_acquire) >> kNumber == number; ++spins) {
      if (spins >= kSpins) std::this_thread::yield();
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }

  alignas(64) std::atomic<uint64_t> turn_{0};
  alignas(64) std::atomic<uint64_t> ended_{0};  // groups of the launch
};

// A native kernel's arguments, which the driver copies.
struct Worker {
  Wave* wave;
  bool from_end;
};

void CL_CALLBACK work(void* arguments) {
  const auto& worker = *static_cast<const Worker*>(arguments);
  worker.wave->work(worker.from_end);
}

cl_int enqueue_worker(cl_command_queue queue, Worker worker, cl_event after, cl_event* event) {
  return clEnqueueNativeKernel(queue, work, &worker, sizeof(worker), 0, nullptr, nullptr,
                               after == nullptr ? 0 : 1, after == nullptr ? nullptr : &after,
                               event);
}

}  // namespace

struct Batch::Impl {
  explicit Impl(Device& owner) : device(owner) {}

  Device& device;
  QueueHandle helpers;  // takes commands in any order
  std::unique_ptr<Wave> next = std::make_unique<Wave>();
  std::deque<std::unique_ptr<Wave>> running;  // oldest first
  std::vector<std::unique_ptr<Wave>> idle;

  void collect() {
    while (!running.empty() && running.front()->is_done()) {
      running.front()->reset();
      idle.push_back(std::move(running.front()));
      running.pop_front();
    }
  }

  void take_next() {
    if (idle.empty()) {
      next = std::make_unique<Wave>();
    } else {
      next = std::move(idle.back());
      idle.pop_back();
    }
  }

  // Workers beside the one in the stream's queue; where one cannot be had, the others do its part.
  void enqueue_helpers(Wave& wave, cl_event after) {
    const uint64_t workers = std::min<uint64_t>(device.info().compute_units, wave.most_groups());
    if (!helpers && workers > 1) {
      const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES,
                                                CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
      helpers.reset(
          clCreateCommandQueueWithProperties(device.context(), device.id(), properties, nullptr));
      if (!helpers) return;
    }
    for (uint64_t i = 1; i < workers; ++i) {
      cl_event event = nullptr;
      if (enqueue_worker(helpers.get(), {&wave, i % 2 == 1}, after, &event) != CL_SUCCESS) return;
      wave.helpers.emplace_back(event);
    }
    if (workers > 1) clFlush(helpers.get());
  }
};

Batch::Batch(Device& device) : impl_(new Impl(device)) {}

Batch::~Batch() {
  if (impl_->helpers) clFinish(impl_->helpers.get());
}

void Batch::add(Task task, const TaskWords& launch) {
  TaskWords& words = impl_->next->words;
  const size_t begin = words.size();
  words.insert(words.end(), launch.begin(), launch.end());
  impl_->next->launches.push_back({task, launch[0] * launch[1] * launch[2], begin, words.size()});
}

bool Batch::is_empty() const { return impl_->next->launches.empty(); }

bool Batch::is_idle() {
  if (!is_empty()) return false;
  impl_->collect();
  return impl_->running.empty();
}

bool Batch::should_start() {
  impl_->collect();
  return !is_empty() &&
         (impl_->running.size() < kRunning || impl_->next->launches.size() >= kMostLaunches);
}

cl_int Batch::enqueue(cl_command_queue queue, cl_event last, cl_event* event) {
  Impl& impl = *impl_;
  Wave& wave = *impl.next;
  const cl_int code = enqueue_worker(queue, {&wave, false}, nullptr, event);
  if (code != CL_SUCCESS) {
    wave.reset();  // by the next enqueue the launches' memory may be another owner's
    return code;
  }
  clRetainEvent(*event);
  wave.done.reset(*event);
  // No earlier than the stream gets to it.
  impl.enqueue_helpers(wave, last);
  impl.running.push_back(std::move(impl.next));
  impl.take_next();
  ++impl.device.counters().submits;
  return CL_SUCCESS;
}

}  // namespace ballast::device
