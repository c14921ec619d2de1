// A point in a stream, with device time.
#pragma once

#include "device/stream.h"

namespace ballast::device {

class Event {
 public:
  explicit Event(DevicePtr device) : device_(std::move(device)) {}
  void record(Stream& stream);
  bool is_done() const;            // false before record
  void wait() const;               // kFailedPrecondition before record
  void make_wait(Stream& stream) const;  // later work of `stream` waits for this event
  // Nanoseconds between the ends of two done events.
  static uint64_t elapsed_ns(const Event& start, const Event& end);

 private:
  DevicePtr device_;
  mutable std::mutex mutex_;
  std::shared_ptr<std::remove_pointer_t<cl_event>> event_;
};

}  // namespace ballast::device
