#include "frontend/data/prefetcher.h"

namespace ballast::data {

Prefetcher::Prefetcher(Produce produce, size_t depth)
    : produce_(std::move(produce)), depth_(depth) {
  if (depth_ > 0) thread_ = std::thread([this] { run(); });
}

Prefetcher::~Prefetcher() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetcher::run() {
  std::optional<std::vector<Tensor>> produced;
  std::exception_ptr failure;
  do {
    try {
      produced = produce_();
    } catch (...) {
      failure = std::current_exception();
      produced.reset();
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_stopping_ || ready_.size() < depth_; });
    if (is_stopping_) return;
    if (produced) ready_.push_back(std::move(*produced));
    is_finished_ = !produced.has_value();
    failure_ = failure;
    changed_.notify_all();
  } while (!is_finished_);
}

std::optional<std::vector<Tensor>> Prefetcher::next() {
  if (depth_ == 0) return produce_();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty() || is_finished_; });
  if (!ready_.empty()) {
    std::vector<Tensor> batch = std::move(ready_.front());
    ready_.pop_front();
    changed_.notify_all();
    return batch;
  }
  if (failure_) std::rethrow_exception(failure_);
  return std::nullopt;
}

}  // namespace ballast::data
