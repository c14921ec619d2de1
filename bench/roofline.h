// What this machine can do at most, measured by plain C++ threads in the process that wants to
// compare itself: other programs' load then weighs on both sides of the comparison.
//
// Calls start their own threads and join them; call from one thread at a time.
#pragma once

namespace ballast::bench {

// f32 fused multiply-adds in registers, counted as two operations: the best of several short
// rounds, in GFLOP/s of all `threads` together. Uses the widest vectors the CPU has.
double fma_peak_gflops(int threads);

// Bytes read plus bytes written per second of a copy far larger than the caches, in GB/s.
double copy_bandwidth_gbs(int threads);

// The CPUs that this process may use.
int available_threads();

}  // namespace ballast::bench
