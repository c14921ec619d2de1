/* Ballast C ABI, part 6: counters and the per-kernel profile. */
#ifndef BALLAST_PROFILE_H
#define BALLAST_PROFILE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Monotonic since the device was opened. */
typedef struct ballast_counters {
  uint64_t struct_size;
  const ballast_chain* next;
  uint64_t host_calls;      /* ABI calls that put work on a stream or wait for one: op_launch,
                               executable_run, sink_run, copies, fills, syncs */
  uint64_t kernel_launches; /* kernels run by the device, inside replays too; a stitched kernel
                               counts once per enqueue */
  uint64_t submits;         /* enqueues to the OpenCL queue */
  uint64_t copies;          /* copies and fills, staging included */
  uint64_t bytes_to_device;
  uint64_t bytes_to_host;
  uint64_t bytes_on_device; /* device-to-device copies and fills */
  uint64_t allocations;     /* device allocations: driver and pool */
  uint64_t programs_built;  /* from source */
  uint64_t programs_cached; /* from the cache on disk */
} ballast_counters;

/* One kernel's times since the device was opened with options.profile = 1. */
typedef struct ballast_profile_row {
  uint64_t struct_size;
  const ballast_chain* next;
  ballast_str kernel;
  uint64_t count;
  uint64_t total_ns;
  uint64_t min_ns;
} ballast_profile_row;

typedef void (*ballast_profile_sink)(void* user, const ballast_profile_row* row);

typedef struct ballast_profile_api {
  uint64_t struct_size;
  /* [T] */
  ballast_error* (*counters)(ballast_device* device, ballast_counters* out_counters);
  /* [T] Waits for the device, then calls `sink` once per kernel, most expensive first, and clears
   * the table. FAILED_PRECONDITION unless the device was opened with options.profile = 1. */
  ballast_error* (*profile_drain)(ballast_device* device, ballast_profile_sink sink, void* user);
} ballast_profile_api;

#ifdef __cplusplus
}
#endif
#endif
