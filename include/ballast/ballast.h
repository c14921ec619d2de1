/* Ballast C ABI: the umbrella, the function table and the one exported symbol. */
#ifndef BALLAST_BALLAST_H
#define BALLAST_BALLAST_H

#include "base.h"
#include "device.h"
#include "graph.h"
#include "op.h"
#include "profile.h"
#include "sink.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the host lends the plugin; copied by plugin_init. Every pointer may be NULL. */
typedef struct ballast_host {
  uint64_t struct_size;
  const ballast_chain* next;
  void* user;
  /* Log levels: 1 error, 2 warning, 3 info, 4 debug. Called from any thread. */
  void (*log)(void* user, int32_t level, ballast_str message);
  /* Since 1.2. What the op print writes, whole lines, one call at a time; NULL: standard output.
   * Called from the thread that runs the executable or op, within that call. */
  void (*print)(void* user, ballast_str text);
} ballast_host;

typedef struct ballast_plugin_info {
  uint64_t struct_size;
  const ballast_chain* next;
  ballast_str name;
  ballast_str version;
  uint32_t abi_min;
  uint32_t abi_max;
  int32_t unloadable; /* 0: never dlclose it (PoCL keeps threads) */
  int32_t sanitizer;  /* 0 none, 1 address, 2 thread */
} ballast_plugin_info;

/* Immutable, alive for the process. Every slot is callable. */
typedef struct ballast_api {
  uint64_t struct_size;
  uint32_t abi_version; /* the version agreed on */
  uint32_t reserved;

  /* [T] Counted pair; no device work before init. shutdown fails with FAILED_PRECONDITION and a
   * count while handles are alive. */
  ballast_error* (*plugin_init)(const ballast_host* host);
  ballast_error* (*plugin_shutdown)(void);
  ballast_error* (*plugin_info)(ballast_plugin_info* out_info);
  /* [T] Optional parts by 64-bit id; UNIMPLEMENTED for an unknown one. */
  ballast_error* (*get_extension)(uint64_t id, uint32_t min_version, const void** out_table);

  /* [T] Work before plugin_init and after plugin_shutdown. error_destroy(NULL) is legal. The
   * message lives as long as the error. */
  int32_t (*error_code)(const ballast_error* error);
  ballast_str (*error_message)(const ballast_error* error);
  void (*error_destroy)(ballast_error* error);

  const ballast_device_api* device;
  const ballast_op_api* op;
  const ballast_graph_api* graph;
  const ballast_sink_api* sink;
  const ballast_profile_api* profile;
} ballast_api;

/* The only exported symbol. The caller accepts ABI versions [min_version, max_version]; the plugin
 * answers with the newest table within that range and returns 0, or writes a reason into `why`
 * (NUL-terminated, cut at why_size; may be NULL with 0) and returns BALLAST_ABI_MISMATCH or
 * BALLAST_INVALID_ARGUMENT. Does no device work; may be called any number of times. */
int32_t ballast_get_api(uint32_t min_version, uint32_t max_version, const ballast_api** out_api,
                        char* why, uint64_t why_size);
typedef int32_t (*ballast_get_api_fn)(uint32_t, uint32_t, const ballast_api**, char*, uint64_t);
#define BALLAST_ENTRY_SYMBOL "ballast_get_api"

#ifdef __cplusplus
}
#endif
#endif
