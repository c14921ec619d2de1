// What this machine can do at most, measured by plain C++ threads in the process that wants to
// compare itself: other programs' load then weighs on both sides of the comparison.
//
// Calls start their own threads and join them; call from one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ballast::bench {

// f32 fused multiply-adds in registers, counted as two operations: the best of several short
// rounds, in GFLOP/s of all `threads` together. Uses the widest vectors the CPU has.
double fma_peak_gflops(int threads);

// Memory of a given size streamed once: what any program that reads `read` bytes and writes
// `written` other bytes must at least do, in caches as warm as the program's own.
class Stream {
 public:
  Stream(uint64_t read, uint64_t written, int threads);
  ~Stream();
  // Seconds of the fastest of several passes; the better of ordinary and non-temporal stores.
  double seconds();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct Level {
  std::string name;  // "L1", "L2", "L3", "DRAM"
  uint64_t bytes;    // of all threads together; of DRAM: unlimited
};

// The levels of memory that `threads` threads have, smallest first.
std::vector<Level> memory_levels(int threads);
// The smallest level that holds `bytes`.
const Level& level_of(const std::vector<Level>& levels, uint64_t bytes);

// Bytes read plus bytes written per second of a copy far larger than the caches, in GB/s.
double copy_bandwidth_gbs(int threads);

// The CPUs that this process may use.
int available_threads();

}  // namespace ballast::bench
