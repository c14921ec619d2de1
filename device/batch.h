// Launches of a stream that wait to be enqueued as one command, which calls their tasks (tasks.h).
// On PoCL a launch costs 10 to 20 us until both cores are on it, a task in a batch less than one.
//
// The command is a native kernel for each core: *workers*, which go through the launches together.
// Of each launch they take groups until none is left, and begin the next one when all of its groups
// are done. A worker waits only for groups that another one is running, so the one in the stream's
// queue does everything by itself where the others come late; they are no part of the stream.
//
// The first launch on an idle device is better enqueued as a kernel: that wakes all cores at once.
// Of two commands the first wakes a core, maybe the one whose thread was to enqueue the second.
//
// Part of a StreamState, used under its lock.
#pragma once

#include "device/cl.h"
#include "device/tasks.h"

#include <cstdint>
#include <memory>

namespace ballast::device {

class Batch {
 public:
  explicit Batch(Device& device);
  ~Batch();  // what is in the stream's queue must be done
  Batch(const Batch&) = delete;

  // The launch goes with the next enqueue.
  void add(Task task, const TaskWords& launch);
  bool is_empty() const;
  // Nothing was added, and what was enqueued is done.
  bool is_idle();
  // While the device has work in front of it, waiting makes larger batches.
  bool should_start();
  // Enqueues what was added, or, where that fails, forgets it. `last`: the queue's last command, or
  // null.
  cl_int enqueue(cl_command_queue queue, cl_event last, cl_event* event);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ballast::device
