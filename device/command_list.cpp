#include "device/command_list.h"

#include "device/kernel.h"
#include "device/native.h"
#include "device/stream_state.h"
#include "device/transfer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace ballast::device {
namespace {

struct Copy {
  Operand target, source;
  uint64_t size = 0;
};

// One command in recorded order: a launch or a copy.
struct Step {
  bool is_copy = false;
  size_t index = 0;
};

// A task and what it takes (no words where the launch cannot be one), and a kernel object with its
// arguments set, which a launch that can be one has once it was enqueued by itself.
struct PreparedLaunch {
  Geometry geometry;
  Task task = nullptr;
  TaskWords words;
  std::optional<Kernel> kernel;
};

// A recording and the kernel objects in it: PoCL 3.1 takes a kernel's arguments when the command
// buffer is enqueued, not (as the extension says) when the launch is recorded.
struct NativeReplay {
  std::vector<Kernel> kernels;
  std::unique_ptr<NativeRecorder::Recording> recording;
};

// Where a binding is an argument.
struct ArgumentUse {
  size_t launch = 0;
  cl_uint argument = 0;
};

struct Binding {
  std::vector<ArgumentUse> uses;
  uint64_t serial = 0;  // of the buffer that the arguments hold
};

}  // namespace

struct CommandList::Impl {
  DevicePtr device;
  std::vector<Step> steps;
  std::vector<Launch> launches;
  std::vector<std::vector<Operand>> operands;  // of launches
  std::vector<Copy> copies;
  Replay kind = Replay::kAuto;  // until frozen
  std::vector<PreparedLaunch> prepared;
  std::vector<Binding> bindings;
  std::vector<Buffer*> static_buffers;  // each once
  uint64_t copied_bytes = 0;
  std::optional<NativeRecorder> recorder;
  // By the serials of all bindings.
  std::map<std::vector<uint64_t>, NativeReplay> recordings;
  std::vector<uint64_t> key;  // of the replay at hand; kept for its memory
  EventHandle last_native;

  void check_frozen(bool wanted, const char* call) const {
    if ((kind != Replay::kAuto) == wanted) return;
    fail(Code::kFailedPrecondition, "[{}] the command list is {}frozen", call,
         wanted ? "not " : "");
  }

  template <class Visit>
  void for_each_operand(Visit visit) {
    for (auto& list : operands) {
      for (Operand& operand : list) visit(operand);
    }
    for (Copy& copy : copies) {
      visit(copy.target);
      visit(copy.source);
    }
  }

  // Sets all static arguments and notes where bindings go.
  void set_static_arguments() {
    bindings.clear();
    std::set<Buffer*> distinct;
    for_each_operand([&](Operand& operand) {
      if (operand.buffer)
        distinct.insert(operand.buffer.get());
      else if (operand.binding >= bindings.size())
        bindings.resize(operand.binding + 1);
    });
    static_buffers.assign(distinct.begin(), distinct.end());
    for (size_t i = 0; i < launches.size(); ++i) {
      for (cl_uint a = 0; a < launches[i].args.size(); ++a) {
        const Arg& arg = launches[i].args[a];
        if (arg.kind != Arg::Kind::kBuffer) continue;
        const Operand& operand = operands[i][arg.slot];
        if (operand.buffer)
          set_buffer(i, a, *operand.buffer);
        else
          bindings[operand.binding].uses.push_back({i, a});
      }
    }
  }

  void set_buffer(size_t launch, cl_uint argument, Buffer& buffer) {
    PreparedLaunch& to = prepared[launch];
    if (to.kernel) to.kernel->set_buffer(argument, buffer);
    if (to.task == nullptr) return;
    to.words[kTaskArguments + argument] = buffer.address();
    if (buffer.address() == 0) to.task = nullptr;
  }

  // Where a launch runs as a task, it needs no kernel object.
  void prepare_launch(const Launch& launch, Replay replay) {
    PreparedLaunch made{geometry_of(launch), nullptr, {}, {}};
    Tasks* tasks = replay == Replay::kNative ? nullptr : device->tasks();
    if (tasks != nullptr && may_be_task(launch)) made.task = tasks->find(launch);
    if (made.task != nullptr)
      write_task_words(launch, &made.words);
    else
      made.kernel = make_kernel(launch);
    prepared.push_back(std::move(made));
  }

  void check_bindings(const std::vector<BufferPtr>& buffers) const {
    if (buffers.size() < bindings.size()) {
      fail(Code::kInvalidArgument, "[replay] {} bindings, the list uses {}", buffers.size(),
           bindings.size());
    }
    for (size_t i = 0; i < bindings.size(); ++i) {
      if (!buffers[i]) fail(Code::kInvalidArgument, "[replay] binding {} is null", i);
    }
  }

  void bind(const std::vector<BufferPtr>& buffers) {
    for (size_t i = 0; i < bindings.size(); ++i) {
      Binding& binding = bindings[i];
      Buffer& buffer = *buffers[i];
      if (binding.serial == buffer.serial()) continue;
      for (const ArgumentUse& use : binding.uses) set_buffer(use.launch, use.argument, buffer);
      binding.serial = buffer.serial();
    }
  }

  // A copy's operands are known in full only now.
  void check_copies(const std::vector<BufferPtr>& buffers) const {
    for (const Copy& copy : copies) {
      const uint64_t least =
          std::min(resolve(copy.target, buffers).size(), resolve(copy.source, buffers).size());
      if (copy.size > least) {
        fail(Code::kInvalidArgument, "[replay] a copy of {} bytes, a buffer of {}", copy.size,
             least);
      }
    }
  }

  Buffer& resolve(const Operand& operand, const std::vector<BufferPtr>& buffers) const {
    return operand.buffer ? *operand.buffer : *buffers[operand.binding];
  }

  Kernel make_kernel(const Launch& launch, bool is_task = false) const {
    Kernel kernel = is_task ? device->tasks()->make_kernel(launch)
                            : Kernel(device->make_kernel(launch.source, launch.kernel), launch);
    kernel.set_values(launch);
    return kernel;
  }

  Kernel make_bound_kernel(size_t index, const std::vector<BufferPtr>& buffers) const {
    const Launch& launch = launches[index];
    Kernel kernel = make_kernel(launch, !prepared[index].words.empty());
    for (cl_uint a = 0; a < launch.args.size(); ++a) {
      const Arg& arg = launch.args[a];
      if (arg.kind != Arg::Kind::kBuffer) continue;
      kernel.set_buffer(a, resolve(operands[index][arg.slot], buffers));
    }
    return kernel;
  }

  // The recording of these bindings, made if there is room for it; nullptr if not.
  const NativeRecorder::Recording* recording(const std::vector<BufferPtr>& buffers,
                                             cl_command_queue queue) {
    key.clear();
    for (size_t i = 0; i < bindings.size(); ++i) key.push_back(buffers[i]->serial());
    const auto found = recordings.find(key);
    if (found != recordings.end()) return found->second.recording.get();
    if (recordings.size() >= kMaxNativeRecordings) return nullptr;
    NativeReplay made;
    made.recording = std::make_unique<NativeRecorder::Recording>(*recorder, queue);
    for (const Step& step : steps) {
      if (step.is_copy) {
        const Copy& copy = copies[step.index];
        made.recording->add_copy(resolve(copy.target, buffers), resolve(copy.source, buffers),
                                 copy.size);
        continue;
      }
      const Kernel& kernel = made.kernels.emplace_back(make_bound_kernel(step.index, buffers));
      made.recording->add_launch(kernel, prepared[step.index].geometry);
    }
    made.recording->finalize();
    return recordings.emplace(key, std::move(made)).first->second.recording.get();
  }

  void drop_recordings() {
    if (last_native) {
      const cl_event event = last_native.get();
      clWaitForEvents(1, &event);
      last_native.reset();
    }
    recordings.clear();
  }

  size_t replay_list(Stream& stream, const std::vector<BufferPtr>& buffers) {
    bind(buffers);
    const uint64_t before = stream.state().enqueued;
    for (const Step& step : steps) {
      if (step.is_copy)
        enqueue_copy(stream, copies[step.index], buffers);
      else if (!run_as_task(stream.state(), step.index))
        enqueue_launch(stream, step.index, buffers);
    }
    stream.state().start_batch();
    return stream.state().enqueued - before;
  }

  bool run_as_task(StreamState& stream, size_t index) {
    const PreparedLaunch& launch = prepared[index];
    if (launch.task == nullptr) return false;
    const StreamState::Way way = stream.way_of(launches[index].bytes);
    if (way == StreamState::Way::kKernel) return false;
    stream.take(way, launch.task, launch.words);
    return true;
  }

  void enqueue_copy(Stream& stream, const Copy& copy, const std::vector<BufferPtr>& buffers) {
    stream.state().enqueue_batch();
    cl_event event = nullptr;
    const cl_int code = device::enqueue_copy(stream.queue(), {resolve(copy.target, buffers)},
                                             {resolve(copy.source, buffers)}, copy.size, &event);
    stream.end(code, "copy", event, "copy");
  }

  void enqueue_launch(Stream& stream, size_t index, const std::vector<BufferPtr>& buffers) {
    stream.state().enqueue_batch();
    PreparedLaunch& launch = prepared[index];
    // A task has none before it is first needed.
    if (!launch.kernel) launch.kernel = make_bound_kernel(index, buffers);
    cl_event event = nullptr;
    const cl_int code = clEnqueueNDRangeKernel(
        stream.queue(), launch.kernel->get(), launch.geometry.dimensions, nullptr,
        launch.geometry.global, launch.geometry.local, 0, nullptr, &event);
    stream.end(code, "clEnqueueNDRangeKernel", event, launches[index].label);
  }

  size_t replay_native(Stream& stream, const NativeRecorder::Recording& recording) {
    stream.state().enqueue_batch();
    cl_event event = nullptr;
    const cl_int code = recording.enqueue(stream.queue(), &event);
    if (code == CL_SUCCESS) clRetainEvent(event);
    last_native.reset(event);
    stream.end(code, "clEnqueueCommandBufferKHR", event, "native replay");
    return 1;
  }
};

CommandList::CommandList(DevicePtr device) : impl_(new Impl) { impl_->device = std::move(device); }

CommandList::~CommandList() { impl_->drop_recordings(); }

void CommandList::append(const Launch& launch, std::vector<Operand> operands) {
  impl_->check_frozen(false, "append");
  for (const Arg& arg : launch.args) {
    if (arg.kind == Arg::Kind::kBuffer && arg.slot >= operands.size()) {
      fail(Code::kInvalidArgument, "[{}] an argument wants operand {} of {}", launch.label,
           arg.slot, operands.size());
    }
  }
  geometry_of(launch);  // throws here rather than in freeze()
  impl_->steps.push_back({false, impl_->launches.size()});
  impl_->launches.push_back(launch);
  impl_->operands.push_back(std::move(operands));
}

void CommandList::append_copy(Operand target, Operand source, uint64_t size) {
  impl_->check_frozen(false, "append_copy");
  if (size == 0) return;
  impl_->steps.push_back({true, impl_->copies.size()});
  impl_->copies.push_back({std::move(target), std::move(source), size});
  impl_->copied_bytes += size;
}

void CommandList::freeze(Replay kind) {
  impl_->check_frozen(false, "freeze");
  // Twenty kernels of 2 us: the list takes 31 us on PoCL 3.1 and 40 on Intel's runtime, a command
  // buffer 36 and 60 to 220. So the list is the choice until a device shows otherwise.
  if (kind == Replay::kAuto) kind = Replay::kList;
  if (kind == Replay::kStitch) {
    fail(Code::kInvalidArgument, "[freeze] stitching replaces a list; see Stitched::make");
  }
  if (kind == Replay::kNative) impl_->recorder.emplace(*impl_->device);
  std::vector<SourcePtr> sources;
  std::set<std::string> seen;
  for (const Launch& launch : impl_->launches) {
    if (seen.insert(launch.source->id).second) sources.push_back(launch.source);
  }
  impl_->device->prebuild(sources, kind == Replay::kList);
  for (const Launch& launch : impl_->launches) impl_->prepare_launch(launch, kind);
  impl_->set_static_arguments();
  impl_->kind = kind;
}

Replay CommandList::kind() const { return impl_->kind; }
size_t CommandList::launch_count() const { return impl_->launches.size(); }
const std::vector<Launch>& CommandList::launches() const { return impl_->launches; }
const std::vector<std::vector<Operand>>& CommandList::operands() const { return impl_->operands; }
bool CommandList::has_copies() const { return !impl_->copies.empty(); }

void CommandList::rebind(const Buffer* from, const BufferPtr& to) {
  impl_->for_each_operand([&](Operand& operand) {
    if (operand.buffer && operand.buffer.get() == from) operand.buffer = to;
  });
  if (impl_->kind == Replay::kAuto) return;
  impl_->drop_recordings();
  impl_->set_static_arguments();
}

void CommandList::prepare(const std::vector<BufferPtr>& bindings) {
  impl_->check_frozen(true, "prepare");
  impl_->check_bindings(bindings);
  if (impl_->kind != Replay::kNative || impl_->steps.empty()) return;
  impl_->recording(bindings, impl_->device->default_stream().queue());
}

size_t CommandList::replay(Stream& stream, const std::vector<BufferPtr>& bindings) {
  impl_->check_frozen(true, "replay");
  stream.begin();
  if (&stream.device() != impl_->device.get()) {
    fail(Code::kInvalidArgument, "[replay] the stream is of another device");
  }
  impl_->check_bindings(bindings);
  for (size_t i = 0; i < impl_->bindings.size(); ++i) stream.check_device("replay", *bindings[i]);
  impl_->check_copies(bindings);
  if (impl_->steps.empty()) return 0;
  if (&stream != &impl_->device->default_stream()) {
    for (Buffer* buffer : impl_->static_buffers) stream.use(*buffer);
    for (size_t i = 0; i < impl_->bindings.size(); ++i) stream.use(*bindings[i]);
  }
  const NativeRecorder::Recording* recording =
      impl_->kind == Replay::kNative ? impl_->recording(bindings, stream.queue()) : nullptr;
  std::lock_guard lock(stream.state().mutex);
  const size_t enqueues = recording != nullptr ? impl_->replay_native(stream, *recording)
                                               : impl_->replay_list(stream, bindings);
  Counters& counters = impl_->device->counters();
  counters.kernel_launches.fetch_add(impl_->launches.size(), std::memory_order_relaxed);
  counters.copies.fetch_add(impl_->copies.size(), std::memory_order_relaxed);
  counters.bytes_on_device.fetch_add(impl_->copied_bytes, std::memory_order_relaxed);
  return enqueues;
}

}  // namespace ballast::device
