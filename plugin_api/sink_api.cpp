#include "plugin_api/api.h"
#include "plugin_api/guard.h"
#include "plugin_api/objects.h"
#include "plugin_api/structs.h"

namespace ballast::plugin_api {

namespace {

using device::Code;
using device::fail;

std::shared_ptr<graph::Sink> sink_of(const ballast_sink* handle) {
  return Sinks::instance().get(handle, "sink");
}

ballast_error* sink_create(ballast_executable* executable, const ballast_sink_options* options,
                           ballast_sink** out_sink) {
  return guard_out(out_sink, "out_sink", [&] {
    const ballast_sink_options given = read_optional(options, "options");
    return Sinks::instance().add(std::make_shared<graph::Sink>(
        Executables::instance().get(executable, "executable"), given.max_slots));
  });
}

ballast_error* sink_update(ballast_sink* sink, uint64_t state_index, ballast_buffer* buffer) {
  return guard_call([&] {
    sink_of(sink)->executable().bind_state(state_index, Buffers::instance().get(buffer, "buffer"));
  });
}

graph::Queue to_queue(const ballast_queue_binding& binding, bool is_input) {
  graph::Queue queue;
  queue.host = binding.host;
  queue.slots = binding.slots;
  if (!is_input && binding.host != nullptr) {
    fail(Code::kInvalidArgument, "[sink_run] an output cannot be host memory");
  }
  if (binding.buffer != nullptr || (is_input && binding.host == nullptr)) {
    queue.buffer = Buffers::instance().get(binding.buffer, "queue buffer");
  }
  return queue;
}

ballast_error* sink_run(ballast_sink* sink, ballast_stream* stream, uint64_t n_steps,
                        const ballast_queue_binding* inputs, uint64_t input_count,
                        uint64_t input_stride, const ballast_queue_binding* outputs,
                        uint64_t output_count, uint64_t output_stride) {
  return guard_call([&] {
    const auto object = sink_of(sink);
    const auto on = Streams::instance().get(stream, "stream");
    std::vector<graph::Queue> from, to;
    for (const auto& binding : read_array(inputs, input_count, input_stride, "inputs")) {
      from.push_back(to_queue(binding, true));
    }
    for (const auto& binding : read_array(outputs, output_count, output_stride, "outputs")) {
      to.push_back(to_queue(binding, false));
    }
    count_host_call(on->device());
    object->run(*on, n_steps, from, to);
  });
}

ballast_error* sink_progress(ballast_sink* sink, uint64_t* out_steps) {
  return guard_out(out_steps, "out_steps", [&] { return sink_of(sink)->progress(); });
}

ballast_error* sink_cancel(ballast_sink* sink) {
  return guard_call([&] { sink_of(sink)->cancel(); });
}

ballast_error* sink_info(ballast_sink* sink, ballast_sink_info* out_info) {
  return guard_call([&] {
    const auto object = sink_of(sink);
    const graph::SinkInfo info = object->info();
    ballast_sink_info out{};
    out.launches_per_step = info.launches_per_step;
    out.submits_per_step_x1000 = info.steps == 0 ? 0 : info.submits * 1000 / info.steps;
    out.replay_allocations = info.replay_allocations;
    out.bytes_retained = info.bytes_retained;
    out.replay = static_cast<int32_t>(object->executable().replay());
    write_struct(out_info, out, "out_info");
  });
}

ballast_error* sink_release(ballast_sink* sink) {
  return guard_call([&] { Sinks::instance().release(sink, "sink"); });
}

}  // namespace

const ballast_sink_api kSinkApi = {sizeof(ballast_sink_api),
                                   sink_create,
                                   sink_update,
                                   sink_run,
                                   sink_progress,
                                   sink_cancel,
                                   sink_info,
                                   sink_release};

}  // namespace ballast::plugin_api
