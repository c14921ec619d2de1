// Prefetcher: calls a producer ahead of its consumer on a thread of its own, up to `depth` results
// ahead; depth 0 calls it in place. One consumer. An exception of the producer comes out of next().
#pragma once

#include "frontend/tensor/tensor.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace ballast::data {

class Prefetcher {
 public:
  using Produce = std::function<std::optional<std::vector<Tensor>>()>;  // nullopt: the end

  Prefetcher(Produce produce, size_t depth);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  std::optional<std::vector<Tensor>> next();

 private:
  void run();

  Produce produce_;
  size_t depth_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<Tensor>> ready_;
  std::exception_ptr failure_;
  bool is_finished_ = false;  // the producer has come to its end, or failed
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace ballast::data
