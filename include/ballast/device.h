/* Ballast C ABI, part 2: devices, memory, streams, events. See base.h for the conventions. */
#ifndef BALLAST_DEVICE_H
#define BALLAST_DEVICE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Schedule classes: which kernels a device is given. */
#define BALLAST_CLASS_CPU 1
#define BALLAST_CLASS_GPU 2

typedef struct ballast_device_info {
  uint64_t struct_size;
  const ballast_chain* next;
  ballast_str name;     /* CL_DEVICE_NAME */
  ballast_str platform; /* CL_PLATFORM_NAME */
  ballast_str driver;   /* CL_DRIVER_VERSION */
  uint64_t ordinal;     /* what device_open takes */
  int32_t device_class; /* BALLAST_CLASS_* */
  uint32_t compute_units;
  uint64_t memory_bytes;
  uint64_t buffer_alignment;  /* bytes; of every buffer's start */
  int32_t has_command_buffer; /* 1: cl_khr_command_buffer is there */
  int32_t is_host_unified;    /* 1: device memory is the host's memory */
} ballast_device_info;

typedef struct ballast_device_options {
  uint64_t struct_size;
  const ballast_chain* next;
  uint64_t memory_limit; /* bytes the pool may take from the driver; 0: no limit of ours */
  int32_t device_class;  /* force a schedule class; 0: by the device's type */
  int32_t profile;       /* 1: time every kernel (see profile.h) */
} ballast_device_options;

/* Of the caching pool of one device; bytes. */
typedef struct ballast_memory_stats {
  uint64_t struct_size;
  const ballast_chain* next;
  uint64_t in_use;      /* handed out */
  uint64_t peak_in_use; /* since open or the last reset */
  uint64_t reserved;    /* taken from the driver */
  uint64_t peak_reserved;
  uint64_t largest_free; /* largest free block within `reserved` */
  uint64_t free_blocks;
  uint64_t driver_allocations; /* count, since open */
  uint64_t pool_allocations;   /* count, since open */
} ballast_memory_stats;

typedef struct ballast_buffer_info {
  uint64_t struct_size;
  const ballast_chain* next;
  uint64_t size; /* bytes asked for */
} ballast_buffer_info;

/* Waiting without limit. */
#define BALLAST_FOREVER UINT64_MAX

/* The slots. Names drop the prefix: api->device_open. */
typedef struct ballast_device_api {
  uint64_t struct_size;
  /* [T] How many devices there are; 0 (and success) where no OpenCL platform is installed. */
  ballast_error* (*device_count)(uint64_t* out_count);
  ballast_error* (*device_describe)(uint64_t ordinal, ballast_device_info* out_info);
  /* [T] Opens a device. `selector`: empty (BALLAST_DEVICE of the environment, else the best usable
   * device), "pocl", "intel", an ordinal, or part of a platform's or device's name. Opening one
   * device twice with equal options gives one shared device. NOT_FOUND lists what there is. */
  ballast_error* (*device_open)(ballast_str selector, const ballast_device_options* options,
                                ballast_device** out_device);
  ballast_error* (*device_release)(ballast_device* device);
  ballast_error* (*device_info)(ballast_device* device, ballast_device_info* out_info);
  ballast_error* (*device_memory_stats)(ballast_device* device, ballast_memory_stats* out_stats);
  ballast_error* (*device_reset_peak)(ballast_device* device);
  /* [T] Gives free memory of the pool back to the driver. */
  ballast_error* (*device_trim)(ballast_device* device);
  /* [T] Waits for every stream; reports the first failure of any. */
  ballast_error* (*device_sync)(ballast_device* device);

  /* [T] Device memory; zero bytes are legal. OUT_OF_DEVICE_MEMORY names the request and the pool's
   * state. Release is ordered on the streams that used the buffer and never waits. */
  ballast_error* (*buffer_create)(ballast_device* device, uint64_t size,
                                  ballast_buffer** out_buffer);
  /* [T] A part of `parent`, which it keeps alive; `offset` must be a multiple of the device's
   * buffer_alignment. */
  ballast_error* (*buffer_view)(ballast_buffer* parent, uint64_t offset, uint64_t size,
                                ballast_buffer** out_buffer);
  ballast_error* (*buffer_retain)(ballast_buffer* buffer);
  ballast_error* (*buffer_release)(ballast_buffer* buffer);
  ballast_error* (*buffer_info)(ballast_buffer* buffer, ballast_buffer_info* out_info);

  /* [T] Copies in stream order. copy_from_host has read `source` when it returns; copy_to_host has
   * written `target` when it returns (it waits); copy is device to device and does not wait. */
  ballast_error* (*copy_from_host)(ballast_stream* stream, ballast_buffer* target, uint64_t offset,
                                   const void* source, uint64_t size);
  ballast_error* (*copy_to_host)(ballast_stream* stream, void* target, ballast_buffer* source,
                                 uint64_t offset, uint64_t size);
  ballast_error* (*copy)(ballast_stream* stream, ballast_buffer* target, uint64_t target_offset,
                         ballast_buffer* source, uint64_t source_offset, uint64_t size);
  /* [T] Repeats `pattern` (1, 2, 4, 8 or 16 bytes) over a range. */
  ballast_error* (*fill)(ballast_stream* stream, ballast_buffer* target, uint64_t offset,
                         uint64_t size, const void* pattern, uint64_t pattern_size);

  /* [T] An in-order queue of device work. stream_default: the device's own, where memory is reused
   * without events; the one to use unless work must overlap. Release both alike. */
  ballast_error* (*stream_default)(ballast_device* device, ballast_stream** out_stream);
  ballast_error* (*stream_create)(ballast_device* device, ballast_stream** out_stream);
  ballast_error* (*stream_release)(ballast_stream* stream);
  /* [T] Waits until everything submitted so far is done; reports the stream's first failure. */
  ballast_error* (*stream_sync)(ballast_stream* stream);
  /* [T] Later work of `stream` waits for `event`, on the device. */
  ballast_error* (*stream_wait_event)(ballast_stream* stream, ballast_event* event);

  ballast_error* (*event_create)(ballast_device* device, ballast_event** out_event);
  ballast_error* (*event_release)(ballast_event* event);
  /* [T] The event becomes done when all work submitted to `stream` so far is done. */
  ballast_error* (*event_record)(ballast_event* event, ballast_stream* stream);
  ballast_error* (*event_query)(ballast_event* event, int32_t* out_done);
  ballast_error* (*event_wait)(ballast_event* event);
  /* [T] Nanoseconds of device time between two done events of one device. */
  ballast_error* (*event_elapsed)(ballast_event* start, ballast_event* end, uint64_t* out_ns);
} ballast_device_api;

#ifdef __cplusplus
}
#endif
#endif
