// PoCL's worker threads, which it starts as soon as it is asked for its platforms.
#pragma once

namespace ballast::device {

// Asks PoCL, before it is first called, to keep each worker on a core of its own (it reads
// POCL_AFFINITY then). Left alone, Linux lets two workers that wake together share one core until
// its balancer notices, milliseconds later: kernels of up to 2 ms that are waited for one by one
// ran on one core of two (485 us instead of 260). Does nothing where the user has set
// POCL_AFFINITY, or where this process may not use all cores (PoCL numbers them from 0 and would
// abort).
void keep_pocl_workers_apart();

}  // namespace ballast::device
