#include "bench/roofline.h"

#include "bench/threads.h"

#include <algorithm>
#include <fstream>
#include <sstream>
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

std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// CPUs of a list like "0-3,8".
int count_cpus(const std::string& list) {
  int count = 0;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t dash = part.find('-');
    const int first = std::stoi(part);
    count += dash == std::string::npos ? 1 : std::stoi(part.substr(dash + 1)) - first + 1;
  }
  return std::max(count, 1);
}

// What `threads` cores have of a level of cache. sysfs knows what is shared by whom; sysconf would
// give all of a package's last level, of which a virtual machine has a part.
uint64_t cache_bytes(int level, int threads, uint64_t otherwise) {
  for (int i = 0;; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string number = line_of(folder + "level");
    if (number.empty()) return otherwise;
    if (std::stoi(number) != level || line_of(folder + "type") == "Instruction") continue;
    const uint64_t kib = std::stoull(line_of(folder + "size"));
    const int sharing = count_cpus(line_of(folder + "shared_cpu_list"));
    return (kib << 10) * static_cast<uint64_t>((threads + sharing - 1) / sharing);
  }
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
  const uint64_t l1 = cache_bytes(1, threads, uint64_t{32 << 10} * threads);
  const uint64_t l2 = cache_bytes(2, threads, uint64_t{1 << 20} * threads);
  const uint64_t l3 = cache_bytes(3, threads, 8 << 20);
  return {{"L1", l1}, {"L2", l2}, {"L3", l3}, {"DRAM", ~uint64_t{0}}};
}

const Level& level_of(const std::vector<Level>& levels, uint64_t bytes) {
  return *std::find_if(levels.begin(), levels.end(),
                       [&](const Level& level) { return bytes <= level.bytes; });
}

int available_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

}  // namespace ballast::bench
