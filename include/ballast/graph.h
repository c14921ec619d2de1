/* Ballast C ABI, part 4: graphs and executables.
 *
 * A graph is a list of nodes in topological order over numbered values. Inputs change per call;
 * state (parameters, optimizer state) is bound once to buffers, stays on the device and is updated
 * in place by the graph; constants are copied in.
 *
 * Control flow is a node with regions: graphs of their own whose inputs are the node's operands and
 * whose outputs become its results. docs/ops.md describes the ops cond, while and scan. */
#ifndef BALLAST_GRAPH_H
#define BALLAST_GRAPH_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A value of a graph: dense numbers from 0 in order of creation. */
typedef uint64_t ballast_value;

/* Optimization levels; equal results bit for bit between run, jit and sink within one level. */
#define BALLAST_O0 1 /* kernel by kernel, no fusion */
#define BALLAST_O1 2 /* simplified and fused */

/* What executable_describe tells of. */
#define BALLAST_INPUT 1
#define BALLAST_OUTPUT 2
#define BALLAST_STATE 3

/* How an executable's command list reaches the device. */
#define BALLAST_REPLAY_AUTO 1
#define BALLAST_REPLAY_LIST 2   /* prepared launches, enqueued one by one */
#define BALLAST_REPLAY_NATIVE 3 /* cl_khr_command_buffer */
#define BALLAST_REPLAY_STITCH 4 /* one kernel that loops over the steps */

typedef struct ballast_compile_options {
  uint64_t struct_size;
  const ballast_chain* next;
  int32_t level;  /* BALLAST_O*; 0: O1 */
  int32_t replay; /* BALLAST_REPLAY_*; 0: AUTO. A kind that cannot serve is UNIMPLEMENTED. */
} ballast_compile_options;

typedef struct ballast_executable_info {
  uint64_t struct_size;
  const ballast_chain* next;
  uint64_t input_count, output_count, state_count;
  uint64_t launch_count;      /* kernels per run before stitching; a cond counts its longer branch,
                               * a while one step, a scan all of its steps */
  uint64_t submit_count;      /* enqueues per run in the chosen replay, counted likewise */
  uint64_t node_count;        /* after the passes, without regions */
  uint64_t arena_bytes;       /* planned memory for all temporaries, regions included */
  uint64_t naive_bytes;       /* sum of all temporaries, each with memory of its own */
  uint64_t lower_bound_bytes; /* largest sum of temporaries alive at once */
  uint64_t constant_bytes;
  int32_t replay; /* the chosen BALLAST_REPLAY_* */
  int32_t level;
  ballast_str text; /* the optimized graph, printed */
} ballast_executable_info;

/* Where an input comes from or an output goes to: a device buffer, or host memory.
 * Host inputs are read before the call returns (staged); host outputs are not allowed. An output
 * whose `buffer` is NULL is computed and dropped. */
typedef struct ballast_binding {
  uint64_t struct_size;
  const ballast_chain* next;
  ballast_buffer* buffer;
  const void* host;
} ballast_binding;

typedef struct ballast_graph_api {
  uint64_t struct_size;
  ballast_error* (*graph_create)(ballast_graph** out_graph);
  ballast_error* (*graph_release)(ballast_graph* graph);
  /* [S] Declarations; names appear in messages and in the text form. */
  ballast_error* (*graph_add_input)(ballast_graph* graph, ballast_str name,
                                    const ballast_tensor_desc* desc, ballast_value* out_value);
  ballast_error* (*graph_add_state)(ballast_graph* graph, ballast_str name,
                                    const ballast_tensor_desc* desc, ballast_value* out_value);
  /* `data` holds the elements; it is copied. */
  ballast_error* (*graph_add_constant)(ballast_graph* graph, const ballast_tensor_desc* desc,
                                       const void* data, ballast_value* out_value);
  /* Adds an op on existing values (call->inputs is ignored; types come from the values). `where` is
   * the user's source position, shown in errors; may be empty. out_values holds `capacity`. A call
   * that fails leaves the graph as it was. */
  ballast_error* (*graph_add_node)(ballast_graph* graph, const ballast_op_call* call,
                                   const ballast_value* inputs, uint64_t input_count,
                                   ballast_str where, ballast_value* out_values, uint64_t capacity,
                                   uint64_t* out_count);
  ballast_error* (*graph_value_desc)(ballast_graph* graph, ballast_value value,
                                     ballast_tensor_desc* out_desc);
  /* After a run, the state `state` holds what `value` was. At most once per state. */
  ballast_error* (*graph_set_update)(ballast_graph* graph, ballast_value state,
                                     ballast_value value);
  ballast_error* (*graph_set_outputs)(ballast_graph* graph, const ballast_value* values,
                                      uint64_t count);
  /* Text form, round trip (constants included). The text is owned by the graph and valid until its
   * next call. */
  ballast_error* (*graph_to_text)(ballast_graph* graph, ballast_str* out_text);
  ballast_error* (*graph_from_text)(ballast_str text, ballast_graph** out_graph);

  /* [T] Runs the passes, plans memory, builds kernels, records. The graph may be released after. */
  ballast_error* (*graph_compile)(ballast_device* device, ballast_graph* graph,
                                  const ballast_compile_options* options,
                                  ballast_executable** out_executable);
  ballast_error* (*executable_info)(ballast_executable* executable,
                                    ballast_executable_info* out_info);
  /* [S] Binds state number `index` (order of graph_add_state) to a buffer, which it retains. At a
   * run, states may share memory if the graph updates none of them. */
  ballast_error* (*executable_bind_state)(ballast_executable* executable, uint64_t index,
                                          ballast_buffer* buffer);
  /* [S] One run, asynchronous on `stream`. Every state must be bound. Runs of one executable, those
   * of its sinks too, use the same memory: a run on another stream than the last one waits, on the
   * device, for what was submitted to that stream. For runs that overlap, compile twice. */
  ballast_error* (*executable_run)(ballast_executable* executable, ballast_stream* stream,
                                   const ballast_binding* inputs, uint64_t input_count,
                                   uint64_t input_stride, const ballast_binding* outputs,
                                   uint64_t output_count, uint64_t output_stride);
  ballast_error* (*executable_release)(ballast_executable* executable);

  /* Since 1.1. graph_add_node for control flow: `regions` are graphs without states, which are
   * copied and may be released or changed afterwards. */
  ballast_error* (*graph_add_region_node)(ballast_graph* graph, const ballast_op_call* call,
                                          const ballast_value* inputs, uint64_t input_count,
                                          ballast_graph* const* regions, uint64_t region_count,
                                          ballast_str where, ballast_value* out_values,
                                          uint64_t capacity, uint64_t* out_count);

  /* [T] Since 1.2. What input, output or state number `index` is. The name (of outputs: empty)
   * lives as long as the executable; out_name may be NULL. */
  ballast_error* (*executable_describe)(ballast_executable* executable, int32_t kind,
                                        uint64_t index, ballast_tensor_desc* out_desc,
                                        ballast_str* out_name);
  /* [T] Since 1.2. Compiles an exported function (docs/abi.md says what the file holds). Its states
   * are bound to buffers of the executable's own that hold the file's values. A file that is
   * damaged or of another version is INVALID_ARGUMENT, and nothing of it is kept. */
  ballast_error* (*executable_load)(ballast_device* device, ballast_str path,
                                    const ballast_compile_options* options,
                                    ballast_executable** out_executable);
} ballast_graph_api;

#ifdef __cplusplus
}
#endif
#endif
