#include "plugin_api/api.h"
#include "plugin_api/guard.h"
#include "plugin_api/objects.h"
#include "plugin_api/structs.h"

namespace ballast::plugin_api {

namespace {

using device::Code;
using device::fail;

// Devices listed once, so that the strings handed out stay valid for the process.
const std::vector<device::DeviceInfo>& listed_devices() {
  static std::mutex mutex;
  static auto* devices = new std::vector<device::DeviceInfo>;
  const std::lock_guard lock(mutex);
  if (devices->empty()) *devices = device::list_devices();
  return *devices;
}

ballast_device_info describe(const device::DeviceInfo& info) {
  ballast_device_info out{};
  out.name = to_str(info.name);
  out.platform = to_str(info.platform);
  out.driver = to_str(info.driver);
  out.ordinal = info.ordinal;
  out.device_class = static_cast<int32_t>(info.device_class);
  out.compute_units = info.compute_units;
  out.memory_bytes = info.memory_bytes;
  out.buffer_alignment = info.buffer_alignment;
  out.has_command_buffer = info.has_command_buffer;
  out.is_host_unified = info.is_host_unified;
  return out;
}

std::shared_ptr<device::Device> device_of(const ballast_device* handle) {
  return Devices::instance().get(handle, "device");
}
std::shared_ptr<device::Buffer> buffer_of(const ballast_buffer* handle, const char* what) {
  return Buffers::instance().get(handle, what);
}
std::shared_ptr<device::Stream> stream_of(const ballast_stream* handle) {
  return Streams::instance().get(handle, "stream");
}
std::shared_ptr<device::Event> event_of(const ballast_event* handle, const char* what) {
  return Events::instance().get(handle, what);
}

void check_host(const void* pointer, uint64_t size, const char* what) {
  if (pointer == nullptr && size > 0) fail(Code::kInvalidArgument, "{} is NULL", what);
}

ballast_error* device_count(uint64_t* out_count) {
  return guard_out(out_count, "out_count", [] { return uint64_t{listed_devices().size()}; });
}

ballast_error* device_describe(uint64_t ordinal, ballast_device_info* out_info) {
  return guard_call([&] {
    const auto& devices = listed_devices();
    if (ordinal >= devices.size()) {
      fail(Code::kNotFound, "[device_describe] device {} of {}", ordinal, devices.size());
    }
    write_struct(out_info, describe(devices[ordinal]), "out_info");
  });
}

ballast_error* device_open(ballast_str selector, const ballast_device_options* options,
                           ballast_device** out_device) {
  return guard_out(out_device, "out_device", [&] {
    const ballast_device_options given = read_optional(options, "options");
    if (given.device_class < 0 || given.device_class > BALLAST_CLASS_GPU) {
      fail(Code::kInvalidArgument, "[device_open] unknown device_class {}", given.device_class);
    }
    device::DeviceOptions chosen;
    chosen.memory_limit = given.memory_limit;
    chosen.device_class = given.device_class;
    chosen.profile = given.profile != 0;
    return Devices::instance().add(device::Device::open(to_string(selector), chosen));
  });
}

ballast_error* device_release(ballast_device* device) {
  return guard_call([&] { Devices::instance().release(device, "device"); });
}

ballast_error* device_info(ballast_device* device, ballast_device_info* out_info) {
  return guard_call(
      [&] { write_struct(out_info, describe(device_of(device)->info()), "out_info"); });
}

ballast_error* device_memory_stats(ballast_device* device, ballast_memory_stats* out_stats) {
  return guard_call([&] {
    const device::PoolStats stats = device_of(device)->pool().stats();
    ballast_memory_stats out{};
    out.in_use = stats.in_use;
    out.peak_in_use = stats.peak_in_use;
    out.reserved = stats.reserved;
    out.peak_reserved = stats.peak_reserved;
    out.largest_free = stats.largest_free;
    out.free_blocks = stats.free_blocks;
    out.driver_allocations = stats.driver_allocations;
    out.pool_allocations = stats.pool_allocations;
    write_struct(out_stats, out, "out_stats");
  });
}

ballast_error* device_reset_peak(ballast_device* device) {
  return guard_call([&] { device_of(device)->pool().reset_peak(); });
}

ballast_error* device_trim(ballast_device* device) {
  return guard_call([&] { device_of(device)->pool().trim(); });
}

ballast_error* device_sync(ballast_device* device) {
  return guard_call([&] {
    const auto object = device_of(device);
    count_host_call(*object);
    object->sync();
  });
}

ballast_error* buffer_create(ballast_device* device, uint64_t size, ballast_buffer** out_buffer) {
  return guard_out(out_buffer, "out_buffer", [&] {
    return Buffers::instance().add(device::Buffer::create(device_of(device), size));
  });
}

ballast_error* buffer_view(ballast_buffer* parent, uint64_t offset, uint64_t size,
                           ballast_buffer** out_buffer) {
  return guard_out(out_buffer, "out_buffer", [&] {
    return Buffers::instance().add(device::Buffer::view(buffer_of(parent, "parent"), offset, size));
  });
}

ballast_error* buffer_retain(ballast_buffer* buffer) {
  return guard_call([&] { Buffers::instance().retain(buffer, "buffer"); });
}

ballast_error* buffer_release(ballast_buffer* buffer) {
  return guard_call([&] { Buffers::instance().release(buffer, "buffer"); });
}

ballast_error* buffer_info(ballast_buffer* buffer, ballast_buffer_info* out_info) {
  return guard_call([&] {
    ballast_buffer_info out{};
    out.size = buffer_of(buffer, "buffer")->size();
    write_struct(out_info, out, "out_info");
  });
}

ballast_error* copy_from_host(ballast_stream* stream, ballast_buffer* target, uint64_t offset,
                              const void* source, uint64_t size) {
  return guard_call([&] {
    const auto on = stream_of(stream);
    const auto to = buffer_of(target, "target");
    check_host(source, size, "[copy_from_host] source");
    count_host_call(on->device());
    on->write(*to, offset, source, size);
  });
}

ballast_error* copy_to_host(ballast_stream* stream, void* target, ballast_buffer* source,
                            uint64_t offset, uint64_t size) {
  return guard_call([&] {
    const auto on = stream_of(stream);
    const auto from = buffer_of(source, "source");
    check_host(target, size, "[copy_to_host] target");
    count_host_call(on->device());
    on->read(target, *from, offset, size);
  });
}

ballast_error* copy(ballast_stream* stream, ballast_buffer* target, uint64_t target_offset,
                    ballast_buffer* source, uint64_t source_offset, uint64_t size) {
  return guard_call([&] {
    const auto on = stream_of(stream);
    const auto to = buffer_of(target, "target");
    const auto from = buffer_of(source, "source");
    count_host_call(on->device());
    on->copy(*to, target_offset, *from, source_offset, size);
  });
}

ballast_error* fill(ballast_stream* stream, ballast_buffer* target, uint64_t offset, uint64_t size,
                    const void* pattern, uint64_t pattern_size) {
  return guard_call([&] {
    const auto on = stream_of(stream);
    const auto to = buffer_of(target, "target");
    check_host(pattern, pattern_size, "[fill] pattern");
    count_host_call(on->device());
    on->fill(*to, offset, size, pattern, pattern_size);
  });
}

ballast_error* stream_default(ballast_device* device, ballast_stream** out_stream) {
  return guard_out(out_stream, "out_stream", [&] {
    const auto object = device_of(device);
    return Streams::instance().add({object, &object->default_stream()});
  });
}

ballast_error* stream_create(ballast_device* device, ballast_stream** out_stream) {
  return guard_out(out_stream, "out_stream",
                   [&] { return Streams::instance().add(device::make_stream(device_of(device))); });
}

ballast_error* stream_release(ballast_stream* stream) {
  return guard_call([&] { Streams::instance().release(stream, "stream"); });
}

ballast_error* stream_sync(ballast_stream* stream) {
  return guard_call([&] {
    const auto object = stream_of(stream);
    count_host_call(object->device());
    object->sync();
  });
}

ballast_error* stream_wait_event(ballast_stream* stream, ballast_event* event) {
  return guard_call([&] { event_of(event, "event")->make_wait(*stream_of(stream)); });
}

ballast_error* event_create(ballast_device* device, ballast_event** out_event) {
  return guard_out(out_event, "out_event", [&] {
    return Events::instance().add(std::make_shared<device::Event>(device_of(device)));
  });
}

ballast_error* event_release(ballast_event* event) {
  return guard_call([&] { Events::instance().release(event, "event"); });
}

ballast_error* event_record(ballast_event* event, ballast_stream* stream) {
  return guard_call([&] { event_of(event, "event")->record(*stream_of(stream)); });
}

ballast_error* event_query(ballast_event* event, int32_t* out_done) {
  return guard_out(out_done, "out_done",
                   [&] { return int32_t{event_of(event, "event")->is_done()}; });
}

ballast_error* event_wait(ballast_event* event) {
  return guard_call([&] { event_of(event, "event")->wait(); });
}

ballast_error* event_elapsed(ballast_event* start, ballast_event* end, uint64_t* out_ns) {
  return guard_out(out_ns, "out_ns", [&] {
    return device::Event::elapsed_ns(*event_of(start, "start"), *event_of(end, "end"));
  });
}

}  // namespace

const ballast_device_api kDeviceApi = {
    sizeof(ballast_device_api),
    device_count,
    device_describe,
    device_open,
    device_release,
    device_info,
    device_memory_stats,
    device_reset_peak,
    device_trim,
    device_sync,
    buffer_create,
    buffer_view,
    buffer_retain,
    buffer_release,
    buffer_info,
    copy_from_host,
    copy_to_host,
    copy,
    fill,
    stream_default,
    stream_create,
    stream_release,
    stream_sync,
    stream_wait_event,
    event_create,
    event_release,
    event_record,
    event_query,
    event_wait,
    event_elapsed,
};

}  // namespace ballast::plugin_api
