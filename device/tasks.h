// Kernels as *tasks*: functions of this process that do a work-group each, so that one command does
// many launches (see batch.h).
//
// Of PoCL, whose kernels are code in shared libraries. A kernel is compiled under a name of its own
// and run once to no effect, so that PoCL loads it; then its entry is looked up and called as PoCL
// itself calls it. That convention is PoCL's own affair: only the version that is known for it is
// trusted, and only if a kernel called so finds everything in its place. Elsewhere, where a kernel
// cannot be a task, on a device opened with options.profile and with BALLAST_TASKS=off, launches
// are enqueued one by one.
#pragma once

#include "device/kernel.h"
#include "device/launch.h"

#include <memory>
#include <string>
#include <vector>

namespace ballast::device {

class Device;

// PoCL's entry to a work-group: arguments[i] points to argument i, a buffer's to its address.
using Task = void (*)(const void* const* arguments, const void* context, size_t x, size_t y,
                      size_t z);

// Where a work-group looks up what it belongs to, as PoCL 3.1 lays it out.
struct TaskContext {
  size_t groups[3] = {1, 1, 1};
  size_t offset[3] = {};
  size_t local[3] = {1, 1, 1};
  void* printf_buffer = nullptr;
  uint32_t* printf_position = nullptr;
  uint32_t printf_capacity = 0;
  uint32_t dimensions = 3;
};

// A launch as a task takes it, in words: how many groups there are along each dimension, which
// arguments are local memory (a bit each), and the arguments, of buffers their addresses.
using TaskWords = std::vector<uint64_t>;
constexpr size_t kMostTaskArguments = 128, kTaskLocals = 3;
constexpr size_t kTaskArguments = kTaskLocals + kMostTaskArguments / 64;
constexpr uint64_t kMostTaskGroups = 0xfffff;   // of a launch
constexpr uint64_t kTaskLocalBytes = 16 << 10;  // of local memory, at most

// What calls a task for one group after the other.
class TaskCall {
 public:
  // `words`: of a launch, which end at `end`; kept. `shared`: kTaskLocalBytes.
  TaskCall(Task task, const uint64_t* words, const uint64_t* end, void* shared);
  TaskCall(const TaskCall&) = delete;

  void run(uint64_t group) const {
    const auto& n = context_.groups;
    task_(arguments_, &context_, group % n[0], group / n[0] % n[1], group / n[0] / n[1]);
  }

 private:
  Task task_;
  void* shared_;
  TaskContext context_;
  const void* arguments_[kMostTaskArguments + 1];
};

// Groups of one work-item, no more of them and of arguments than tasks take, and one argument of
// local memory at most: a thread has one piece of it.
bool may_be_task(const Launch& launch);
// The words of a launch, in place of the old ones; buffers are left 0.
void write_task_words(const Launch& launch, TaskWords* words);

class Tasks {
 public:
  // nullptr where the device runs none.
  static std::unique_ptr<Tasks> make(Device& device);
  ~Tasks();

  // Builds the source's kernels as they are compiled for tasks; false where they do not compile so.
  bool prebuild(const SourcePtr& source);
  // A kernel object of them, for a launch that may be a task but is enqueued by itself.
  Kernel make_kernel(const Launch& launch);
  // The task of a launch's kernel, built at the first call; nullptr where it has none. Valid as
  // long as this object. Thread-safe.
  Task find(const Launch& launch);

 private:
  struct Impl;
  explicit Tasks(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ballast::device
