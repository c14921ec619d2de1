// Cancellation: requests to stop the sunk calls of a jitted function. One that is made at any
// moment of a call, also while its step is still being compiled, stops it; one made while there is
// no call does nothing. Thread-safe, and waits for no call.
#pragma once

#include <ballast/sink.h>

#include <cstddef>
#include <mutex>
#include <vector>

namespace ballast {

class Cancellation {
 public:
  // A call in progress.
  class Call {
   public:
    explicit Call(Cancellation& cancellation);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Cancellation& cancellation_;
  };

  void request();
  // Around the run of a sink: throws if there is a request, and tells whether there was one.
  void start(ballast_sink* sink);
  bool stop(ballast_sink* sink);

 private:
  std::mutex mutex_;
  size_t calls_ = 0;
  bool is_requested_ = false;  // since a call began that is not over
  std::vector<ballast_sink*> running_;
};

}  // namespace ballast
