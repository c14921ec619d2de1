#include "graph/sink.h"

#include "device/event.h"

#include <algorithm>

namespace ballast::graph {

using device::Buffer;
using device::BufferPtr;
using device::Code;
using device::fail;

namespace {

constexpr size_t kKnownQueues = 8;      // double buffering of a few queues
constexpr uint64_t kStepsPerMark = 16;  // an event every so many steps ...
constexpr size_t kMarksInFlight = 4;    // ... and at most so many ahead of the device
// What the steps of a stitched launch touch together: 2 to 5 ms by several workers where they are
// bound by memory, some tens of ms by one, whose steps are bound by what each costs.
constexpr uint64_t kBytesPerLaunch = 256 << 20, kBytesPerLaunchOfOne = 64 << 20;

uint64_t allocations(device::Device& device) {
  const device::PoolStats stats = device.pool().stats();
  return stats.driver_allocations + stats.pool_allocations;
}

// Lets the host run ahead of the device by a bounded number of steps, so that cancelling takes
// effect soon and the driver's queue stays short.
class Window {
 public:
  Window(const device::DevicePtr& device, device::Stream& stream) : stream_(stream) {
    for (size_t i = 0; i < kMarksInFlight; ++i) {
      marks_.push_back(std::make_unique<device::Event>(device));
    }
  }
  void steps_done(uint64_t count) {
    unmarked_ += count;
    if (unmarked_ < kStepsPerMark) return;
    unmarked_ = 0;
    device::Event& mark = *marks_[next_ % kMarksInFlight];
    if (next_ >= kMarksInFlight) mark.wait();
    mark.record(stream_);
    stream_.flush();
    ++next_;
  }

 private:
  device::Stream& stream_;
  std::vector<std::unique_ptr<device::Event>> marks_;
  size_t next_ = 0;
  uint64_t unmarked_ = 0;  // steps since the last mark
};

// A request to cancel holds until a run has ended: one that begins just then is stopped too.
class Consumed {
 public:
  explicit Consumed(CancelFlag& flag) : flag_(flag) {}
  ~Consumed() { flag_ = false; }
  Consumed(const Consumed&) = delete;
  Consumed& operator=(const Consumed&) = delete;

 private:
  CancelFlag& flag_;
};

void check_cancelled(const CancelFlag& is_cancelled, uint64_t step) {
  if (is_cancelled) fail(Code::kCancelled, "[sink_run] cancelled after {} steps", step);
}

// Without a product, which may be too large for 64 bits.
void check_slots(const char* what, size_t i, const Queue& queue, const TensorType& type) {
  if (queue.slots == 0) fail(Code::kInvalidArgument, "[sink_run] {} {} has no slots", what, i);
  const uint64_t size = queue.buffer->size(), bytes = type.bytes();
  if (bytes == 0 || queue.slots <= size / bytes) return;
  fail(Code::kInvalidArgument, "[sink_run] {} {}: {} slots of {} need {} bytes each, got {}", what,
       i, queue.slots, to_string(type), bytes, size);
}

}  // namespace

Sink::Sink(std::shared_ptr<Executable> executable, uint64_t max_slots)
    : executable_(std::move(executable)), max_slots_(max_slots) {
  executable_->check_states();
  const size_t input_count = executable_->graph().inputs().size();
  const size_t output_count = executable_->graph().outputs().size();
  for (size_t i = 0; i < input_count; ++i) {
    executable_->input_slot(i);
    if (max_slots_ == 0) continue;
    uint64_t size = 0;
    if (__builtin_mul_overflow(max_slots_, executable_->input_type(i).bytes(), &size)) {
      fail(Code::kInvalidArgument, "[sink_create] max_slots {}: so many of {} are no size",
           max_slots_, to_string(executable_->input_type(i)));
    }
    staging_.push_back(Buffer::create(executable_->device(), size));
  }
  for (size_t i = 0; i < output_count; ++i) executable_->output_slot(i);
  for (size_t state : executable_->early_states()) {
    saved_.push_back(Buffer::create(executable_->device(), executable_->state_type(state).bytes()));
  }
}

Sink::Sink(std::shared_ptr<Executable> executable)
    : executable_(std::move(executable)), max_slots_(0) {
  executable_->check_states();
}

Sink::Lane Sink::make_lane(const BufferPtr& queue, uint64_t slots, uint64_t bytes) {
  Lane lane{queue, {}, nullptr, slots, bytes};
  if (slots == 1) {
    lane.views = {queue};
    return lane;
  }
  const bool is_aligned = bytes % executable_->device()->info().buffer_alignment == 0;
  if (!is_aligned || bytes == 0 || executable_->stitched() != nullptr) return lane;
  auto known = std::find_if(known_views_.begin(), known_views_.end(), [&](const auto& entry) {
    return entry.first == queue && entry.second.size() == slots && entry.second[0]->size() == bytes;
  });
  if (known != known_views_.end()) {
    lane.views = known->second;
    return lane;
  }
  for (uint64_t i = 0; i < slots; ++i) lane.views.push_back(Buffer::view(queue, i * bytes, bytes));
  known_views_.emplace_back(queue, lane.views);
  if (known_views_.size() > kKnownQueues) known_views_.pop_front();
  return lane;
}

std::vector<Sink::Lane> Sink::input_lanes(device::Stream& stream,
                                          const std::vector<Queue>& inputs) {
  std::vector<Lane> lanes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint64_t bytes = executable_->input_type(i).bytes();
    const Queue& queue = inputs[i];
    BufferPtr buffer = queue.buffer;
    if (queue.host != nullptr) {
      if (queue.slots == 0 || queue.slots > max_slots_) {
        fail(Code::kInvalidArgument,
             "[sink_run] input {}: {} slots of host memory, max_slots is {}", i, queue.slots,
             max_slots_);
      }
      buffer = staging_[i];
      stream.write(*buffer, 0, queue.host, queue.slots * bytes);
    } else {
      check_slots("input", i, queue, executable_->input_type(i));
    }
    lanes.push_back(make_lane(buffer, queue.slots, bytes));
    if (lanes.back().is_copied() && !executable_->stitched())
      lanes.back().slot = executable_->input_slot(i);
  }
  return lanes;
}

std::vector<Sink::Lane> Sink::output_lanes(const std::vector<Queue>& outputs) {
  std::vector<Lane> lanes;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const uint64_t bytes = executable_->output_type(i).bytes();
    const Queue& queue = outputs[i];
    if (!queue.buffer) {
      lanes.push_back(make_lane(executable_->output_slot(i), 1, bytes));
      continue;
    }
    check_slots("output", i, queue, executable_->output_type(i));
    lanes.push_back(make_lane(queue.buffer, queue.slots, bytes));
    if (lanes.back().is_copied() && !executable_->stitched())
      lanes.back().slot = executable_->output_slot(i);
  }
  return lanes;
}

void Sink::run(device::Stream& stream, uint64_t n_steps, const std::vector<Queue>& inputs,
               const std::vector<Queue>& outputs, Direction direction,
               const CancelFlag* is_cancelled) {
  const Graph& graph = executable_->graph();
  if (inputs.size() != graph.inputs().size() || outputs.size() != graph.outputs().size()) {
    fail(Code::kInvalidArgument, "[sink_run] takes {} inputs and {} outputs, got {} and {}",
         graph.inputs().size(), graph.outputs().size(), inputs.size(), outputs.size());
  }
  const Executable::Busy busy(*executable_);
  const Consumed request(is_cancelled_);
  executable_->follow_last_run(stream);
  executable_->check_states();
  steps_done_ = 0;
  std::vector<Lane> from = input_lanes(stream, inputs), to = output_lanes(outputs);
  std::vector<BufferPtr> queues;
  for (auto* lanes : {&from, &to}) {
    for (Lane& lane : *lanes) {
      lane.direction = direction;
      queues.push_back(lane.queue);
    }
  }
  executable_->check_bindings(queues);
  device::Device& device = *executable_->device();
  const uint64_t allocations_before = allocations(device);
  const uint64_t submits_before = device.counters().submits;
  const CancelFlag& cancel = is_cancelled != nullptr ? *is_cancelled : is_cancelled_;
  if (executable_->stitched() != nullptr) {
    run_stitched(stream, n_steps, from, to, direction, cancel);
  } else {
    run_steps(stream, n_steps, from, to, cancel);
  }
  last_submits_ = device.counters().submits - submits_before;
  replay_allocations_ += allocations(device) - allocations_before;
}

void Sink::run_steps(device::Stream& stream, uint64_t n_steps, const std::vector<Lane>& inputs,
                     const std::vector<Lane>& outputs, const CancelFlag& is_cancelled) {
  Window window(executable_->device(), stream);
  std::vector<BufferPtr> bindings(inputs.size() + outputs.size());
  for (uint64_t step = 0; step < n_steps; ++step) {
    check_cancelled(is_cancelled, step);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Lane& lane = inputs[i];
      bindings[i] = lane.at(step);
      if (!lane.is_copied()) continue;
      stream.copy(*lane.slot, 0, *lane.queue, lane.number(step) * lane.bytes, lane.bytes);
    }
    for (size_t i = 0; i < outputs.size(); ++i) bindings[inputs.size() + i] = outputs[i].at(step);
    replay_whole(stream, bindings, is_cancelled);
    for (const Lane& lane : outputs) {
      if (!lane.is_copied()) continue;
      stream.copy(*lane.queue, lane.number(step) * lane.bytes, *lane.slot, 0, lane.bytes);
    }
    window.steps_done(1);
    steps_done_ = step + 1;
  }
}

// One step, or, where it is stopped within, none: what it has written by then is taken back.
void Sink::replay_whole(device::Stream& stream, const std::vector<BufferPtr>& bindings,
                        const CancelFlag& is_cancelled) {
  const std::vector<size_t>& states = executable_->early_states();
  for (size_t i = 0; i < saved_.size(); ++i) {
    stream.copy(*saved_[i], 0, *executable_->state(states[i]), 0, saved_[i]->size());
  }
  try {
    executable_->replay(stream, bindings, &is_cancelled);
  } catch (const device::Error& error) {
    for (size_t i = 0; i < saved_.size(); ++i) {
      stream.copy(*executable_->state(states[i]), 0, *saved_[i], 0, saved_[i]->size());
    }
    if (error.code() != Code::kCancelled) throw;
    fail(Code::kCancelled, "[sink_run] cancelled after {} steps, in a loop of the next",
         steps_done_.load());
  }
}

// A launch every so many steps, so that cancelling takes effect: by several workers of some
// milliseconds each, as the host that prepares the next ones shares its core with one of them,
// which does not sleep.
void Sink::run_stitched(device::Stream& stream, uint64_t n_steps, const std::vector<Lane>& inputs,
                        const std::vector<Lane>& outputs, Direction direction,
                        const CancelFlag& is_cancelled) {
  std::vector<device::StitchBinding> bindings;
  for (const auto* lanes : {&inputs, &outputs}) {
    for (const Lane& lane : *lanes) bindings.push_back({lane.queue.get(), lane.bytes, lane.slots});
  }
  device::Stitched& stitched = *executable_->stitched();
  const uint64_t bytes = stitched.workers() > 1 ? kBytesPerLaunch : kBytesPerLaunchOfOne;
  const uint64_t at_once = bytes / std::max<uint64_t>(executable_->touched_bytes(), 1) + 1;
  Window window(executable_->device(), stream);
  for (uint64_t step = 0; step < n_steps; step += at_once) {
    check_cancelled(is_cancelled, step);
    const uint64_t count = std::min(at_once, n_steps - step);
    stitched.run(stream, bindings, {count, step, direction == Direction::kBackward});
    window.steps_done(kStepsPerMark);
    steps_done_ = step + count;
  }
}

SinkInfo Sink::info() const {
  SinkInfo info;
  info.launches_per_step = executable_->launch_count();
  info.submits = last_submits_;
  info.steps = steps_done_;
  info.replay_allocations = replay_allocations_;
  info.bytes_retained = executable_->memory().arena_bytes + executable_->constant_bytes();
  for (const BufferPtr& buffer : staging_) info.bytes_retained += buffer->size();
  return info;
}

}  // namespace ballast::graph
