#include "device/stream.h"

#include "device/kernel.h"
#include "device/profile.h"
#include "device/staging.h"
#include "device/stream_state.h"
#include "device/transfer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace ballast::device {
namespace {

// Refers to the text of the source that the cache entry keeps.
struct KernelKey {
  std::string_view source_id, entry;
  bool operator==(const KernelKey& o) const { return source_id == o.source_id && entry == o.entry; }
};
struct KernelKeyHash {
  // A source's id is a hash already, and its entries are few.
  size_t operator()(const KernelKey& key) const {
    uint64_t start = 0;
    std::memcpy(&start, key.source_id.data(), std::min(key.source_id.size(), sizeof(start)));
    return start * 31 + key.entry.size();
  }
};
// What runs a launch's kernel: its task; a kernel object of the task's program, for launches that
// may be tasks (others would have PoCL load it compiled for their work-groups, under the task's
// name); or a kernel object of the source's own.
struct CachedKernel {
  SourcePtr source;
  std::string entry;
  std::optional<Task> task;  // or nullptr; not set before it is asked for
  std::optional<Kernel> task_kernel, kernel;
};

bool is_pattern_size(uint64_t size) {
  return size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
}

}  // namespace

struct Stream::Impl {
  explicit Impl(Device& owner)
      : device(owner), staging(owner.context(), owner.id(), owner.options().memory_limit) {}
  Device& device;
  std::shared_ptr<StreamState> state = std::make_shared<StreamState>();
  // Under the state's lock:
  std::unordered_map<KernelKey, std::unique_ptr<CachedKernel>, KernelKeyHash> kernels;
  // Those of launches with a serial that came last, found without a hash.
  struct Recent {
    uint64_t serial = 0;
    CachedKernel* kernel = nullptr;
  };
  std::array<Recent, 64> recent;
  Staging staging;
  TaskWords words;  // of the launch at hand; kept for their memory

  // Where the host may access the buffer right now, as nothing is left to do; nullptr elsewhere.
  void* reach(const Buffer& buffer, const char* what) {
    if (!state->batch || buffer.address() == 0 || !state->is_idle(what)) return nullptr;
    return reinterpret_cast<void*>(buffer.address());
  }
  CachedKernel& find(const Launch& launch);
  Kernel& kernel_of(CachedKernel& cached, const Launch& launch, std::unique_lock<std::mutex>& lock);
  bool run_as_task(CachedKernel& cached, const Launch& launch, Buffer* const* buffers,
                   std::unique_lock<std::mutex>& lock);
};

Stream::Stream(Device& device) {
  check_process();
  impl_ = std::make_unique<Impl>(device);
  // Time stamps cost about 0.1 us of a 1.6 us launch on PoCL: only where they are asked for.
  const cl_queue_properties properties[] = {
      CL_QUEUE_PROPERTIES, device.options().profile ? CL_QUEUE_PROFILING_ENABLE : 0ul, 0};
  cl_int code = CL_SUCCESS;
  impl_->state->queue.reset(
      clCreateCommandQueueWithProperties(device.context(), device.id(), properties, &code));
  cl_check(code, "clCreateCommandQueueWithProperties");
  if (device.tasks() != nullptr) impl_->state->batch = std::make_unique<Batch>(device);
  device.add_stream(impl_->state);
}

Stream::~Stream() {
  state().drain();
  std::lock_guard lock(state().mutex);
  state().batch.reset();  // refers to the device
}

std::shared_ptr<Stream> make_stream(const DevicePtr& device) {
  device->check_usable();
  return {new Stream(*device), [device](Stream* stream) { delete stream; }};
}

Device& Stream::device() const { return impl_->device; }
cl_command_queue Stream::queue() const { return impl_->state->queue.get(); }
StreamState& Stream::state() const { return *impl_->state; }
const std::shared_ptr<StreamState>& Stream::shared_state() const { return impl_->state; }
void Stream::check() const { impl_->state->check(); }

void Stream::begin() {
  impl_->device.check_usable();
  impl_->state->check();
}

void Stream::check_device(std::string_view call, const Buffer& buffer) const {
  if (buffer.device().get() == &impl_->device) return;
  fail(Code::kInvalidArgument, "[{}] a buffer of another device than the stream's", call);
}

void Stream::use(Buffer& buffer) {
  if (this != &impl_->device.default_stream()) buffer.note_use(*this);
}

void Stream::end(cl_int code, const char* call, cl_event event, const std::string& label) {
  if (code == CL_DEVICE_NOT_AVAILABLE) impl_->device.mark_lost(call);
  cl_check(code, call);
  EventHandle owned(event);
  impl_->device.counters().submits.fetch_add(1, std::memory_order_relaxed);
  if (Profile* profile = impl_->device.profile(); profile != nullptr && !label.empty()) {
    clRetainEvent(event);
    profile->add(label, EventHandle(event));
  }
  impl_->state->advance(std::move(owned));
}

CachedKernel& Stream::Impl::find(const Launch& launch) {
  Recent& entry = recent[launch.serial % recent.size()];
  if (launch.serial != 0 && entry.serial == launch.serial) return *entry.kernel;
  auto found = kernels.find({launch.source->id, launch.kernel});
  if (found == kernels.end()) {
    auto made = std::make_unique<CachedKernel>();
    made->source = launch.source;
    made->entry = launch.kernel;
    const KernelKey key{made->source->id, made->entry};
    found = kernels.emplace(key, std::move(made)).first;
  }
  entry = {launch.serial, found->second.get()};
  return *entry.kernel;
}

Kernel& Stream::Impl::kernel_of(CachedKernel& cached, const Launch& launch,
                                std::unique_lock<std::mutex>& lock) {
  const bool is_task = cached.task.value_or(nullptr) != nullptr && may_be_task(launch);
  std::optional<Kernel>& kernel = is_task ? cached.task_kernel : cached.kernel;
  if (!kernel) {
    lock.unlock();  // a build takes long
    Kernel made = is_task ? device.tasks()->make_kernel(launch)
                          : Kernel(device.make_kernel(launch.source, launch.kernel), launch);
    lock.lock();
    if (!kernel) kernel.emplace(std::move(made));
  }
  return *kernel;
}

// False where the launch has to be enqueued by itself.
bool Stream::Impl::run_as_task(CachedKernel& cached, const Launch& launch, Buffer* const* buffers,
                               std::unique_lock<std::mutex>& lock) {
  if (!state->batch || !may_be_task(launch)) return false;
  if (!cached.task) {
    lock.unlock();  // the same
    const Task task = device.tasks()->find(launch);
    lock.lock();
    cached.task = task;
  }
  if (*cached.task == nullptr) return false;
  const StreamState::Way way = state->way_of(launch.bytes);
  if (way == StreamState::Way::kKernel) return false;
  write_task_words(launch, &words);
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const Arg& arg = launch.args[i];
    if (arg.kind != Arg::Kind::kBuffer) continue;
    words[kTaskArguments + i] = buffers[arg.slot]->address();
    if (words[kTaskArguments + i] == 0) return false;
  }
  state->take(way, *cached.task, words);
  state->start_batch();
  return true;
}

void Stream::submit(const Launch& launch, Buffer* const* buffers, size_t buffer_count) {
  begin();
  geometry_of(launch);  // throws where it has none
  for (const Arg& arg : launch.args) {
    if (arg.kind != Arg::Kind::kBuffer) continue;
    if (arg.slot >= buffer_count || buffers[arg.slot] == nullptr) {
      fail(Code::kInvalidArgument, "[{}] an argument wants buffer {} of {}", launch.label, arg.slot,
           buffer_count);
    }
    check_device(launch.label, *buffers[arg.slot]);
    use(*buffers[arg.slot]);
  }
  std::unique_lock lock(impl_->state->mutex);
  CachedKernel& cached = impl_->find(launch);
  if (!impl_->run_as_task(cached, launch, buffers, lock)) {
    enqueue(impl_->kernel_of(cached, launch, lock), launch, buffers);
  }
  impl_->device.counters().kernel_launches.fetch_add(1, std::memory_order_relaxed);
}

void Stream::enqueue(Kernel& kernel, const Launch& launch, Buffer* const* buffers) {
  impl_->state->enqueue_batch();
  const Geometry geometry = geometry_of(launch);
  kernel.set_values(launch);
  for (cl_uint i = 0; i < launch.args.size(); ++i) {
    const Arg& arg = launch.args[i];
    if (arg.kind == Arg::Kind::kBuffer) kernel.set_buffer(i, *buffers[arg.slot]);
  }
  cl_event event = nullptr;
  const cl_int code = clEnqueueNDRangeKernel(queue(), kernel.get(), geometry.dimensions, nullptr,
                                             geometry.global, geometry.local, 0, nullptr, &event);
  end(code, "clEnqueueNDRangeKernel", event, launch.label);
}

void Stream::check_range(const char* call, const Buffer& buffer, uint64_t offset,
                         uint64_t size) const {
  check_device(call, buffer);
  if (offset <= buffer.size() && size <= buffer.size() - offset) return;
  fail(Code::kInvalidArgument, "[{}] {} bytes at offset {} exceed the buffer's {} bytes", call,
       size, offset, buffer.size());
}

void Stream::write(Buffer& target, uint64_t offset, const void* source, uint64_t size) {
  begin();
  check_range("copy_from_host", target, offset, size);
  if (size == 0) return;
  use(target);
  impl_->device.counters().copies.fetch_add(1, std::memory_order_relaxed);
  impl_->device.counters().bytes_to_device.fetch_add(size, std::memory_order_relaxed);
  const char* next = static_cast<const char*>(source);
  std::lock_guard lock(impl_->state->mutex);
  if (void* const here = impl_->reach(target, "copy_from_host")) {
    std::memcpy(static_cast<char*>(here) + offset, source, size);
    return;
  }
  impl_->state->enqueue_batch();
  for (uint64_t left = size, piece = 0; left > 0; left -= piece, next += piece, offset += piece) {
    void* staged = impl_->staging.take(left, &piece);
    std::memcpy(staged, next, piece);
    // Never a blocking write: waiting for PoCL's worker costs about 25 us, this call 0.5 us.
    cl_event event = nullptr;
    const cl_int code = enqueue_write(queue(), {target, offset}, staged, piece, &event);
    if (code == CL_SUCCESS) {
      clRetainEvent(event);
      impl_->staging.set_reader(EventHandle(event));
    }
    end(code, "copy_from_host", event, "");
  }
}

void Stream::read(void* target, Buffer& source, uint64_t offset, uint64_t size) {
  begin();
  check_range("copy_to_host", source, offset, size);
  if (size == 0) return;
  use(source);
  impl_->device.counters().copies.fetch_add(1, std::memory_order_relaxed);
  impl_->device.counters().bytes_to_host.fetch_add(size, std::memory_order_relaxed);
  EventHandle done;
  {
    std::lock_guard lock(impl_->state->mutex);
    if (const void* const here = impl_->reach(source, "copy_to_host")) {
      std::memcpy(target, static_cast<const char*>(here) + offset, size);
      return;
    }
    impl_->state->enqueue_batch();
    cl_event event = nullptr;
    const cl_int code = enqueue_read(queue(), target, {source, offset}, size, &event);
    if (code == CL_SUCCESS) clRetainEvent(event);
    done.reset(event);
    try {
      end(code, "copy_to_host", event, "");
    } catch (...) {
      // The caller may free its memory after an error, which may be one of earlier work.
      if (done) clWaitForEvents(1, &event);
      throw;
    }
  }
  impl_->state->wait(done.get(), "copy_to_host");
}

void Stream::copy(Buffer& target, uint64_t target_offset, Buffer& source, uint64_t source_offset,
                  uint64_t size) {
  begin();
  check_range("copy", target, target_offset, size);
  check_range("copy", source, source_offset, size);
  if (size == 0) return;
  if (Buffer::overlap({target, target_offset, size}, {source, source_offset, size})) {
    fail(Code::kInvalidArgument, "[copy] the ranges of {} bytes at {} and {} of one buffer overlap",
         size, source_offset, target_offset);
  }
  use(target);
  use(source);
  const auto lock = impl_->state->lock_queue();
  cl_event event = nullptr;
  const cl_int code =
      enqueue_copy(queue(), {target, target_offset}, {source, source_offset}, size, &event);
  end(code, "copy", event, "copy");
  impl_->device.counters().copies.fetch_add(1, std::memory_order_relaxed);
  impl_->device.counters().bytes_on_device.fetch_add(size, std::memory_order_relaxed);
}

void Stream::fill(Buffer& target, uint64_t offset, uint64_t size, const void* pattern,
                  uint64_t pattern_size) {
  begin();
  check_range("fill", target, offset, size);
  if (!is_pattern_size(pattern_size) || offset % pattern_size != 0 || size % pattern_size != 0) {
    fail(
        Code::kInvalidArgument,
        "[fill] the pattern must have 1, 2, 4, 8 or 16 bytes and divide offset {} and size {}, got "
        "{}",
        offset, size, pattern_size);
  }
  if (size == 0) return;
  use(target);
  const auto lock = impl_->state->lock_queue();
  cl_event event = nullptr;
  const cl_int code = enqueue_fill(queue(), {target, offset}, pattern, pattern_size, size, &event);
  end(code, "fill", event, "fill");
  impl_->device.counters().copies.fetch_add(1, std::memory_order_relaxed);
  impl_->device.counters().bytes_on_device.fetch_add(size, std::memory_order_relaxed);
}

EventHandle Stream::marker() {
  begin();
  cl_event event = nullptr;
  const auto lock = impl_->state->lock_queue();
  cl_check(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
  EventHandle owned(event);
  // Other queues may wait for it only once it is on its way.
  cl_check(clFlush(queue()), "clFlush");
  return owned;
}

void Stream::wait_for(cl_event event) {
  begin();
  const auto lock = impl_->state->lock_queue();
  cl_event barrier = nullptr;
  cl_check(clEnqueueBarrierWithWaitList(queue(), 1, &event, &barrier),
           "clEnqueueBarrierWithWaitList");
  impl_->state->advance(EventHandle(barrier));
}

void Stream::follow(StreamState& earlier) {
  const EventHandle end = earlier.mark_end();
  if (end) wait_for(end.get());
}

void Stream::flush() {
  { const auto lock = impl_->state->lock_queue(); }
  cl_check(clFlush(queue()), "clFlush");
}

void Stream::sync() {
  begin();
  impl_->state->wait();
}

}  // namespace ballast::device
