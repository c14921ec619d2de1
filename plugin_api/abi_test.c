/* The ABI as a C program sees it: negotiation, sized structs, handles, errors, one op, one graph.
 * Loads the plugin named by BALLAST_PLUGIN. Prints what failed; the exit status counts failures. */
#include "abi_test.h"

#include <dlfcn.h>

int failures = 0;
const ballast_api* api;

void expect_ok(ballast_error* error, int line) {
  if (error != NULL) {
    const ballast_str message = api->error_message(error);
    printf("line %d: unexpected error: %.*s\n", line, (int)message.size, message.data);
    api->error_destroy(error);
    ++failures;
  }
}

void expect_error(ballast_error* error, int32_t code, const char* part, int line) {
  char text[2000];
  const ballast_str message = api->error_message(error);
  snprintf(text, sizeof text, "%.*s", (int)message.size, message.data != NULL ? message.data : "");
  if (error == NULL || api->error_code(error) != code || strstr(text, part) == NULL) {
    printf("line %d: expected error %d with \"%s\", got %d \"%s\"\n", line, code, part,
           api->error_code(error), text);
    ++failures;
  }
  api->error_destroy(error);
}

ballast_str str(const char* text) {
  ballast_str s;
  s.data = text;
  s.size = strlen(text);
  return s;
}

static void test_negotiation(ballast_get_api_fn entry) {
  const ballast_api* table = (const ballast_api*)1;
  char why[200];
  CHECK(entry(BALLAST_ABI_VERSION(2, 0), BALLAST_ABI_VERSION(3, 0), &table, why, sizeof why) ==
        BALLAST_ABI_MISMATCH);
  CHECK(table == NULL && strstr(why, "ABI 1.0 to 1.2") != NULL &&
        strstr(why, "2.0 to 3.0") != NULL);
  CHECK(entry(0, BALLAST_ABI_VERSION(0, 9), &table, why, sizeof why) == BALLAST_ABI_MISMATCH);
  CHECK(entry(5, 4, &table, why, sizeof why) == BALLAST_INVALID_ARGUMENT);
  CHECK(entry(0, 0, &table, NULL, 0) == BALLAST_ABI_MISMATCH);
  CHECK(entry(0, 0, &table, why, 1) == BALLAST_ABI_MISMATCH && why[0] == 0);
  CHECK(entry(0, UINT32_MAX, NULL, why, sizeof why) == BALLAST_INVALID_ARGUMENT);
  CHECK(entry(BALLAST_ABI_VERSION(1, 0), BALLAST_ABI_VERSION(1, 0), &table, NULL, 0) == 0);
  CHECK(table->abi_version == BALLAST_ABI_VERSION(1, 0));
  CHECK(entry(BALLAST_ABI_VERSION(1, 0), BALLAST_ABI_VERSION(1, 7), &table, NULL, 0) == 0);
  CHECK(table->abi_version == BALLAST_ABI_CURRENT && table->struct_size >= sizeof(ballast_api));
  api = table;
}

static void test_before_init(void) {
  uint64_t count = 7;
  FAILS(api->device->device_count(&count), BALLAST_FAILED_PRECONDITION, "plugin_init");
  CHECK(count == 0);
  FAILS(api->plugin_shutdown(), BALLAST_FAILED_PRECONDITION, "without plugin_init");
  api->error_destroy(NULL);
  CHECK(api->error_code(NULL) == 0);
}

static void test_structs(ballast_device* device) {
  union {
    ballast_device_info info;
    unsigned char bytes[400];
  } large;
  ballast_device_info small = BALLAST_INIT(ballast_device_info);
  ballast_chain unknown = {sizeof(ballast_chain), NULL, 0x1234};
  size_t i;
  /* A future, larger struct: known fields are filled, the tail stays. */
  memset(large.bytes, 0xAA, sizeof large.bytes);
  large.info.struct_size = sizeof large.bytes;
  large.info.next = NULL;
  OK(api->device->device_info(device, &large.info));
  CHECK(large.info.name.size > 0 && large.info.struct_size == sizeof large.bytes);
  for (i = sizeof(ballast_device_info); i < sizeof large.bytes; ++i) CHECK(large.bytes[i] == 0xAA);
  /* Every smaller size is refused. */
  for (i = 0; i < sizeof(ballast_device_info); i += 8) {
    small.struct_size = i;
    FAILS(api->device->device_info(device, &small), BALLAST_INVALID_ARGUMENT, "struct_size");
  }
  small.struct_size = sizeof small;
  small.next = &unknown;
  FAILS(api->device->device_info(device, &small), BALLAST_UNIMPLEMENTED, "0x1234");
  FAILS(api->device->device_info(device, NULL), BALLAST_INVALID_ARGUMENT, "out_info is NULL");
}

static void test_handles(ballast_device* device) {
  ballast_buffer *a = NULL, *view = NULL;
  ballast_buffer_info info = BALLAST_INIT(ballast_buffer_info);
  OK(api->device->buffer_create(device, 1024, &a));
  FAILS(api->device->buffer_info((ballast_buffer*)device, &info), BALLAST_INVALID_ARGUMENT,
        "not a handle of this kind");
  FAILS(api->device->buffer_info((ballast_buffer*)&failures, &info), BALLAST_INVALID_ARGUMENT, "");
  FAILS(api->device->buffer_info(NULL, &info), BALLAST_INVALID_ARGUMENT, "NULL");
  FAILS(api->device->buffer_view(a, 1, 8, &view), BALLAST_INVALID_ARGUMENT, "multiple");
  CHECK(view == NULL);
  FAILS(api->device->buffer_view(a, 0, 1025, &view), BALLAST_INVALID_ARGUMENT, "exceeds");
  FAILS(api->device->buffer_view(a, UINT64_MAX - 127, 256, &view), BALLAST_INVALID_ARGUMENT,
        "exceeds");
  OK(api->device->buffer_view(a, 0, 512, &view));
  OK(api->device->buffer_retain(a));
  OK(api->device->buffer_release(a));
  OK(api->device->buffer_info(a, &info));
  CHECK(info.size == 1024);
  OK(api->device->buffer_release(a)); /* the view keeps the memory alive */
  FAILS(api->device->buffer_release(a), BALLAST_INVALID_ARGUMENT, "released");
  FAILS(api->device->buffer_info(a, &info), BALLAST_INVALID_ARGUMENT, "released");
  OK(api->device->buffer_info(view, &info));
  FAILS(api->plugin_shutdown(), BALLAST_FAILED_PRECONDITION, "handles are alive");
  OK(api->device->buffer_release(view));
}

ballast_tensor_desc f32(uint32_t rank, int64_t d0, int64_t d1) {
  ballast_tensor_desc desc = BALLAST_INIT(ballast_tensor_desc);
  desc.dtype = BALLAST_F32;
  desc.rank = rank;
  desc.dims[0] = d0;
  desc.dims[1] = d1;
  return desc;
}

ballast_op_call call_of(const char* name, const ballast_tensor_desc* inputs, uint64_t count) {
  ballast_op_call call = BALLAST_INIT(ballast_op_call);
  call.name = str(name);
  call.inputs = inputs;
  call.input_count = count;
  call.input_stride = sizeof(ballast_tensor_desc);
  call.attr_stride = sizeof(ballast_attr);
  return call;
}

static void test_op(ballast_device* device, ballast_stream* stream) {
  const float x[6] = {1, 2, 3, 4, 5, 6}, y[3] = {10, 20, 30};
  float z[6] = {0};
  ballast_tensor_desc types[2], out = BALLAST_INIT(ballast_tensor_desc);
  ballast_op_info info = BALLAST_INIT(ballast_op_info);
  ballast_launch launch = BALLAST_INIT(ballast_launch);
  ballast_buffer* buffers[3];
  ballast_op *op = NULL, *none = NULL;
  ballast_op_call call;
  uint64_t count = 0;
  int i;
  types[0] = f32(2, 2, 3);
  types[1] = f32(1, 3, 0);
  call = call_of("add", types, 2);
  OK(api->op->op_infer(&call, &out, 1, &count));
  CHECK(count == 1 && out.rank == 2 && out.dims[0] == 2 && out.dims[1] == 3);
  OK(api->op->op_prepare(device, &call, &op));
  OK(api->op->op_info(op, &info));
  CHECK(info.input_count == 2 && info.output_count == 1 && info.workspace_size == 0);
  OK(api->device->buffer_create(device, sizeof x, &buffers[0]));
  OK(api->device->buffer_create(device, sizeof y, &buffers[1]));
  OK(api->device->buffer_create(device, sizeof z, &buffers[2]));
  OK(api->device->copy_from_host(stream, buffers[0], 0, x, sizeof x));
  OK(api->device->copy_from_host(stream, buffers[1], 0, y, sizeof y));
  launch.inputs = buffers;
  launch.input_count = 2;
  launch.outputs = buffers + 2;
  launch.output_count = 1;
  OK(api->op->op_launch(op, stream, &launch));
  OK(api->device->copy_to_host(stream, z, buffers[2], 0, sizeof z));
  for (i = 0; i < 6; ++i) CHECK(z[i] == x[i] + y[i % 3]);

  launch.input_count = 1;
  FAILS(api->op->op_launch(op, stream, &launch), BALLAST_INVALID_ARGUMENT, "[add] takes 2 inputs");
  launch.input_count = 2;
  launch.outputs = buffers + 1;
  FAILS(api->op->op_launch(op, stream, &launch), BALLAST_INVALID_ARGUMENT,
        "[add] output 0 needs 24 bytes, its buffer has 12");
  call.name = str("ad");
  FAILS(api->op->op_prepare(device, &call, &none), BALLAST_NOT_FOUND, "did you mean");
  call = call_of("add", types, 2);
  types[1] = f32(1, 4, 0);
  FAILS(api->op->op_infer(&call, &out, 1, &count), BALLAST_INVALID_ARGUMENT,
        "[add] shapes [2, 3] and [4] do not broadcast");
  types[1].dtype = 99;
  FAILS(api->op->op_infer(&call, &out, 1, &count), BALLAST_INVALID_ARGUMENT, "unknown dtype 99");
  types[1] = f32(9, 4, 0);
  FAILS(api->op->op_infer(&call, &out, 1, &count), BALLAST_INVALID_ARGUMENT, "rank 9");
  for (i = 0; i < 3; ++i) OK(api->device->buffer_release(buffers[i]));
  OK(api->op->op_release(op));
}

/* An array of descriptions larger than the plugin's; and counts that nobody has. */
static void test_arrays(void) {
  struct {
    ballast_tensor_desc desc;
    uint64_t later;
  } out[3];
  const ballast_tensor_desc x = f32(2, 2, 3), gamma = f32(1, 3, 0);
  const ballast_tensor_desc types[3] = {x, gamma, gamma};
  ballast_op_call call = call_of("layer_norm", types, 3);
  uint64_t count = 0;
  int i;
  memset(out, 0, sizeof out);
  for (i = 0; i < 3; ++i) {
    out[i].desc.struct_size = sizeof out[i];
    out[i].later = 77;
  }
  OK(api->op->op_infer(&call, &out[0].desc, 3, &count));
  CHECK(count == 3 && out[0].desc.rank == 2 && out[1].desc.dtype == BALLAST_F32);
  for (i = 0; i < 3; ++i) CHECK(out[i].later == 77 && out[i].desc.struct_size == sizeof out[i]);
  CHECK(out[2].desc.dtype == BALLAST_F32 && out[2].desc.dims[0] == 2);
  FAILS(api->op->op_infer(&call, NULL, 3, &count), BALLAST_INVALID_ARGUMENT, "out_descs is NULL");
  call.input_count = UINT64_MAX / 8;
  FAILS(api->op->op_infer(&call, &out[0].desc, 3, &count), BALLAST_INVALID_ARGUMENT,
        "inputs: 2305843009213693951 elements");
}

static int logged[5]; /* by level */
static void keep_level(void* user, int32_t level, ballast_str message) {
  (void)user;
  (void)message;
  ++logged[level];
}

/* The plugin builds a program where it cannot make a lock, which it says at level 4. */
static void test_log(ballast_device* device, ballast_stream* stream) {
  ballast_tensor_desc type = f32(1, 7, 0);
  ballast_op_call call = call_of("expm1", &type, 1);
  ballast_launch launch = BALLAST_INIT(ballast_launch);
  ballast_buffer* buffer = NULL;
  ballast_op* op = NULL;
  OK(api->device->buffer_create(device, 28, &buffer));
  launch.inputs = launch.outputs = &buffer;
  launch.input_count = launch.output_count = 1;
  setenv("TMPDIR", "/proc", 1);
  OK(api->op->op_prepare(device, &call, &op));
  OK(api->op->op_launch(op, stream, &launch));
  OK(api->device->stream_sync(stream));
  unsetenv("TMPDIR");
  CHECK(logged[4] > 0 && logged[1] == 0);
  OK(api->op->op_release(op));
  OK(api->device->buffer_release(buffer));
}

int main(void) {
  const char* path = getenv("BALLAST_PLUGIN");
  void* library = dlopen(path != NULL ? path : "libballast.so", RTLD_NOW | RTLD_LOCAL);
  ballast_get_api_fn entry;
  ballast_device* device = NULL;
  ballast_stream* stream = NULL;
  ballast_device_options limited = BALLAST_INIT(ballast_device_options);
  ballast_buffer* buffer = NULL;
  ballast_plugin_info info = BALLAST_INIT(ballast_plugin_info);
  const void* table = &info;
  ballast_host host = BALLAST_INIT(ballast_host);
  host.user = printed;
  host.print = keep_printed;
  host.log = keep_level;
  if (library == NULL) {
    printf("%s\n", dlerror());
    return 1;
  }
  *(void**)&entry = dlsym(library, BALLAST_ENTRY_SYMBOL);
  test_negotiation(entry);
  test_before_init();
  OK(api->plugin_info(&info));
  CHECK(info.unloadable == 0 && info.version.size > 0);
  FAILS(api->get_extension(42, 0, &table), BALLAST_UNIMPLEMENTED, "no extension");
  CHECK(table == NULL);
  host.struct_size = 32; /* the host of 1.0 */
  OK(api->plugin_init(&host));
  OK(api->plugin_shutdown());
  host.struct_size = sizeof host;
  OK(api->plugin_init(&host));
  FAILS(api->device->device_open(str("no such device"), NULL, &device), BALLAST_NOT_FOUND,
        "no such device");
  OK(api->device->device_open(str(""), NULL, &device));
  OK(api->device->stream_default(device, &stream));
  test_structs(device);
  test_handles(device);
  test_op(device, stream);
  test_arrays();
  test_log(device, stream);
  test_graph(device, stream);
  test_regions(device, stream);
  test_print(device, stream);
  OK(api->device->stream_release(stream));
  OK(api->device->device_release(device));

  limited.memory_limit = 1 << 20;
  OK(api->device->device_open(str(""), &limited, &device));
  FAILS(api->device->buffer_create(device, 2 << 20, &buffer), BALLAST_OUT_OF_DEVICE_MEMORY,
        "2097152");
  OK(api->device->buffer_create(device, 1 << 10, &buffer));
  OK(api->device->buffer_release(buffer));
  OK(api->device->device_release(device));
  OK(api->plugin_shutdown());
  printf("%d failures\n", failures);
  return failures != 0;
}
