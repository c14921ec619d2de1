/* Runs a function that a frontend has exported, by the plugin alone: feeds its f32 inputs with the
 * numbers of the command line, in turn (where there are none left: 0), and prints its outputs.
 * usage: run_exported LIBBALLAST_SO FILE DEVICE [NUMBER...] */
#include <ballast/ballast.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMostValues = 64 };

static const ballast_api* api;
static ballast_device* device;
static ballast_stream* stream;

static ballast_str text(const char* s) {
  ballast_str str = {s, strlen(s)};
  return str;
}

/* Every call answers NULL, or an error that is ours to destroy. */
static void check(ballast_error* error) {
  if (error == NULL) return;
  ballast_str why = api->error_message(error);
  fprintf(stderr, "error %d: %.*s\n", api->error_code(error), (int)why.size, why.data);
  api->error_destroy(error);
  exit(1);
}

static void load_plugin(const char* path) {
  char why[256] = "no " BALLAST_ENTRY_SYMBOL;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* symbol = library ? dlsym(library, BALLAST_ENTRY_SYMBOL) : NULL;
  ballast_get_api_fn get_api;
  memcpy(&get_api, &symbol, sizeof(get_api)); /* ISO C has no cast from object to function */
  if (!get_api || get_api(BALLAST_ABI_VERSION(1, 2), BALLAST_ABI_CURRENT, &api, why, sizeof(why)))
    exit(fprintf(stderr, "%s: %s\n", path, library ? why : dlerror()) > 0);
  check(api->plugin_init(NULL));
}

/* What input or output number `index` is: the number of its elements, all f32. */
static uint64_t describe(ballast_executable* function, int32_t kind, uint64_t index) {
  ballast_tensor_desc desc = BALLAST_INIT(ballast_tensor_desc);
  uint64_t elements = 1;
  check(api->graph->executable_describe(function, kind, index, &desc, NULL));
  if (desc.dtype != BALLAST_F32) exit(fprintf(stderr, "only f32 is fed and printed here\n") > 0);
  for (uint32_t i = 0; i < desc.rank; ++i) elements *= (uint64_t)desc.dims[i];
  return elements;
}

static ballast_binding buffer_of(uint64_t elements) {
  ballast_binding binding = BALLAST_INIT(ballast_binding);
  check(api->device->buffer_create(device, elements * sizeof(float), &binding.buffer));
  return binding;
}

static void feed(ballast_binding* input, uint64_t elements, char*** numbers) {
  float* values = calloc(elements + 1, sizeof(float));
  for (uint64_t i = 0; i < elements && **numbers; ++i) values[i] = strtof(*(*numbers)++, NULL);
  *input = buffer_of(elements);
  check(api->device->copy_from_host(stream, input->buffer, 0, values, elements * sizeof(float)));
  free(values);
}

static void print(const ballast_binding* output, uint64_t elements) {
  float* values = calloc(elements + 1, sizeof(float));
  check(api->device->copy_to_host(stream, values, output->buffer, 0, elements * sizeof(float)));
  for (uint64_t i = 0; i < elements; ++i) printf(i == 0 ? "%.9g" : " %.9g", values[i]);
  printf("\n");
  free(values);
}

int main(int argc, char** argv) {
  ballast_executable* function;
  ballast_executable_info info = BALLAST_INIT(ballast_executable_info);
  ballast_binding inputs[kMostValues], outputs[kMostValues];
  if (argc < 4) exit(fprintf(stderr, "usage: %s LIBBALLAST_SO FILE DEVICE [NUMBER...]\n", argv[0]));
  load_plugin(argv[1]);
  check(api->device->device_open(text(argv[3]), NULL, &device));
  check(api->device->stream_default(device, &stream));

  char** numbers = argv + 4;
  check(api->graph->executable_load(device, text(argv[2]), NULL, &function));
  check(api->graph->executable_info(function, &info));
  if (info.input_count > kMostValues || info.output_count > kMostValues)
    exit(fprintf(stderr, "more than %d values\n", kMostValues) > 0);
  for (uint64_t i = 0; i < info.input_count; ++i)
    feed(&inputs[i], describe(function, BALLAST_INPUT, i), &numbers);
  for (uint64_t i = 0; i < info.output_count; ++i)
    outputs[i] = buffer_of(describe(function, BALLAST_OUTPUT, i));
  check(api->graph->executable_run(function, stream, inputs, info.input_count, sizeof(inputs[0]),
                                   outputs, info.output_count, sizeof(outputs[0])));
  for (uint64_t i = 0; i < info.output_count; ++i)
    print(&outputs[i], describe(function, BALLAST_OUTPUT, i));

  for (uint64_t i = 0; i < info.input_count; ++i)
    check(api->device->buffer_release(inputs[i].buffer));
  for (uint64_t i = 0; i < info.output_count; ++i)
    check(api->device->buffer_release(outputs[i].buffer));
  check(api->graph->executable_release(function));
  check(api->device->stream_release(stream));
  check(api->device->device_release(device));
  check(api->plugin_shutdown());
  return 0;
}
