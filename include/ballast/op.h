/* Ballast C ABI, part 3: single ops (eager execution).
 *
 * Ops cross the ABI by name, so a new op changes no header. docs/ops.md lists them with their
 * attributes, shapes and dtypes. Two phases, as in CANN: prepare (shape inference, kernel choice,
 * workspace size; cache the handle), then launch (one thread-safe call with all buffers). */
#ifndef BALLAST_OP_H
#define BALLAST_OP_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an op is applied to. Strides are bytes between array elements. */
typedef struct ballast_op_call {
  uint64_t struct_size;
  const ballast_chain* next;
  ballast_str name;
  const ballast_tensor_desc* inputs;
  uint64_t input_count;
  uint64_t input_stride;
  const ballast_attr* attrs;
  uint64_t attr_count;
  uint64_t attr_stride;
} ballast_op_call;

typedef struct ballast_op_info {
  uint64_t struct_size;
  const ballast_chain* next;
  uint64_t input_count;
  uint64_t output_count;
  uint64_t workspace_size; /* bytes; 0: none is needed */
  uint64_t launch_count;   /* kernels per launch */
} ballast_op_info;

/* Buffers in the order of the op's operands. An output may be the buffer of an input only where
 * docs/ops.md says that the op works in place. */
typedef struct ballast_launch {
  uint64_t struct_size;
  const ballast_chain* next;
  ballast_buffer* const* inputs;
  uint64_t input_count;
  ballast_buffer* const* outputs;
  uint64_t output_count;
  ballast_buffer* workspace; /* at least workspace_size bytes; NULL where that is 0 */
} ballast_launch;

typedef struct ballast_op_api {
  uint64_t struct_size;
  /* [T] The registered ops, for listing. */
  ballast_error* (*op_count)(uint64_t* out_count);
  ballast_error* (*op_name)(uint64_t index, ballast_str* out_name);
  /* [T] Output types of a call. `out_descs` holds `capacity` elements of one size, each with its
   * struct_size set, which is their stride; out_count is what the op has (INVALID_ARGUMENT if
   * capacity is smaller). Needs no device. */
  ballast_error* (*op_infer)(const ballast_op_call* call, ballast_tensor_desc* out_descs,
                             uint64_t capacity, uint64_t* out_count);
  /* [T] Chooses kernels for a call on a device. NOT_FOUND for an unknown name. */
  ballast_error* (*op_prepare)(ballast_device* device, const ballast_op_call* call,
                               ballast_op** out_op);
  ballast_error* (*op_info)(ballast_op* op, ballast_op_info* out_info);
  ballast_error* (*op_launch)(ballast_op* op, ballast_stream* stream, const ballast_launch* launch);
  ballast_error* (*op_release)(ballast_op* op);
} ballast_op_api;

#ifdef __cplusplus
}
#endif
#endif
