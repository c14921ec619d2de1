#include "frontend/modes/cancellation.h"

#include "frontend/backend/plugin.h"
#include "frontend/tensor/error.h"

#include <algorithm>

namespace ballast {

Cancellation::Call::Call(Cancellation& cancellation) : cancellation_(cancellation) {
  std::lock_guard lock(cancellation_.mutex_);
  ++cancellation_.calls_;
}

Cancellation::Call::~Call() {
  std::lock_guard lock(cancellation_.mutex_);
  if (--cancellation_.calls_ == 0) cancellation_.is_requested_ = false;
}

void Cancellation::request() {
  std::lock_guard lock(mutex_);
  is_requested_ = calls_ > 0;
  for (ballast_sink* sink : running_) check(plugin().sink->sink_cancel(sink));
}

void Cancellation::start(ballast_sink* sink) {
  std::lock_guard lock(mutex_);
  if (is_requested_) fail(BALLAST_CANCELLED, "[sink_run] cancelled after 0 steps");
  running_.push_back(sink);
}

bool Cancellation::stop(ballast_sink* sink) {
  std::lock_guard lock(mutex_);
  running_.erase(std::find(running_.begin(), running_.end(), sink));
  return is_requested_;
}

}  // namespace ballast
