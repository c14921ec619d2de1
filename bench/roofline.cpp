#include "bench/roofline.h"

#include "bench/threads.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ballast::bench {
namespace {

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

uint64_t cache_bytes(int name, uint64_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<uint64_t>(bytes) : otherwise;
}

}  // namespace

double fma_peak_gflops(int threads) {
  constexpr int64_t kSteps = 200'000;
  constexpr int kRounds = 8;
  const Fma fma = widest_fma();
  const double seconds = fastest_round(threads, kRounds, [&](int) { fma.run(kSteps); });
  return 2e-9 * kSteps * kChains * fma.lanes * threads / seconds;
}

double copy_bandwidth_gbs(int threads) {
  constexpr uint64_t kBytes = uint64_t{128} << 20;
  return 2e-9 * kBytes / Stream(kBytes, kBytes, threads).seconds();
}

std::vector<Level> memory_levels(int threads) {
  const uint64_t l1 = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
  const uint64_t l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
  const uint64_t l3 = cache_bytes(_SC_LEVEL3_CACHE_SIZE, 8 << 20);
  return {{"L1", l1 * threads}, {"L2", l2 * threads}, {"L3", l3}, {"DRAM", ~uint64_t{0}}};
}

const Level& level_of(const std::vector<Level>& levels, uint64_t bytes) {
  return *std::find_if(levels.begin(), levels.end(),
                       [&](const Level& level) { return bytes <= level.bytes; });
}

int available_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

}  // namespace ballast::bench
