// A point in a stream, with device time (on a device opened with options.profile). Thread-safe.
#pragma once

#include "device/stream.h"

namespace ballast::device {

class Event {
 public:
  explicit Event(DevicePtr device) : device_(std::move(device)) {}
  void record(Stream& stream);
  bool is_done() const;                  // false before record; throws kDeviceLost after a failure
  void wait() const;                     // kFailedPrecondition before record
  void make_wait(Stream& stream) const;  // later work of `stream` waits for this event
  // Nanoseconds between the ends of two done events; kFailedPrecondition where one is not done or
  // the device was opened without options.profile.
  static uint64_t elapsed_ns(const Event& start, const Event& end);

 private:
  using SharedEvent = std::shared_ptr<std::remove_pointer_t<cl_event>>;
  SharedEvent get(const char* call) const;

  DevicePtr device_;
  mutable std::mutex mutex_;
  SharedEvent event_;
};

}  // namespace ballast::device
