#include "device/stitch.h"

#include "device/stitch_program.h"
#include "device/stitch_source.h"
#include "device/stream.h"

#include <algorithm>
#include <utility>

namespace ballast::device {

namespace {

// addresses[at] = the address of a static buffer. With workers; they are more than a kernel takes
// as parameters, and a CPU's buffers stay where they are.
Launch ask_address(uint64_t at) {
  static const SourcePtr source = make_source(
      "__kernel void ballast_address(__global ulong* addresses, ulong at, __global uchar* buffer) "
      "{ addresses[at] = (ulong)buffer; }");
  return {source,
          "ballast_address",
          "ballast_address",
          {1, 1, 1},
          {1, 1, 1},
          {{Arg::Kind::kBuffer, 0, 0},
           {Arg::Kind::kScalar, sizeof(at), 0, at},
           {Arg::Kind::kBuffer, 0, 1}}};
}

// Launch::bytes of them all.
uint64_t bytes_of(const std::vector<Launch>& launches) {
  uint64_t bytes = 0;
  for (const Launch& launch : launches) {
    if (launch.bytes == 0) return 0;
    bytes += launch.bytes;
  }
  return bytes;
}

}  // namespace

uint32_t stitch_workers(const DeviceInfo& info) { return info.is_pocl() ? info.compute_units : 1; }

struct Stitched::Impl {
  DevicePtr device;
  StitchProgram program;
  uint64_t bytes_per_step = 0;
  size_t binding_count = 0;
  uint32_t workers = 1;
  Launch launch{};                    // its scalars are those of the last run
  std::vector<Buffer*> buffers = {};  // of its slots
  // With workers: the statics' addresses, those of them that are to be asked for again, the words
  // by which the workers take turns, and the number of the next call.
  BufferPtr addresses = nullptr, turn = nullptr;
  std::vector<bool> is_stale = {};
  bool is_fresh = true;
  uint64_t next_call = 0;

  bool has_workers() const { return workers > 1; }

  void add_buffer(Buffer* buffer) {
    launch.args.push_back({Arg::Kind::kBuffer, 0, static_cast<uint32_t>(buffers.size()), 0});
    buffers.push_back(buffer);
  }
  void add_word() { launch.args.push_back({Arg::Kind::kScalar, sizeof(uint64_t), 0, 0}); }

  // Arguments as write_stitched says.
  void make_launch() {
    launch.source = make_source(program.text, program.options);
    launch.kernel = kStitchedEntry;
    launch.label = "stitched";
    launch.global[0] = workers;
    if (has_workers()) {
      constexpr size_t kTurnBytes = 128;
      const size_t count = std::max<size_t>(program.statics.size(), 1);
      addresses = Buffer::create(device, sizeof(uint64_t) * count);
      turn = Buffer::create(device, kTurnBytes);
      is_stale.resize(program.statics.size(), true);
      add_buffer(addresses.get());
      add_buffer(turn.get());
      add_word();
    } else {
      for (const BufferPtr& buffer : program.statics) add_buffer(buffer.get());
    }
    for (size_t i = 0; i < binding_count; ++i) {
      add_buffer(nullptr);
      add_word();
      add_word();
    }
    launch.args.push_back({Arg::Kind::kLocal, 0, 0, program.local_bytes});
    for (int i = 0; i < 3; ++i) add_word();
  }

  void set_arguments(const std::vector<StitchBinding>& bindings, const StitchSteps& steps) {
    size_t word = has_workers() ? 2 : program.statics.size();
    if (has_workers()) launch.args[word++].bits = next_call;
    size_t slot = buffers.size() - bindings.size();
    for (const StitchBinding& binding : bindings) {
      buffers[slot++] = binding.buffer;
      launch.args[++word].bits = binding.stride;
      launch.args[++word].bits = binding.slots;
      ++word;
    }
    launch.args[++word].bits = steps.first;
    launch.args[++word].bits = steps.count;
    launch.args[++word].bits = steps.is_backward ? 1 : 0;
    launch.bytes = bytes_per_step * steps.count;
  }

  void prepare_workers(Stream& stream) {
    constexpr uint64_t kZero = 0;
    for (const BufferPtr& buffer : program.statics) stream.use(*buffer);
    if (std::exchange(is_fresh, false)) {
      stream.fill(*turn, 0, turn->size(), &kZero, sizeof(kZero));
    }
    for (uint64_t i = 0; i < program.statics.size(); ++i) {
      if (!is_stale[i]) continue;
      Buffer* const asked[] = {addresses.get(), program.statics[i].get()};
      stream.submit(ask_address(i), asked, 2);
      is_stale[i] = false;
    }
  }
};

Stitched::Stitched(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Stitched::~Stitched() = default;

std::unique_ptr<Stitched> Stitched::make(const DevicePtr& device, const CommandList& list,
                                         size_t binding_count, uint32_t workers, std::string* why) {
  constexpr size_t kOtherParameters = 4;
  try {
    auto impl =
        std::make_unique<Impl>(Impl{device, write_stitched(list, binding_count, workers > 1),
                                    bytes_of(list.launches()), binding_count, workers});
    const size_t count = impl->program.statics.size();
    if (8 * ((workers > 1 ? 3 : count) + 3 * binding_count + kOtherParameters) >
        device_value<size_t>(device->id(), CL_DEVICE_MAX_PARAMETER_SIZE)) {
      throw TextRefusal{fmt::format("{} buffers are more than a kernel of this device takes",
                                      count + binding_count)};
    }
    impl->make_launch();
    device->prepare(impl->launch);
    return std::unique_ptr<Stitched>(new Stitched(std::move(impl)));
  } catch (const TextRefusal& refusal) {
    *why = refusal.why;
  } catch (const Error& error) {
    // The text did not survive the change; the launches themselves still run.
    if (error.code() != Code::kBuildFailed) throw;
    *why = error.what();
  }
  return nullptr;
}

uint32_t Stitched::workers() const { return impl_->workers; }

void Stitched::run(Stream& stream, const std::vector<StitchBinding>& bindings,
                   const StitchSteps& steps) {
  stream.begin();
  if (bindings.size() != impl_->binding_count) {
    fail(Code::kInvalidArgument, "[stitch] {} bindings, the list uses {}", bindings.size(),
         impl_->binding_count);
  }
  if (steps.count == 0) return;
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (bindings[i].buffer == nullptr || bindings[i].slots == 0) {
      fail(Code::kInvalidArgument, "[stitch] binding {} has no memory or no slots", i);
    }
  }
  if (impl_->has_workers()) impl_->prepare_workers(stream);
  impl_->set_arguments(bindings, steps);
  stream.submit(impl_->launch, impl_->buffers.data(), impl_->buffers.size());
  impl_->next_call += steps.count * impl_->program.call_count;
}

void Stitched::rebind(const Buffer* from, const BufferPtr& to) {
  for (size_t i = 0; i < impl_->program.statics.size(); ++i) {
    BufferPtr& buffer = impl_->program.statics[i];
    if (buffer.get() != from) continue;
    buffer = to;
    if (impl_->has_workers())
      impl_->is_stale[i] = true;
    else
      impl_->buffers[i] = to.get();
  }
}

}  // namespace ballast::device
