#include "frontend/modes/compiled.h"

#include "frontend/backend/plugin.h"
#include "frontend/modes/lower.h"

#include <algorithm>
#include <utility>

namespace ballast {

namespace {

// Output buffers kept per output: one that the caller still reads, one to write meanwhile.
constexpr size_t kKeptOutputs = 2;

}  // namespace

struct Compiled::State {
  Parameter parameter;  // undefined: a donated argument
  bool is_updated;
  std::weak_ptr<Buffer> bound;  // weak: it must not count as an owner of the parameter's buffer
};

struct Compiled::Output {
  SharedType type;
  std::vector<KeptBuffer> kept;
};

TensorType Queue::step_type() const {
  const TensorType& type = data.type();
  if (!is_stacked) return type;
  if (type.shape.empty()) {
    fail(BALLAST_INVALID_ARGUMENT, "[sink] a queue of {} has no leading axis to step along",
         to_string(type));
  }
  return {type.dtype, Shape(type.shape.begin() + 1, type.shape.end())};
}

Compiled::Compiled(Program program, const JitOptions& options, std::vector<Donated> donated)
    : program_(std::move(program)),
      options_(options),
      device_(device()),
      donated_(std::move(donated)) {
  choose_outputs(donated_, program_);
  std::sort(donated_.begin(), donated_.end(),
            [](const Donated& a, const Donated& b) { return a.leaf < b.leaf; });
  Lowered lowered = lower(program_, *device_, options_, donated_);
  executable_ = lowered.executable;
  for (const Donated& argument : donated_) {
    if (argument.output) donated_states_.push_back({{}, true, {}});
  }
  for (size_t i = 0; i < lowered.states.size(); ++i) {
    states_.push_back({lowered.states[i], lowered.is_updated[i], {}});
  }
  for (const Atom& output : program_.outputs) {
    outputs_.push_back({std::make_shared<const TensorType>(output.type()), {}});
  }
}

Compiled::~Compiled() {
  const ballast_api& api = plugin();
  if (sink_) {
    if (ballast_error* error = api.sink->sink_release(sink_)) api.error_destroy(error);
  }
  if (ballast_error* error = api.graph->executable_release(executable_)) api.error_destroy(error);
}

void Compiled::bind_state(State& state, size_t index, const BufferPtr& buffer) {
  if (state.bound.lock() == buffer) return;
  check(plugin().graph->executable_bind_state(executable_, index, buffer->handle()));
  if (sink_) check(plugin().sink->sink_update(sink_, index, buffer->handle()));
  state.bound = buffer;
}

void Compiled::bind_states() {
  size_t index = donated_states_.size();
  for (State& state : states_) {
    states_in_use_.push_back(state.parameter.bound_buffer(state.is_updated));
    bind_state(state, index++, states_in_use_.back());
  }
}

void Compiled::release_states() {
  for (size_t i = 0; i < states_in_use_.size(); ++i) {
    if (states_[i].is_updated) states_[i].parameter.end_write();
  }
  states_in_use_.clear();
}

// Binds the parameters for one call. Other threads may read and assign them meanwhile: what is
// bound stays allocated, and is not given to readers while it is written.
class Compiled::StatesInUse {
 public:
  explicit StatesInUse(Compiled& compiled) : release_{compiled} { compiled.bind_states(); }

 private:
  struct Release {
    Compiled& compiled;
    ~Release() { compiled.release_states(); }
  } release_;
};

// Returns the memory of the outputs that take an argument's, null for others.
std::vector<BufferPtr> Compiled::bind_donated(const std::vector<Tensor>& arguments) {
  std::vector<BufferPtr> taken(outputs_.size());
  size_t index = 0;
  for (const Donated& argument : donated_) {
    if (!argument.output) continue;
    BufferPtr& buffer = taken[*argument.output];
    buffer = arguments[argument.leaf].buffer_to_donate();
    bind_state(donated_states_[index], index, buffer);
    ++index;
  }
  return taken;
}

void Compiled::bind_inputs(const std::vector<Tensor>& arguments) {
  input_bindings_.clear();
  auto donated = donated_.begin();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool is_donated = donated != donated_.end() && donated->leaf == i;
    const bool is_state = is_donated && donated->output;
    if (is_donated) ++donated;
    if (!is_state) input_bindings_.add(arguments[i]);
  }
  for (const auto& captured : program_.captured) input_bindings_.add(captured.value);
}

BufferPtr Compiled::take_output(Output& output, uint64_t n) {
  const uint64_t bytes = output.type->bytes() * n;
  auto& kept = output.kept;
  auto free = std::find_if(kept.begin(), kept.end(), [&](const KeptBuffer& buffer) {
    return buffer.is_free() && buffer.get()->bytes() == bytes;
  });
  BufferPtr buffer = free != kept.end() ? free->get() : device_->allocate(bytes);
  if (free != kept.end()) kept.erase(free);
  if (kept.size() == kKeptOutputs) kept.erase(kept.begin());
  kept.emplace_back(buffer);
  return buffer;
}

std::vector<Tensor> Compiled::run(const std::vector<Tensor>& arguments, const Where& where) {
  std::lock_guard lock(mutex_);
  const StatesInUse states(*this);
  bind_inputs(arguments);
  std::vector<BufferPtr> buffers = bind_donated(arguments);
  output_bindings_.clear();
  for (size_t i = 0; i < buffers.size(); ++i) {
    BufferPtr& buffer = buffers[i];
    if (buffer) continue;
    buffer = take_output(outputs_[i], 1);
    output_bindings_.push_back(BALLAST_INIT(ballast_binding));
    output_bindings_.back().buffer = buffer->handle();
  }
  for (const Donated& argument : donated_) arguments[argument.leaf].donate(argument.name, where);
  ballast_error* error = plugin().graph->executable_run(
      executable_, device_->stream(), input_bindings_.data(), input_bindings_.size(),
      sizeof(ballast_binding), output_bindings_.data(), output_bindings_.size(),
      sizeof(ballast_binding));
  input_bindings_.clear();  // the call has returned: now the plugin orders releases
  check(error);
  std::vector<Tensor> results;
  results.reserve(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    results.push_back(Tensor::of_buffer(outputs_[i].type, std::move(buffers[i])));
  }
  return results;
}

void Compiled::release_sink() {
  if (ballast_sink* sink = std::exchange(sink_, nullptr)) check(plugin().sink->sink_release(sink));
}

void Compiled::ensure_sink(uint64_t slots) {
  if (sink_ && slots <= sink_slots_) return;
  release_sink();
  ballast_sink_options options = BALLAST_INIT(ballast_sink_options);
  options.max_slots = slots;
  check(plugin().sink->sink_create(executable_, &options, &sink_));
  sink_slots_ = slots;
}

namespace {

// Longest queue that lies in host memory.
uint64_t host_slots(const std::vector<Queue>& queues) {
  uint64_t slots = 0;
  for (const Queue& queue : queues) {
    if (!queue.data.is_on_host()) continue;
    uint64_t own = queue.is_stacked ? static_cast<uint64_t>(queue.data.shape()[0]) : 1;
    slots = std::max(slots, own);
  }
  return slots;
}

void check_queue(const Queue& queue, uint64_t n, size_t number) {
  if (queue.is_stacked && static_cast<uint64_t>(queue.data.shape()[0]) < n) {
    fail(BALLAST_INVALID_ARGUMENT, "[sink] queue {} is {}: too short for {} steps", number,
         to_string(queue.data.type()), n);
  }
}

}  // namespace

std::vector<Tensor> Compiled::run_sink(uint64_t n, const std::vector<Queue>& queues,
                                       Cancellation& cancellation) {
  std::lock_guard lock(mutex_);
  if (!donated_.empty()) {
    fail(BALLAST_INVALID_ARGUMENT, "[sink] {} is donated, but a queue keeps its values",
         *donated_[0].name);
  }
  if (n == 0) {
    fail(BALLAST_INVALID_ARGUMENT, "[sink] a run of 0 steps was asked for, expected 1 or more");
  }
  const StatesInUse states(*this);
  std::vector<Queue> all = queues;
  for (const auto& captured : program_.captured) all.push_back(repeat(captured.value));
  ensure_sink(host_slots(all));

  InputBindings<ballast_queue_binding> inputs;
  for (size_t i = 0; i < all.size(); ++i) {
    const Tensor& data = all[i].data;
    check_queue(all[i], n, i);
    inputs.add(data).slots = all[i].is_stacked ? static_cast<uint64_t>(data.shape()[0]) : 1;
  }
  std::vector<BufferPtr> buffers;
  std::vector<ballast_queue_binding> outputs;
  for (Output& output : outputs_) {
    buffers.push_back(take_output(output, n));
    outputs.push_back(BALLAST_INIT(ballast_queue_binding));
    outputs.back().buffer = buffers.back()->handle();
    outputs.back().slots = n;
  }
  cancellation.start(sink_);
  ballast_error* error = plugin().sink->sink_run(
      sink_, device_->stream(), n, inputs.data(), inputs.size(), sizeof(ballast_queue_binding),
      outputs.data(), outputs.size(), sizeof(ballast_queue_binding));
  // A request that came too late for this run must not stop the next one.
  if (cancellation.stop(sink_)) release_sink();
  check(error);
  std::vector<Tensor> results;
  for (size_t i = 0; i < buffers.size(); ++i) {
    TensorType type = *outputs_[i].type;
    type.shape.insert(type.shape.begin(), static_cast<int64_t>(n));
    results.push_back(Tensor::of_buffer(std::move(type), std::move(buffers[i])));
  }
  return results;
}

CompiledInfo Compiled::info() {
  std::lock_guard lock(mutex_);
  ballast_executable_info abi = BALLAST_INIT(ballast_executable_info);
  check(plugin().graph->executable_info(executable_, &abi));
  CompiledInfo info;
  info.launch_count = abi.launch_count;
  info.submit_count = abi.submit_count;
  info.node_count = abi.node_count;
  info.arena_bytes = abi.arena_bytes;
  info.naive_bytes = abi.naive_bytes;
  info.lower_bound_bytes = abi.lower_bound_bytes;
  info.constant_bytes = abi.constant_bytes;
  for (const Donated& argument : donated_) {
    if (argument.output) info.donated_bytes += outputs_[*argument.output].type->bytes();
  }
  info.replay = static_cast<Replay>(abi.replay);
  info.level = static_cast<JitLevel>(abi.level);
  info.text = from_abi(abi.text);
  if (sink_) {
    ballast_sink_info sink = BALLAST_INIT(ballast_sink_info);
    check(plugin().sink->sink_info(sink_, &sink));
    info.sink_allocations = sink.replay_allocations;
    info.sink_submits_per_step = static_cast<double>(sink.submits_per_step_x1000) / 1000;
    info.replay = static_cast<Replay>(sink.replay);
  }
  return info;
}

}  // namespace ballast
