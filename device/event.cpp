#include "device/event.h"

#include "device/stream_state.h"

namespace ballast::device {
namespace {

uint64_t end_ns(cl_event event) {
  cl_ulong ns = 0;
  const cl_int code =
      clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(ns), &ns, nullptr);
  if (code == CL_PROFILING_INFO_NOT_AVAILABLE) {
    fail(Code::kFailedPrecondition,
         "[event_elapsed] the device takes no time stamps; open it with options.profile = 1");
  }
  cl_check(code, "clGetEventProfilingInfo");
  return ns;
}

}  // namespace

void Event::record(Stream& stream) {
  if (&stream.device() != device_.get()) {
    fail(Code::kInvalidArgument, "[event_record] the stream is of another device");
  }
  SharedEvent recorded = stream.marker();
  std::lock_guard lock(mutex_);
  event_ = std::move(recorded);
}

// The caller's own reference: another thread may record anew meanwhile.
Event::SharedEvent Event::get(const char* call) const {
  std::lock_guard lock(mutex_);
  if (!event_) fail(Code::kFailedPrecondition, "[{}] the event was never recorded", call);
  return event_;
}

bool Event::is_done() const {
  check_process();
  {
    std::lock_guard lock(mutex_);
    if (!event_) return false;
  }
  const cl_int status = event_status(get("event_query").get());
  if (status < 0) {
    fail(Code::kDeviceLost, "[event_query] the work before the event failed: {} ({})",
         cl_code_name(status), status);
  }
  return status == CL_COMPLETE;
}

void Event::wait() const {
  check_process();
  const auto event = get("event_wait");
  const cl_event raw = event.get();
  const cl_int code = clWaitForEvents(1, &raw);
  const cl_int status = event_status(raw);
  if (code != CL_SUCCESS || status < 0) {
    fail(Code::kDeviceLost, "[event_wait] the work before the event failed: {}",
         cl_code_name(status < 0 ? status : code));
  }
}

void Event::make_wait(Stream& stream) const {
  if (&stream.device() != device_.get()) {
    fail(Code::kInvalidArgument, "[stream_wait_event] the event is of another device");
  }
  stream.wait_for(get("stream_wait_event").get());
}

uint64_t Event::elapsed_ns(const Event& start, const Event& end) {
  if (!start.is_done() || !end.is_done()) {
    fail(Code::kFailedPrecondition, "[event_elapsed] both events must be done");
  }
  const uint64_t from = end_ns(start.get("event_elapsed").get());
  const uint64_t to = end_ns(end.get("event_elapsed").get());
  return to > from ? to - from : 0;
}

}  // namespace ballast::device
