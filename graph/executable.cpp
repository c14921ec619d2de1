#include "graph/executable.h"

#include "graph/control.h"
#include "graph/effect.h"
#include "graph/text.h"
#include "kernels/plan/tune.h"

#include <algorithm>

namespace ballast::graph {

using device::Buffer;
using device::BufferPtr;
using device::Code;
using device::fail;
using device::Operand;
using device::Replay;

namespace {

// Below this many bytes touched per step the launches cost more than the work: one work-item that
// does everything is faster (linear regression 10 -> 1: 17 KB touched; launches ~2 us each).
constexpr uint64_t kStitchBytes = 64 * 1024;
// Up to so many per launch, workers within one kernel are 1.05 to 1.3 times faster than launches,
// and so many launches are compiled within seconds.
constexpr uint64_t kBytesPerLaunch = 4 << 20, kStitchLaunches = 256;

// What an executable's text shows of a constant.
constexpr size_t kShownConstantBytes = 16;

}  // namespace

Executable::Executable(const device::DevicePtr& device, const Graph& graph,
                       const CompileOptions& options)
    : device_(device),
      options_(options),
      graph_(optimize(graph, options.level, device)),
      text_(print(graph_, kShownConstantBytes)),
      bound_(graph_.states().size()),
      input_slots_(graph_.inputs().size()),
      output_slots_(graph_.outputs().size()) {
  for (size_t i = 0; i < bound_.size(); ++i) states_.push_back(Buffer::create(device_, 0));
  record();
  find_early_states();
  choose_replay();
}

Executable::~Executable() = default;

void Executable::record() {
  std::vector<Plan> plans;
  std::vector<uint64_t> workspace_bytes;
  const kernels::TuningScope tuning(device_);
  for (const Node& node : graph_.nodes()) {
    const OpCall call{node.op, node.attrs, graph_.types(node.inputs)};
    const bool has_plan = !node.op->is_alias && !runs_on_host(node);
    plans.push_back(has_plan
                        ? make_plan(device_->info().device_class, call, graph_.types(node.outputs))
                        : Plan{});
    workspace_bytes.push_back(plans.back().workspace_bytes);
    if (node.op->is_alias) continue;
    for (const auto* ids : {&node.inputs, &node.outputs}) {
      for (const TensorType& type : graph_.types(*ids)) touched_bytes_ += type.bytes();
    }
  }
  memory_ = plan_memory(graph_, workspace_bytes, device_->info().buffer_alignment);
  arena_ = Buffer::create(device_, memory_.arena_bytes);

  for (size_t i = 0; i < plans.size(); ++i) {
    const Node& node = graph_.nodes()[i];
    std::vector<Operand> operands;
    for (ValueId id : node.inputs) operands.push_back(operand(id));
    for (ValueId id : node.outputs) operands.push_back(operand(id));
    if (workspace_bytes[i] > 0) {
      operands.push_back({arena_view(memory_.workspaces[i], workspace_bytes[i])});
      for (const kernels::Region& region : plans[i].regions) {
        operands.push_back({arena_view(memory_.workspaces[i] + region.offset, region.bytes)});
      }
    }
    for (device::Launch& launch : plans[i].launches) open_list().append(launch, operands);
    if (runs_on_host(node)) add_control(node, std::move(operands));
  }
  record_copies();
}

// Those that some node writes before the last loop has ended.
void Executable::find_early_states() {
  const std::vector<Node>& nodes = graph_.nodes();
  size_t end = nodes.size();
  while (end > 0 && !has_loop(nodes[end - 1])) --end;
  for (size_t i = 0; i < end; ++i) {
    for (ValueId id : nodes[i].outputs) {
      const Storage& storage = memory_.values[id];
      const bool is_written = storage.kind == Storage::Kind::kState && !nodes[i].op->is_alias;
      if (is_written) early_states_.push_back(storage.index);
    }
  }
}

void Executable::record_copies() {
  for (const StateCopy& copy : memory_.copies) {
    const TensorType& type = graph_.value(copy.value).type;
    const Plan plan =
        kernels::plan_copy(device_->info().device_class, type.dtype, {type.elements()}, {1});
    for (const device::Launch& launch : plan.launches) {
      open_list().append(launch, {operand(copy.value), {states_[copy.state]}});
    }
  }
}

device::CommandList& Executable::open_list() {
  if (segments_.empty() || segments_.back().control) {
    segments_.push_back({std::make_unique<device::CommandList>(device_), nullptr});
  }
  return *segments_.back().list;
}

void Executable::add_control(const Node& node, std::vector<Operand> operands) {
  if (options_.replay == Replay::kStitch) {
    fail(Code::kUnimplemented, "[graph_compile] stitch: the graph has {} ({})",
         node.op->effect ? "an effect" : "control flow", node.op->name);
  }
  segments_.push_back(
      {nullptr, Control::make(device_, graph_, node, std::move(operands), options_)});
  const Control::Cost cost = segments_.back().control->cost();
  launch_count_ += cost.launches;
  submit_count_ += cost.submits;
  memory_.arena_bytes += cost.arena_bytes;
  memory_.naive_bytes += cost.naive_bytes;
  memory_.lower_bound_bytes += cost.lower_bound_bytes;
  constant_bytes_ += cost.constant_bytes;
}

void Executable::choose_replay() {
  if (segments_.empty()) open_list();
  for (const Segment& segment : segments_) {
    if (!segment.list) continue;
    launch_count_ += segment.list->launch_count();
    submit_count_ += segment.list->launch_count();
  }
  const bool wants_stitch = options_.replay == Replay::kStitch;
  const bool is_one_list = segments_.size() == 1 && segments_[0].list;
  if (is_one_list && (wants_stitch || pays_to_stitch())) stitch();
  for (Segment& segment : segments_) {
    if (!segment.list) continue;
    segment.list->freeze(wants_stitch ? Replay::kList : options_.replay);
    list_kind_ = segment.list->kind();
  }
}

// The only segment's list, whose kernels then need not be built.
void Executable::stitch() {
  const uint32_t workers =
      touched_bytes_ <= kStitchBytes ? 1 : device::stitch_workers(device_->info());
  std::string why;
  stitched_ = device::Stitched::make(device_, *segments_[0].list,
                                     input_slots_.size() + output_slots_.size(), workers, &why);
  if (stitched_) return segments_.clear();
  if (options_.replay == Replay::kStitch) {
    fail(Code::kUnimplemented, "[graph_compile] stitch: {}", why);
  }
}

// O0 is the reference, kernel by kernel.
bool Executable::pays_to_stitch() const {
  const device::DeviceInfo& info = device_->info();
  const uint64_t launches = segments_[0].list->launch_count();
  const bool is_apt = options_.replay == Replay::kAuto && options_.level != Level::kO0 &&
                      info.device_class == device::DeviceClass::kCpu && launches > 1;
  if (!is_apt || touched_bytes_ <= kStitchBytes) return is_apt;
  // One kernel would hide from a profile what its time goes to.
  return device::stitch_workers(info) > 1 && !device_->options().profile &&
         touched_bytes_ <= launches * kBytesPerLaunch && launches <= kStitchLaunches;
}

Operand Executable::operand(ValueId id) {
  const Storage& storage = memory_.values[id];
  const TensorType& type = graph_.value(id).type;
  switch (storage.kind) {
    case Storage::Kind::kInput:
      return {nullptr, static_cast<uint32_t>(storage.index)};
    case Storage::Kind::kOutput:
      return {nullptr, static_cast<uint32_t>(graph_.inputs().size() + storage.index)};
    case Storage::Kind::kState:
      return {states_[storage.index]};
    case Storage::Kind::kArena:
      return {arena_view(storage.index, type.bytes())};
    case Storage::Kind::kConstant: {
      BufferPtr& buffer = constants_[static_cast<ValueId>(storage.index)];
      if (!buffer) {
        const auto& data = *graph_.value(static_cast<ValueId>(storage.index)).data;
        buffer = Buffer::upload(device_, data.data(), data.size());
        constant_bytes_ += data.size();
      }
      return {buffer};
    }
    case Storage::Kind::kNone:
      break;
  }
  fail(Code::kInternal, "[graph_compile] value {} has no memory", id);
}

BufferPtr Executable::arena_view(uint64_t offset, uint64_t size) {
  BufferPtr& view = arena_views_[{offset, size}];
  if (!view) view = Buffer::view(arena_, offset, size);
  return view;
}

void Executable::bind_state(size_t index, const BufferPtr& buffer) {
  if (index >= states_.size()) {
    fail(Code::kInvalidArgument, "[bind_state] state {} of {}", index, states_.size());
  }
  const Value& state = graph_.value(graph_.states()[index]);
  if (buffer->size() < state.type.bytes()) {
    fail(Code::kInvalidArgument, "[bind_state] state \"{}\" is {} ({} bytes), the buffer has {}",
         state.name, to_string(state.type), state.type.bytes(), buffer->size());
  }
  if (buffer->device() != device_) {
    fail(Code::kInvalidArgument, "[bind_state] state \"{}\": buffer of another device", state.name);
  }
  const Busy busy(*this);
  if (bound_[index] == buffer) return;
  const BufferPtr own = Buffer::view(buffer, 0, buffer->size());
  for (Segment& segment : segments_) {
    if (segment.list) segment.list->rebind(states_[index].get(), own);
    if (segment.control) segment.control->rebind(states_[index].get(), own);
  }
  if (stitched_) stitched_->rebind(states_[index].get(), own);
  states_[index] = own;
  bound_[index] = buffer;
  are_states_checked_ = false;
}

void Executable::run(device::Stream& stream, const std::vector<InputBinding>& inputs,
                     const std::vector<BufferPtr>& outputs, const CancelFlag* is_cancelled) {
  if (inputs.size() != input_slots_.size() || outputs.size() != output_slots_.size()) {
    fail(Code::kInvalidArgument, "[executable_run] takes {} inputs and {} outputs, got {} and {}",
         input_slots_.size(), output_slots_.size(), inputs.size(), outputs.size());
  }
  const Busy busy(*this);
  follow_last_run(stream);
  check_states();
  std::vector<BufferPtr> bindings;
  bindings.reserve(inputs.size() + outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].host != nullptr) {
      bindings.push_back(input_slot(i));
      stream.write(*bindings.back(), 0, inputs[i].host, input_type(i).bytes());
    } else {
      check_input_size(i, inputs[i].buffer->size());
      bindings.push_back(inputs[i].buffer);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i]) check_output_size(i, outputs[i]->size());
    bindings.push_back(outputs[i] ? outputs[i] : output_slot(i));
  }
  check_bindings(bindings);
  if (!stitched_) return replay(stream, bindings, is_cancelled);
  std::vector<device::StitchBinding> stitch;
  for (const BufferPtr& buffer : bindings) stitch.push_back({buffer.get(), 0, 1});
  stitched_->run(stream, stitch, {});
}

void Executable::replay(device::Stream& stream, const std::vector<BufferPtr>& bindings,
                        const CancelFlag* is_cancelled) {
  for (Segment& segment : segments_) {
    if (segment.list) segment.list->replay(stream, bindings);
    if (segment.control) segment.control->run(stream, bindings, is_cancelled);
  }
}

const BufferPtr& Executable::input_slot(size_t i) {
  if (!input_slots_[i]) input_slots_[i] = Buffer::create(device_, input_type(i).bytes());
  return input_slots_[i];
}

const BufferPtr& Executable::output_slot(size_t i) {
  if (!output_slots_[i]) output_slots_[i] = Buffer::create(device_, output_type(i).bytes());
  return output_slots_[i];
}

void Executable::follow_last_run(device::Stream& stream) {
  if (&stream.device() != device_.get()) {
    fail(Code::kInvalidArgument, "[executable_run] the stream is of another device");
  }
  const auto& state = stream.shared_state();
  if (!last_stream_.owner_before(state) && !state.owner_before(last_stream_)) return;
  if (const auto last = last_stream_.lock()) stream.follow(*last);
  last_stream_ = state;
}

void Executable::check_states() {
  if (are_states_checked_) return;
  for (size_t i = 0; i < bound_.size(); ++i) {
    if (!bound_[i]) {
      fail(Code::kFailedPrecondition, "[executable_run] state {} (\"{}\") is not bound", i,
           graph_.value(graph_.states()[i]).name);
    }
    for (size_t j = 0; j < i; ++j) {
      const bool is_updated = graph_.updates()[i] != kNoValue || graph_.updates()[j] != kNoValue;
      if (!is_updated || !bound_[i]->overlaps(*bound_[j])) continue;
      fail(Code::kInvalidArgument,
           "[executable_run] states {} and {} share memory, and not all of them are only read", j,
           i);
    }
  }
  are_states_checked_ = true;
}

void Executable::check_input_size(size_t i, uint64_t size) const {
  if (size >= input_type(i).bytes()) return;
  fail(Code::kInvalidArgument, "[executable_run] input {} (\"{}\") is {} ({} bytes), got {} bytes",
       i, graph_.value(graph_.inputs()[i]).name, to_string(input_type(i)), input_type(i).bytes(),
       size);
}

void Executable::check_output_size(size_t i, uint64_t size) const {
  if (size >= output_type(i).bytes()) return;
  fail(Code::kInvalidArgument, "[executable_run] output {} is {} ({} bytes), got {} bytes", i,
       to_string(output_type(i)), output_type(i).bytes(), size);
}

void Executable::check_bindings(const std::vector<BufferPtr>& bindings) const {
  const size_t input_count = input_slots_.size();
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (bindings[i]->device() == device_) continue;
    fail(Code::kInvalidArgument, "[executable_run] {} {}: buffer of another device",
         i < input_count ? "input" : "output", i < input_count ? i : i - input_count);
  }
  for (size_t i = input_count; i < bindings.size(); ++i) {
    const auto is_met_by = [&](const BufferPtr& other) { return bindings[i]->overlaps(*other); };
    const bool is_bound_twice = std::count_if(bindings.begin(), bindings.end(), is_met_by) > 1;
    const bool is_state = std::any_of(bound_.begin(), bound_.end(), is_met_by);
    if (!is_bound_twice && !is_state) continue;
    fail(Code::kInvalidArgument, "[executable_run] the buffer of output {} is also {}",
         i - input_count, is_state ? "a state" : "another input or output");
  }
}

Executable::Busy::Busy(Executable& executable) : executable_(executable) {
  if (executable_.is_busy_.exchange(true)) {
    fail(Code::kFailedPrecondition, "[executable_run] a run of this executable is in progress");
  }
}

}  // namespace ballast::graph
