/* Ballast C ABI, part 1: conventions, errors, tensors, attributes, versions.
 *
 * Conventions of every header in this folder
 *  (1) Plain C99. Enumerations are int32_t with named constants (0 is "unset"), sizes are uint64_t,
 *      strings are pointer + length. No bool, enum type, bit-field, long, size_t or varargs.
 *  (2) Every struct begins with `struct_size` (set it with BALLAST_INIT) and a `next` chain.
 *      The plugin reads only the fields that fit into struct_size; a larger struct than it knows
 *      is accepted and its tail ignored. A chain node that the plugin does not know is refused.
 *      Arrays of structs use each element's own struct_size as the stride's lower bound and
 *      carry the stride explicitly (`*_stride`, bytes).
 *  (3) A call returns NULL on success, or an error that the caller owns and destroys. Outputs are
 *      cleared first, so a failed call never leaves a stale handle behind.
 *  (4) Handles are opaque and checked: a NULL, stale or foreign handle is INVALID_ARGUMENT, not a
 *      crash. A child keeps its parent alive; releasing in any order is legal.
 *  (5) Pointers passed in are read during the call only, unless a comment says otherwise.
 *  (6) [T] marks calls that any thread may make at any time; [S] calls on one handle must be
 *      serialised by the caller.
 *  (7) The process must not fork between plugin_init and using the plugin in the child:
 *      every device call in such a child fails with FAILED_PRECONDITION.
 */
#ifndef BALLAST_BASE_H
#define BALLAST_BASE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BALLAST_ABI_MAJOR 1
#define BALLAST_ABI_MINOR 2
#define BALLAST_ABI_VERSION(major, minor) (((uint32_t)(major) << 16) | (uint32_t)(minor))
#define BALLAST_ABI_CURRENT BALLAST_ABI_VERSION(BALLAST_ABI_MAJOR, BALLAST_ABI_MINOR)

/* Error codes. */
#define BALLAST_INVALID_ARGUMENT 1    /* the caller's mistake; the message names the argument */
#define BALLAST_FAILED_PRECONDITION 2 /* right call, wrong moment (released, in progress, ...) */
#define BALLAST_NOT_FOUND 3           /* no such op, device, file or extension */
#define BALLAST_UNIMPLEMENTED 4       /* known but not supported (dtype, option, slot) */
#define BALLAST_OUT_OF_DEVICE_MEMORY 5
#define BALLAST_OUT_OF_HOST_MEMORY 6
/* Sticky: what failed answers nothing else from then on. That is a stream, some of whose work
 * failed, or, where the driver gives it up, the device. */
#define BALLAST_DEVICE_LOST 7
#define BALLAST_ABI_MISMATCH 8
#define BALLAST_BUILD_FAILED 9 /* a device program did not compile; the message holds the log */
#define BALLAST_CANCELLED 10
#define BALLAST_INTERNAL 11

/* Element types; the values are part of the ABI. */
#define BALLAST_F32 1
#define BALLAST_F64 2
#define BALLAST_F16 3
#define BALLAST_BF16 4
#define BALLAST_I32 5
#define BALLAST_I64 6
#define BALLAST_U8 7
#define BALLAST_BOOL 8 /* one byte, 0 or 1 */

#define BALLAST_MAX_RANK 8

typedef struct ballast_error ballast_error;
typedef struct ballast_device ballast_device;
typedef struct ballast_buffer ballast_buffer;
typedef struct ballast_stream ballast_stream;
typedef struct ballast_event ballast_event;
typedef struct ballast_op ballast_op;
typedef struct ballast_graph ballast_graph;
typedef struct ballast_executable ballast_executable;
typedef struct ballast_sink ballast_sink;

/* A node of a `next` chain. */
typedef struct ballast_chain {
  uint64_t struct_size;
  const struct ballast_chain* next;
  uint64_t type_id;
} ballast_chain;

/* Text; not NUL-terminated. Text handed out by the plugin lives as long as the handle it came
 * from, or for the life of the process where there is none. */
typedef struct ballast_str {
  const char* data;
  uint64_t size;
} ballast_str;

/* A dense row-major tensor: element type and extents. Of `dims` the first
 * `rank` count. */
typedef struct ballast_tensor_desc {
  uint64_t struct_size;
  const ballast_chain* next;
  int32_t dtype;
  uint32_t rank;
  int64_t dims[BALLAST_MAX_RANK];
} ballast_tensor_desc;

/* Attribute kinds. */
#define BALLAST_ATTR_INT 1
#define BALLAST_ATTR_FLOAT 2
#define BALLAST_ATTR_STRING 3
#define BALLAST_ATTR_INTS 4

/* One attribute of an op: its name and the one value field that `kind` selects. */
typedef struct ballast_attr {
  uint64_t struct_size;
  const ballast_chain* next;
  ballast_str name;
  int32_t kind;
  uint32_t reserved; /* 0 */
  int64_t int_value;
  double float_value;
  ballast_str string_value;
  const int64_t* ints;
  uint64_t ints_count;
} ballast_attr;

/* Zeroes a struct and sets its size: ballast_tensor_desc d = BALLAST_INIT(ballast_tensor_desc); */
#ifdef __cplusplus
#define BALLAST_INIT(type) (type{sizeof(type)})
#else
#define BALLAST_INIT(type) \
  { .struct_size = sizeof(type) }
#endif

#ifdef __cplusplus
}
#endif
#endif
