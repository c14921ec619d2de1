// The memory side of the roofline: vector loads and stores and nothing else.
#include "bench/roofline.h"
#include "bench/threads.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ballast::bench {
namespace {

constexpr uint64_t kLine = 256;  // bytes of an unrolled step; slices are multiples of it

struct Slice {
  const char* source;
  char* target;
  uint64_t copied, read, filled;  // from the start of both; then of the source; of the target
};

using Pass = void (*)(const Slice&);

#if defined(__x86_64__)

#define BALLAST_STREAM(name, features, vector, load, store, zero, either)                     \
  __attribute__((target(features))) void name(const Slice& s) {                               \
    constexpr uint64_t kStep = sizeof(vector);                                                \
    const char* from = s.source;                                                              \
    char* to = s.target;                                                                      \
    for (const char* end = from + s.copied; from < end; from += 4 * kStep, to += 4 * kStep) { \
      const vector a = load((const vector*)from), b = load((const vector*)(from + kStep)),    \
                   c = load((const vector*)(from + 2 * kStep)),                               \
                   d = load((const vector*)(from + 3 * kStep));                               \
      store((vector*)to, a);                                                                  \
      store((vector*)(to + kStep), b);                                                        \
      store((vector*)(to + 2 * kStep), c);                                                    \
      store((vector*)(to + 3 * kStep), d);                                                    \
    }                                                                                         \
    vector w = zero(), x = zero(), y = zero(), z = zero();                                    \
    for (const char* end = from + s.read; from < end; from += 4 * kStep) {                    \
      w = either(w, load((const vector*)from));                                               \
      x = either(x, load((const vector*)(from + kStep)));                                     \
      y = either(y, load((const vector*)(from + 2 * kStep)));                                 \
      z = either(z, load((const vector*)(from + 3 * kStep)));                                 \
    }                                                                                         \
    vector all = either(either(w, x), either(y, z));                                          \
    asm volatile("" : "+m"(all));                                                             \
    for (char* end = to + s.filled; to < end; to += 4 * kStep) {                              \
      store((vector*)to, w);                                                                  \
      store((vector*)(to + kStep), x);                                                        \
      store((vector*)(to + 2 * kStep), y);                                                    \
      store((vector*)(to + 3 * kStep), z);                                                    \
    }                                                                                         \
    _mm_sfence();                                                                             \
  }

BALLAST_STREAM(pass_avx512, "avx512f", __m512i, _mm512_load_si512, _mm512_store_si512,
               _mm512_setzero_si512, _mm512_or_si512)
BALLAST_STREAM(pass_avx512_nt, "avx512f", __m512i, _mm512_load_si512, _mm512_stream_si512,
               _mm512_setzero_si512, _mm512_or_si512)
BALLAST_STREAM(pass_avx2, "avx2", __m256i, _mm256_load_si256, _mm256_store_si256,
               _mm256_setzero_si256, _mm256_or_si256)
BALLAST_STREAM(pass_avx2_nt, "avx2", __m256i, _mm256_load_si256, _mm256_stream_si256,
               _mm256_setzero_si256, _mm256_or_si256)
#undef BALLAST_STREAM

#endif

void pass_portable(const Slice& s) {
  std::memcpy(s.target, s.source, s.copied);
  const auto* words = reinterpret_cast<const uint64_t*>(s.source + s.copied);
  uint64_t all = 0;
  for (uint64_t i = 0; i < s.read / sizeof(uint64_t); ++i) all |= words[i];
  asm volatile("" : "+m"(all));
  std::memset(s.target + s.copied, 0, s.filled);
}

std::vector<Pass> passes() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {pass_avx512, pass_avx512_nt};
  if (__builtin_cpu_supports("avx2")) return {pass_avx2, pass_avx2_nt};
#endif
  return {pass_portable};
}

struct Free {
  void operator()(char* p) const { std::free(p); }
};
using Memory = std::unique_ptr<char, Free>;

Memory allocate(uint64_t bytes) {
  constexpr uint64_t kPage = 4096;
  const uint64_t size = (bytes + kPage - 1) / kPage * kPage + kPage;
  char* memory = static_cast<char*>(std::aligned_alloc(kPage, size));
  if (!memory) throw std::bad_alloc();
  std::memset(memory, 0, size);
  return Memory(memory);
}

}  // namespace

struct Stream::Impl {
  int threads;
  std::vector<Memory> memory;
  std::vector<Slice> slices;
  std::vector<Pass> passes;
  int repeats = 1;  // of a pass in a round, which must outlast the start of the threads
};

Stream::Stream(uint64_t read, uint64_t written, int threads) : impl_(std::make_unique<Impl>()) {
  constexpr uint64_t kRoundBytes = 4 << 20;
  constexpr uint64_t kOrdinaryOnly = 1 << 20;
  const auto share = [&](uint64_t bytes) { return (bytes / threads + kLine - 1) / kLine * kLine; };
  impl_->threads = threads;
  impl_->passes = passes();
  // In the inner caches non-temporal stores only lose.
  if (read + written < kOrdinaryOnly) impl_->passes.resize(1);
  impl_->repeats = static_cast<int>(1 + kRoundBytes / std::max<uint64_t>(read + written, 1));
  for (int thread = 0; thread < threads; ++thread) {
    const uint64_t copied = share(std::min(read, written));
    const uint64_t more_read = read > written ? share(read - written) : 0;
    const uint64_t filled = written > read ? share(written - read) : 0;
    impl_->memory.push_back(allocate(copied + more_read));
    const char* source = impl_->memory.back().get();
    impl_->memory.push_back(allocate(copied + filled));
    impl_->slices.push_back({source, impl_->memory.back().get(), copied, more_read, filled});
  }
}

Stream::~Stream() = default;

double Stream::seconds() {
  constexpr int kRounds = 5;
  double best = 0;
  for (const Pass pass : impl_->passes) {
    const double seconds = fastest_round(impl_->threads, kRounds, [&](int thread) {
      for (int i = 0; i < impl_->repeats; ++i) pass(impl_->slices[thread]);
    });
    if (best == 0 || seconds < best) best = seconds;
  }
  return best / impl_->repeats;
}

}  // namespace ballast::bench
