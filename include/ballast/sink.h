/* Ballast C ABI, part 5: the sink. n steps of one executable in one host call.
 *
 * Contract: bit-identical to n calls of executable_run; no device allocation during a run; an error
 * at step k leaves steps_done = k and the state as after step k - 1. */
#ifndef BALLAST_SINK_H
#define BALLAST_SINK_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ballast_sink_options {
  uint64_t struct_size;
  const ballast_chain* next;
  uint64_t max_slots; /* longest queue bound as host memory; sizes the staging memory. 0: none */
} ballast_sink_options;

/* A device queue of one graph input or output: `slots` elements of the value's type one after the
 * other. Step i of a run uses slot i % slots. Inputs: `buffer`, or `host` (staged; read before the
 * call returns; needs slots <= max_slots). Outputs: `buffer`, or NULL to drop the values.
 * Where slots > 1, the value's size must be a multiple of its dtype only; no padding lies between.
 */
typedef struct ballast_queue_binding {
  uint64_t struct_size;
  const ballast_chain* next;
  ballast_buffer* buffer;
  const void* host;
  uint64_t slots;
} ballast_queue_binding;

typedef struct ballast_sink_info {
  uint64_t struct_size;
  const ballast_chain* next;
  uint64_t launches_per_step;
  uint64_t submits_per_step_x1000; /* enqueues per step of the last run, times 1000 */
  uint64_t replay_allocations;     /* driver and pool allocations made during runs: 0 */
  uint64_t bytes_retained;
  int32_t replay; /* BALLAST_REPLAY_* in use */
  int32_t reserved;
} ballast_sink_info;

typedef struct ballast_sink_api {
  uint64_t struct_size;
  /* [T] Records `executable` for repeated running. The executable's states must be bound. */
  ballast_error* (*sink_create)(ballast_executable* executable, const ballast_sink_options* options,
                                ballast_sink** out_sink);
  /* [S] Rebinds a state between runs; FAILED_PRECONDITION while a run is in progress. */
  ballast_error* (*sink_update)(ballast_sink* sink, uint64_t state_index, ballast_buffer* buffer);
  /* [S] Runs n steps on `stream`; asynchronous for the device, 0 steps are legal. Two runs of one
   * sink at once are refused. On another stream than the executable's last run it waits for that.
   */
  ballast_error* (*sink_run)(ballast_sink* sink, ballast_stream* stream, uint64_t n_steps,
                             const ballast_queue_binding* inputs, uint64_t input_count,
                             uint64_t input_stride, const ballast_queue_binding* outputs,
                             uint64_t output_count, uint64_t output_stride);
  /* [T] Steps submitted by the run in progress, or by the last one. */
  ballast_error* (*sink_progress)(ballast_sink* sink, uint64_t* out_steps);
  /* [T] Stops the run in progress: sink_run returns CANCELLED, steps_done and states are those of
   * the last whole step. It stops before the next step or before the next iteration of a while or
   * scan within the step; steps that are one launch (BALLAST_REPLAY_STITCH: some tens of
   * milliseconds of them) end first. If no run is in progress, the next one stops before its
   * first step: it may be about to begin. */
  ballast_error* (*sink_cancel)(ballast_sink* sink);
  ballast_error* (*sink_info)(ballast_sink* sink, ballast_sink_info* out_info);
  ballast_error* (*sink_release)(ballast_sink* sink);
} ballast_sink_api;

#ifdef __cplusplus
}
#endif
#endif
