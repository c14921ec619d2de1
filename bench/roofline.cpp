#include "bench/roofline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ballast::bench {
namespace {

constexpr int kRounds = 12;
// Independent chains: enough to cover the latency of an FMA (4 or 5 cycles, 2 a cycle).
constexpr int kChains = 12;
constexpr float kFactor = 0.999f, kTerm = 1e-3f;

// Keeps the compiler from computing a value at compile time, or not at all.
template <class T>
void hide(T& value) {
  asm volatile("" : "+m"(value));
}

struct Fma {
  void (*run)(int64_t steps);
  int lanes;
};

#if defined(__x86_64__)

__attribute__((target("avx512f"))) void run_avx512(int64_t steps) {
  __m512 factor = _mm512_set1_ps(kFactor), term = _mm512_set1_ps(kTerm), chains[kChains];
  for (int c = 0; c < kChains; ++c) chains[c] = _mm512_set1_ps(static_cast<float>(c));
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) chains[c] = _mm512_fmadd_ps(chains[c], factor, term);
  }
  for (__m512& chain : chains) hide(chain);
}

__attribute__((target("avx2,fma"))) void run_avx2(int64_t steps) {
  __m256 factor = _mm256_set1_ps(kFactor), term = _mm256_set1_ps(kTerm), chains[kChains];
  for (int c = 0; c < kChains; ++c) chains[c] = _mm256_set1_ps(static_cast<float>(c));
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) chains[c] = _mm256_fmadd_ps(chains[c], factor, term);
  }
  for (__m256& chain : chains) hide(chain);
}

#endif

// Whatever vectors the build's target has; multiply and add apart where it has no FMA.
void run_portable(int64_t steps) {
  using Vector = float __attribute__((vector_size(16)));
  Vector factor = {kFactor, kFactor, kFactor, kFactor}, term = {kTerm, kTerm, kTerm, kTerm};
  Vector chains[kChains] = {};
  for (int64_t i = 0; i < steps; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) chains[c] = chains[c] * factor + term;
  }
  for (Vector& chain : chains) hide(chain);
}

Fma widest_fma() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {run_avx512, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {run_avx2, 8};
#endif
  return {run_portable, 4};
}

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

// Seconds of the fastest round in which every thread calls work(thread) once.
double fastest_round(int threads, const std::function<void(int)>& work) {
  using Clock = std::chrono::steady_clock;
  Barrier barrier(threads);
  double best = std::numeric_limits<double>::infinity();
  const auto run = [&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
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

}  // namespace

double fma_peak_gflops(int threads) {
  constexpr int64_t kSteps = 400'000;
  const Fma fma = widest_fma();
  const double seconds = fastest_round(threads, [&](int) { fma.run(kSteps); });
  return 2e-9 * kSteps * kChains * fma.lanes * threads / seconds;
}

double copy_bandwidth_gbs(int threads) {
  constexpr size_t kBytes = size_t{128} << 20;
  const size_t slice = kBytes / threads;
  std::vector<std::vector<char>> sources(threads), targets(threads);
  for (int thread = 0; thread < threads; ++thread) {
    sources[thread].assign(slice, 1);
    targets[thread].assign(slice, 0);
  }
  const double seconds = fastest_round(threads, [&](int thread) {
    std::memcpy(targets[thread].data(), sources[thread].data(), slice);
    hide(targets[thread][0]);
  });
  return 2e-9 * slice * threads / seconds;
}

int available_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

}  // namespace ballast::bench
