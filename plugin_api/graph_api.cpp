#include "graph/exported.h"
#include "graph/text.h"
#include "plugin_api/api.h"
#include "plugin_api/guard.h"
#include "plugin_api/objects.h"
#include "plugin_api/structs.h"

namespace ballast::plugin_api {

namespace {

using device::Code;
using device::fail;

std::shared_ptr<GraphObject> graph_of(const ballast_graph* handle) {
  return Graphs::instance().get(handle, "graph");
}

std::shared_ptr<graph::Executable> executable_of(const ballast_executable* handle) {
  return Executables::instance().get(handle, "executable");
}

graph::ValueId to_value(const graph::Graph& graph, ballast_value value, const char* what) {
  if (value >= graph.value_count()) {
    fail(Code::kInvalidArgument, "{}: value {} of {}", what, value, graph.value_count());
  }
  return static_cast<graph::ValueId>(value);
}

ballast_error* graph_create(ballast_graph** out_graph) {
  return guard_out(out_graph, "out_graph",
                   [] { return Graphs::instance().add(std::make_shared<GraphObject>()); });
}

ballast_error* graph_release(ballast_graph* graph) {
  return guard_call([&] { Graphs::instance().release(graph, "graph"); });
}

ballast_error* graph_add_input(ballast_graph* graph, ballast_str name,
                               const ballast_tensor_desc* desc, ballast_value* out_value) {
  return guard_out(out_value, "out_value", [&]() -> ballast_value {
    return graph_of(graph)->graph.add_input(to_string(name),
                                            to_type(read_struct(desc, "desc"), "input"));
  });
}

ballast_error* graph_add_state(ballast_graph* graph, ballast_str name,
                               const ballast_tensor_desc* desc, ballast_value* out_value) {
  return guard_out(out_value, "out_value", [&]() -> ballast_value {
    return graph_of(graph)->graph.add_state(to_string(name),
                                            to_type(read_struct(desc, "desc"), "state"));
  });
}

ballast_error* graph_add_constant(ballast_graph* graph, const ballast_tensor_desc* desc,
                                  const void* data, ballast_value* out_value) {
  return guard_out(out_value, "out_value", [&]() -> ballast_value {
    const kernels::TensorType type = to_type(read_struct(desc, "desc"), "constant");
    const auto* bytes = static_cast<const uint8_t*>(data);
    if (bytes == nullptr && type.bytes() > 0) {
      fail(Code::kInvalidArgument, "[graph_add_constant] data is NULL");
    }
    return graph_of(graph)->graph.add_constant(
        type, std::make_shared<const std::vector<uint8_t>>(bytes, bytes + type.bytes()));
  });
}

// What adding a node takes beside its regions.
struct NodeArguments {
  const ballast_op_call* call;
  const ballast_value* inputs;
  uint64_t input_count;
  ballast_str where;
};

uint64_t add_node(const char* function, GraphObject& object, const NodeArguments& arguments,
                  graph::Regions regions, ballast_value* out_values, uint64_t capacity) {
  const ballast_op_call given = read_struct(arguments.call, "call");
  if (arguments.inputs == nullptr && arguments.input_count > 0) {
    fail(Code::kInvalidArgument, "inputs is NULL");
  }
  std::vector<graph::ValueId> values;
  for (uint64_t i = 0; i < arguments.input_count; ++i) {
    values.push_back(to_value(object.graph, arguments.inputs[i], function));
  }
  const auto check_room = [&](uint64_t count) {
    if (count <= capacity && (out_values != nullptr || count == 0)) return;
    fail(Code::kInvalidArgument, "{} {} outputs, out_values holds {}", function, count,
         out_values == nullptr ? 0 : capacity);
  };
  const auto& outputs =
      object.graph.add_node(to_string(given.name), to_attrs(given), std::move(values),
                            to_string(arguments.where), std::move(regions), check_room);
  std::copy(outputs.begin(), outputs.end(), out_values);
  return outputs.size();
}

ballast_error* graph_add_node(ballast_graph* graph, const ballast_op_call* call,
                              const ballast_value* inputs, uint64_t input_count, ballast_str where,
                              ballast_value* out_values, uint64_t capacity, uint64_t* out_count) {
  return guard_out(out_count, "out_count", [&]() -> uint64_t {
    return add_node("[graph_add_node]", *graph_of(graph), {call, inputs, input_count, where}, {},
                    out_values, capacity);
  });
}

ballast_error* graph_add_region_node(ballast_graph* graph, const ballast_op_call* call,
                                     const ballast_value* inputs, uint64_t input_count,
                                     ballast_graph* const* regions, uint64_t region_count,
                                     ballast_str where, ballast_value* out_values,
                                     uint64_t capacity, uint64_t* out_count) {
  return guard_out(out_count, "out_count", [&]() -> uint64_t {
    if (regions == nullptr && region_count > 0) fail(Code::kInvalidArgument, "regions is NULL");
    graph::Regions copies;
    for (uint64_t i = 0; i < region_count; ++i) {
      copies.push_back(std::make_shared<const graph::Graph>(
          Graphs::instance().get(regions[i], "region")->graph));
    }
    return add_node("[graph_add_region_node]", *graph_of(graph), {call, inputs, input_count, where},
                    std::move(copies), out_values, capacity);
  });
}

ballast_error* graph_value_desc(ballast_graph* graph, ballast_value value,
                                ballast_tensor_desc* out_desc) {
  return guard_call([&] {
    const auto object = graph_of(graph);
    const auto id = to_value(object->graph, value, "[graph_value_desc]");
    write_struct(out_desc, to_desc(object->graph.value(id).type), "out_desc");
  });
}

ballast_error* graph_set_update(ballast_graph* graph, ballast_value state, ballast_value value) {
  return guard_call([&] {
    const auto object = graph_of(graph);
    object->graph.set_update(to_value(object->graph, state, "[graph_set_update]"),
                             to_value(object->graph, value, "[graph_set_update]"));
  });
}

ballast_error* graph_set_outputs(ballast_graph* graph, const ballast_value* values,
                                 uint64_t count) {
  return guard_call([&] {
    const auto object = graph_of(graph);
    if (values == nullptr && count > 0) fail(Code::kInvalidArgument, "values is NULL");
    std::vector<graph::ValueId> outputs;
    for (uint64_t i = 0; i < count; ++i) {
      outputs.push_back(to_value(object->graph, values[i], "[graph_set_outputs]"));
    }
    object->graph.set_outputs(std::move(outputs));
  });
}

ballast_error* graph_to_text(ballast_graph* graph, ballast_str* out_text) {
  return guard_out(out_text, "out_text", [&] {
    const auto object = graph_of(graph);
    object->text = graph::print(object->graph);
    return to_str(object->text);
  });
}

ballast_error* graph_from_text(ballast_str text, ballast_graph** out_graph) {
  return guard_out(out_graph, "out_graph", [&] {
    auto object = std::make_shared<GraphObject>();
    object->graph = graph::parse(to_string(text));
    return Graphs::instance().add(std::move(object));
  });
}

graph::CompileOptions to_options(const char* function, const ballast_compile_options* options) {
  const ballast_compile_options given = read_optional(options, "options");
  if (given.level < 0 || given.level > BALLAST_O1) {
    fail(Code::kInvalidArgument, "{} unknown level {}", function, given.level);
  }
  if (given.replay < 0 || given.replay > BALLAST_REPLAY_STITCH) {
    fail(Code::kInvalidArgument, "{} unknown replay {}", function, given.replay);
  }
  graph::CompileOptions chosen;
  if (given.level != 0) chosen.level = static_cast<graph::Level>(given.level);
  if (given.replay != 0) chosen.replay = static_cast<device::Replay>(given.replay);
  return chosen;
}

ballast_error* graph_compile(ballast_device* device, ballast_graph* graph,
                             const ballast_compile_options* options,
                             ballast_executable** out_executable) {
  return guard_out(out_executable, "out_executable", [&] {
    const graph::CompileOptions chosen = to_options("[graph_compile]", options);
    return Executables::instance().add(std::make_shared<graph::Executable>(
        Devices::instance().get(device, "device"), graph_of(graph)->graph, chosen));
  });
}

ballast_error* executable_info(ballast_executable* executable, ballast_executable_info* out_info) {
  return guard_call([&] {
    const auto object = executable_of(executable);
    ballast_executable_info out{};
    out.input_count = object->graph().inputs().size();
    out.output_count = object->graph().outputs().size();
    out.state_count = object->graph().states().size();
    out.launch_count = object->launch_count();
    out.submit_count = object->submit_count();
    out.node_count = object->graph().nodes().size();
    out.arena_bytes = object->memory().arena_bytes;
    out.naive_bytes = object->memory().naive_bytes;
    out.lower_bound_bytes = object->memory().lower_bound_bytes;
    out.constant_bytes = object->constant_bytes();
    out.replay = static_cast<int32_t>(object->replay());
    out.level = static_cast<int32_t>(object->options().level);
    out.text = to_str(object->text());
    write_struct(out_info, out, "out_info");
  });
}

ballast_error* executable_bind_state(ballast_executable* executable, uint64_t index,
                                     ballast_buffer* buffer) {
  return guard_call([&] {
    executable_of(executable)->bind_state(index, Buffers::instance().get(buffer, "buffer"));
  });
}

ballast_error* executable_run(ballast_executable* executable, ballast_stream* stream,
                              const ballast_binding* inputs, uint64_t input_count,
                              uint64_t input_stride, const ballast_binding* outputs,
                              uint64_t output_count, uint64_t output_stride) {
  return guard_call([&] {
    const auto object = executable_of(executable);
    const auto on = Streams::instance().get(stream, "stream");
    std::vector<graph::InputBinding> from;
    for (const ballast_binding& binding : read_array(inputs, input_count, input_stride, "inputs")) {
      from.push_back({nullptr, binding.host});
      if (binding.host == nullptr) {
        from.back().buffer = Buffers::instance().get(binding.buffer, "input buffer");
      }
    }
    std::vector<device::BufferPtr> to;
    for (const ballast_binding& binding :
         read_array(outputs, output_count, output_stride, "outputs")) {
      if (binding.host != nullptr) {
        fail(Code::kInvalidArgument, "[executable_run] an output cannot be host memory");
      }
      to.push_back(binding.buffer == nullptr
                       ? nullptr
                       : Buffers::instance().get(binding.buffer, "output buffer"));
    }
    count_host_call(on->device());
    object->run(*on, from, to);
  });
}

ballast_error* executable_describe(ballast_executable* executable, int32_t kind, uint64_t index,
                                   ballast_tensor_desc* out_desc, ballast_str* out_name) {
  return guard_call([&] {
    const auto object = executable_of(executable);
    const graph::Graph& graph = object->graph();
    if (kind < BALLAST_INPUT || kind > BALLAST_STATE) {
      fail(Code::kInvalidArgument, "[executable_describe] unknown kind {}", kind);
    }
    const auto& ids = kind == BALLAST_INPUT    ? graph.inputs()
                      : kind == BALLAST_OUTPUT ? graph.outputs()
                                               : graph.states();
    if (index >= ids.size()) {
      fail(Code::kInvalidArgument, "[executable_describe] number {} of {}", index, ids.size());
    }
    const graph::Value& value = graph.value(ids[index]);
    write_struct(out_desc, to_desc(value.type), "out_desc");
    if (out_name != nullptr) *out_name = to_str(value.name);
  });
}

ballast_error* executable_load(ballast_device* device, ballast_str path,
                               const ballast_compile_options* options,
                               ballast_executable** out_executable) {
  return guard_out(out_executable, "out_executable", [&] {
    return Executables::instance().add(
        graph::load_exported(Devices::instance().get(device, "device"), to_string(path),
                             to_options("[executable_load]", options)));
  });
}

ballast_error* executable_release(ballast_executable* executable) {
  return guard_call([&] { Executables::instance().release(executable, "executable"); });
}

}  // namespace

const ballast_graph_api kGraphApi = {
    sizeof(ballast_graph_api),
    graph_create,
    graph_release,
    graph_add_input,
    graph_add_state,
    graph_add_constant,
    graph_add_node,
    graph_value_desc,
    graph_set_update,
    graph_set_outputs,
    graph_to_text,
    graph_from_text,
    graph_compile,
    executable_info,
    executable_bind_state,
    executable_run,
    executable_release,
    graph_add_region_node,
    executable_describe,
    executable_load,
};

}  // namespace ballast::plugin_api
