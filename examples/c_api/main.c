/* The C ABI without a frontend: opens the plugin, adds two vectors eagerly, then compiles the graph
 * total = total + (x + y) * x and runs it three times.
 * usage: ballast_c_api LIBBALLAST_SO [DEVICE] */
#include "examples/c_api/plugin.h"

enum { kCount = 4, kBytes = kCount * sizeof(float) };

static ballast_device* device;
static ballast_stream* stream;
static const ballast_tensor_desc descs[2] = {
    {sizeof(ballast_tensor_desc), NULL, BALLAST_F32, 1, {kCount}},
    {sizeof(ballast_tensor_desc), NULL, BALLAST_F32, 1, {kCount}}}; /* of x and y */

static ballast_buffer* buffer_of(const float* values) {
  ballast_buffer* buffer;
  check(api->device->buffer_create(device, kBytes, &buffer));
  check(api->device->copy_from_host(stream, buffer, 0, values, kBytes));
  return buffer;
}

static void print(const char* name, ballast_buffer* buffer) {
  float values[kCount];
  check(api->device->copy_to_host(stream, values, buffer, 0, kBytes));
  printf("%-6s %g %g %g %g\n", name, values[0], values[1], values[2], values[3]);
}

static ballast_op_call binary(const char* op) {
  ballast_op_call call = BALLAST_INIT(ballast_op_call);
  call.name = text(op);
  call.inputs = descs;
  call.input_count = 2;
  call.input_stride = sizeof(descs[0]);
  return call;
}

static void add_eagerly(ballast_buffer** xy, ballast_buffer* sum) {
  ballast_op_call call = binary("add");
  ballast_launch launch = BALLAST_INIT(ballast_launch);
  ballast_op* op;
  check(api->op->op_prepare(device, &call, &op));
  launch.inputs = xy;
  launch.input_count = 2;
  launch.outputs = &sum;
  launch.output_count = 1;
  check(api->op->op_launch(op, stream, &launch));
  check(api->op->op_release(op));
}

static ballast_value node(ballast_graph* graph, const char* op, ballast_value a, ballast_value b) {
  ballast_op_call call = binary(op);
  ballast_value inputs[2] = {a, b}, out;
  uint64_t count;
  check(api->graph->graph_add_node(graph, &call, inputs, 2, text("main.c"), &out, 1, &count));
  return out;
}

static ballast_executable* compile(void) {
  ballast_graph* graph;
  ballast_executable* executable;
  ballast_value x, y, total;
  check(api->graph->graph_create(&graph));
  check(api->graph->graph_add_input(graph, text("x"), descs, &x));
  check(api->graph->graph_add_input(graph, text("y"), descs, &y));
  check(api->graph->graph_add_state(graph, text("total"), descs, &total));
  ballast_value product = node(graph, "mul", node(graph, "add", x, y), x);
  check(api->graph->graph_set_update(graph, total, node(graph, "add", total, product)));
  check(api->graph->graph_compile(device, graph, NULL, &executable));
  check(api->graph->graph_release(graph));
  return executable;
}

int main(int argc, char** argv) {
  const float x[kCount] = {1, 2, 3, 4}, y[kCount] = {10, 20, 30, 40}, zeros[kCount] = {0};
  load_plugin(argc > 1 ? argv[1] : "libballast.so", BALLAST_ABI_CURRENT);
  check(api->device->device_open(text(argc > 2 ? argv[2] : ""), NULL, &device));
  check(api->device->stream_default(device, &stream));

  ballast_buffer *xy[2] = {buffer_of(x), buffer_of(y)}, *sum = buffer_of(zeros);
  add_eagerly(xy, sum);
  print("x + y", sum);

  ballast_buffer* total = buffer_of(zeros);
  ballast_executable* executable = compile();
  check(api->graph->executable_bind_state(executable, 0, total));
  const ballast_binding inputs[2] = {{sizeof(ballast_binding), NULL, xy[0], NULL},
                                     {sizeof(ballast_binding), NULL, xy[1], NULL}};
  for (int i = 0; i < 3; ++i)
    check(api->graph->executable_run(executable, stream, inputs, 2, sizeof(inputs[0]), NULL, 0, 0));
  print("total", total);

  check(api->graph->executable_release(executable));
  for (int i = 0; i < 2; ++i) check(api->device->buffer_release(xy[i]));
  check(api->device->buffer_release(sum));
  check(api->device->buffer_release(total));
  check(api->device->stream_release(stream));
  check(api->device->device_release(device));
  check(api->plugin_shutdown());
  return 0;
}
