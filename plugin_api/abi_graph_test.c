/* Graphs, regions and prints through the ABI; part of abi_test. */
#include "abi_test.h"

void test_graph(ballast_device* device, ballast_stream* stream) {
  const char* const text =
      "ballast.graph 1\ninput %0 \"x\": f32[4]\nstate %1 \"sum\": f32[4]\n"
      "%2 = add(%1, %0) : f32[4]\nupdate %1 = %2\noutput %2\n";
  const float one[4] = {1, 2, 3, 4}, zero[4] = {0, 0, 0, 0};
  float got[4];
  ballast_graph* graph = NULL;
  ballast_executable* exe = NULL;
  ballast_sink* sink = NULL;
  ballast_buffer *state = NULL, *out = NULL;
  ballast_binding input = BALLAST_INIT(ballast_binding), output = BALLAST_INIT(ballast_binding);
  ballast_queue_binding qin = BALLAST_INIT(ballast_queue_binding),
                        qout = BALLAST_INIT(ballast_queue_binding);
  ballast_sink_options options = BALLAST_INIT(ballast_sink_options);
  ballast_counters before = BALLAST_INIT(ballast_counters), after = BALLAST_INIT(ballast_counters);
  ballast_str printed;
  int i;
  FAILS(api->graph->graph_from_text(str("nonsense"), &graph), BALLAST_INVALID_ARGUMENT, "line 1");
  OK(api->graph->graph_from_text(str(text), &graph));
  OK(api->graph->graph_to_text(graph, &printed));
  CHECK(printed.size == strlen(text) && memcmp(printed.data, text, printed.size) == 0);
  OK(api->graph->graph_compile(device, graph, NULL, &exe));
  OK(api->graph->graph_release(graph));
  OK(api->device->buffer_create(device, sizeof zero, &state));
  OK(api->device->buffer_create(device, sizeof got, &out));
  OK(api->device->copy_from_host(stream, state, 0, zero, sizeof zero));
  OK(api->graph->executable_bind_state(exe, 0, state));
  input.host = one;
  output.buffer = out;
  OK(api->graph->executable_run(exe, stream, &input, 1, sizeof input, &output, 1, sizeof output));
  OK(api->device->copy_to_host(stream, got, out, 0, sizeof got));
  for (i = 0; i < 4; ++i) CHECK(got[i] == one[i]);

  options.max_slots = 1;
  OK(api->sink->sink_create(exe, &options, &sink));
  OK(api->graph->executable_release(exe)); /* the sink keeps it */
  qin.host = one;
  qin.slots = 1;
  qout.slots = 1;
  OK(api->profile->counters(device, &before));
  OK(api->sink->sink_run(sink, stream, 99, &qin, 1, sizeof qin, &qout, 1, sizeof qout));
  OK(api->profile->counters(device, &after));
  CHECK(after.host_calls - before.host_calls == 1);
  CHECK(after.allocations == before.allocations);
  OK(api->device->copy_to_host(stream, got, state, 0, sizeof got));
  for (i = 0; i < 4; ++i) CHECK(got[i] == 100 * one[i]);
  OK(api->sink->sink_release(sink));
  OK(api->device->buffer_release(state));
  OK(api->device->buffer_release(out));
}

/* A region of one op on `operand`: x -> name(x). */
static ballast_graph* region_of(const char* name, const ballast_tensor_desc* operand) {
  ballast_graph* region = NULL;
  ballast_value x = 0, y = 0;
  ballast_op_call call = call_of(name, NULL, 0);
  uint64_t count = 0;
  OK(api->graph->graph_create(&region));
  OK(api->graph->graph_add_input(region, str("x"), operand, &x));
  OK(api->graph->graph_add_node(region, &call, &x, 1, str(""), &y, 1, &count));
  OK(api->graph->graph_set_outputs(region, &y, 1));
  return region;
}

/* where(p, -x, x x) as a cond. */
void test_regions(ballast_device* device, ballast_stream* stream) {
  const float x[4] = {1, 2, 3, 4};
  const unsigned char flags[2] = {1, 0};
  float got[4];
  ballast_tensor_desc type = f32(1, 4, 0), predicate = f32(0, 0, 0), other = f32(1, 5, 0);
  ballast_graph *graph = NULL, *again = NULL, *regions[2], *stateful = NULL, *foreign = NULL;
  ballast_value in[2], out[2], state = 0;
  ballast_op_call call = call_of("cond", NULL, 0);
  ballast_executable* exe = NULL;
  ballast_buffer* buffer = NULL;
  ballast_binding inputs[2], output = BALLAST_INIT(ballast_binding);
  ballast_str text;
  uint64_t count = 0;
  int run, i;
  char first[1000];
  predicate.dtype = BALLAST_BOOL;
  regions[0] = region_of("neg", &type);
  regions[1] = foreign = region_of("neg", &other);
  OK(api->graph->graph_create(&graph));
  OK(api->graph->graph_add_input(graph, str("p"), &predicate, &in[0]));
  OK(api->graph->graph_add_input(graph, str("x"), &type, &in[1]));
  FAILS(api->graph->graph_add_node(graph, &call, in, 2, str(""), out, 2, &count),
        BALLAST_INVALID_ARGUMENT, "[cond] has 2 regions, got 0");
  FAILS(api->graph->graph_add_region_node(graph, &call, in, 2, regions, 1, str(""), out, 2, &count),
        BALLAST_INVALID_ARGUMENT, "[cond] has 2 regions, got 1");
  FAILS(api->graph->graph_add_region_node(graph, &call, in, 2, NULL, 2, str(""), out, 2, &count),
        BALLAST_INVALID_ARGUMENT, "regions is NULL");
  FAILS(api->graph->graph_add_region_node(graph, &call, in, 1, regions, 2, str("a.c:7"), out, 2,
                                          &count),
        BALLAST_INVALID_ARGUMENT, "region 0 takes (f32[4]), its operands are ()");
  FAILS(api->graph->graph_add_region_node(graph, &call, in + 1, 1, regions, 2, str("a.c:7"), out, 2,
                                          &count),
        BALLAST_INVALID_ARGUMENT,
        "the predicate is f32[4], expected bool[]; inputs are f32[4] (at");
  FAILS(api->graph->graph_add_region_node(graph, &call, in, 2, regions, 2, str(""), out, 2, &count),
        BALLAST_INVALID_ARGUMENT, "region 1 takes (f32[5])");
  OK(api->graph->graph_create(&stateful));
  OK(api->graph->graph_add_state(stateful, str("s"), &type, &state));
  regions[1] = stateful;
  FAILS(api->graph->graph_add_region_node(graph, &call, in, 2, regions, 2, str(""), out, 2, &count),
        BALLAST_INVALID_ARGUMENT, "region 1 has a state, \"s\"");
  OK(api->graph->graph_release(stateful));
  FAILS(api->graph->graph_add_region_node(graph, &call, in, 2, regions, 2, str(""), out, 2, &count),
        BALLAST_INVALID_ARGUMENT, "region has been released");
  OK(api->graph->graph_release(foreign));
  regions[1] = region_of("square", &type);
  FAILS(api->graph->graph_add_region_node(graph, &call, in, 2, regions, 2, str(""), out, 0, &count),
        BALLAST_INVALID_ARGUMENT, "1 outputs, out_values holds 0");
  FAILS(
      api->graph->graph_add_region_node(graph, &call, in, 2, regions, 2, str(""), NULL, 1, &count),
      BALLAST_INVALID_ARGUMENT, "1 outputs, out_values holds 0");
  OK(api->graph->graph_to_text(graph, &text));
  snprintf(first, sizeof first, "%.*s", (int)text.size, text.data);
  CHECK(strstr(first, "cond(") == NULL); /* no node is left behind */
  OK(api->graph->graph_add_region_node(graph, &call, in, 2, regions, 2, str("a.c:7"), out, 2,
                                       &count));
  CHECK(count == 1);
  OK(api->graph->graph_release(regions[0])); /* copied */
  OK(api->graph->graph_release(regions[1]));
  OK(api->graph->graph_set_outputs(graph, out, 1));
  OK(api->graph->graph_to_text(graph, &text));
  snprintf(first, sizeof first, "%.*s", (int)text.size, text.data);
  CHECK(strstr(first, "cond(%0, %1) : f32[4] @ \"a.c:7\" {\n  input %0 \"x\": f32[4]\n") != NULL);
  OK(api->graph->graph_from_text(str(first), &again));
  OK(api->graph->graph_release(graph));
  OK(api->graph->graph_to_text(again, &text));
  CHECK(text.size == strlen(first) && memcmp(text.data, first, text.size) == 0);
  OK(api->graph->graph_compile(device, again, NULL, &exe));
  OK(api->graph->graph_release(again));
  OK(api->device->buffer_create(device, sizeof got, &buffer));
  for (run = 0; run < 2; ++run) {
    memset(inputs, 0, sizeof inputs);
    inputs[0].struct_size = inputs[1].struct_size = sizeof inputs[0];
    inputs[0].host = flags + run;
    inputs[1].host = x;
    output.buffer = buffer;
    OK(api->graph->executable_run(exe, stream, inputs, 2, sizeof inputs[0], &output, 1,
                                  sizeof output));
    OK(api->device->copy_to_host(stream, got, buffer, 0, sizeof got));
    for (i = 0; i < 4; ++i) CHECK(got[i] == (run == 0 ? -x[i] : x[i] * x[i]));
  }
  OK(api->graph->executable_release(exe));
  OK(api->device->buffer_release(buffer));
}

char printed[200];

void keep_printed(void* user, ballast_str text) {
  CHECK(user == printed);
  strncat(printed, text.data, text.size);
}

/* Prints of a graph go to the host; a host of 1.1 is shorter and has none. */
void test_print(ballast_device* device, ballast_stream* stream) {
  ballast_graph* graph = NULL;
  ballast_executable* exe = NULL;
  ballast_tensor_desc desc = BALLAST_INIT(ballast_tensor_desc);
  ballast_executable* none = NULL;
  ballast_str name = {NULL, 0};
  const int32_t two = 2;
  ballast_binding input = BALLAST_INIT(ballast_binding), output = BALLAST_INIT(ballast_binding);
  OK(api->graph->graph_from_text(
      str("ballast.graph 1\ninput %0 \"x\": i32[]\nconst %1: u8[0] = \n"
          "%2 = print(%1, %0) {text = \"x {}\"} : u8[0]\n%3 = neg(%0) : i32[]\noutput %3\n"),
      &graph));
  OK(api->graph->graph_compile(device, graph, NULL, &exe));
  OK(api->graph->graph_release(graph));
  OK(api->graph->executable_describe(exe, BALLAST_INPUT, 0, &desc, &name));
  CHECK(desc.dtype == BALLAST_I32 && desc.rank == 0 && name.size == 1 && name.data[0] == 'x');
  OK(api->graph->executable_describe(exe, BALLAST_OUTPUT, 0, &desc, NULL));
  FAILS(api->graph->executable_describe(exe, BALLAST_STATE, 0, &desc, NULL),
        BALLAST_INVALID_ARGUMENT, "[executable_describe] number 0 of 0");
  FAILS(api->graph->executable_describe(exe, 4, 0, &desc, NULL), BALLAST_INVALID_ARGUMENT,
        "unknown kind 4");
  FAILS(api->graph->executable_load(device, str("/no/such/file"), NULL, &none), BALLAST_NOT_FOUND,
        "[executable_load] /no/such/file: there is no such file");
  FAILS(api->graph->executable_load(device, str("/"), NULL, &none), BALLAST_INVALID_ARGUMENT,
        "[executable_load] /: cannot be read");
  CHECK(none == NULL);
  input.host = &two;
  printed[0] = 0;
  OK(api->graph->executable_run(exe, stream, &input, 1, sizeof input, &output, 1, sizeof output));
  CHECK(strcmp(printed, "x Tensor(shape=[], dtype=Int32, value= 2)\n") == 0);
  OK(api->graph->executable_release(exe));
}
