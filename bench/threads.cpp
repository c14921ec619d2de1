#include "bench/threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

namespace ballast::bench {
namespace {

class Barrier {
 public:
  explicit Barrier(int threads) : threads_(threads) {}
  void wait() {
    const int round = round_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_.store(0);
      round_.store(round + 1);
    } else {
      while (round_.load() == round) std::this_thread::yield();
    }
  }

 private:
  const int threads_;
  std::atomic<int> arrived_{0}, round_{0};
};

}  // namespace

double fastest_round(int threads, int rounds, const std::function<void(int)>& work) {
  using Clock = std::chrono::steady_clock;
  Barrier barrier(threads);
  double best = std::numeric_limits<double>::infinity();
  const auto run = [&](int thread) {
    for (int round = 0; round < rounds; ++round) {
      barrier.wait();
      const Clock::time_point start = Clock::now();
      work(thread);
      barrier.wait();  // the slowest thread's time counts
      const std::chrono::duration<double> elapsed = Clock::now() - start;
      if (thread == 0) best = std::min(best, elapsed.count());
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others) other.join();
  return best;
}

}  // namespace ballast::bench
