/* Runs a function that a frontend has exported, by the plugin alone: feeds its f32 inputs with the
 * numbers of the command line, in turn (where there are none left: 0), and prints its outputs.
 * usage: run_exported LIBBALLAST_SO FILE DEVICE [NUMBER...] */
#include "examples/c_api/plugin.h"

enum { kMostValues = 64 };

static ballast_device* device;
static ballast_stream* stream;

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
  load_plugin(argv[1], BALLAST_ABI_VERSION(1, 2));
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
