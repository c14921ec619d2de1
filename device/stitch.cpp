#include "device/stitch.h"

#include "device/kernel.h"
#include "device/stitch_program.h"
#include "device/stitch_source.h"
#include "device/stream_state.h"

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

}  // namespace

uint32_t stitch_workers(const DeviceInfo& info) { return info.is_pocl() ? info.compute_units : 1; }

struct Stitched::Impl {
  DevicePtr device;
  Kernel kernel;
  std::vector<BufferPtr> statics;
  size_t binding_count = 0;
  uint64_t calls_per_step = 0;
  uint32_t workers = 1;
  // With workers: the statics' addresses, those of them that are to be asked for again, the words
  // by which the workers take turns, and the number of the next call.
  BufferPtr addresses, turn;
  std::vector<bool> is_stale;
  bool is_fresh = true;
  uint64_t next_call = 0;

  bool has_workers() const { return workers > 1; }
  // Of the first binding.
  cl_uint first_parameter() const {
    return static_cast<cl_uint>(has_workers() ? 3 : statics.size());
  }

  void set_statics() {
    for (cl_uint i = 0; i < statics.size() && !has_workers(); ++i) {
      kernel.set_buffer(i, *statics[i]);
    }
  }

  void prepare_workers(Stream& stream) {
    constexpr uint64_t kZero = 0;
    if (std::exchange(is_fresh, false)) {
      stream.fill(*turn, 0, turn->size(), &kZero, sizeof(kZero));
    }
    for (uint64_t i = 0; i < statics.size(); ++i) {
      if (!is_stale[i]) continue;
      Buffer* const buffers[] = {addresses.get(), statics[i].get()};
      stream.submit(ask_address(i), buffers, 2);
      is_stale[i] = false;
    }
    kernel.set_buffer(0, *addresses);
    kernel.set_buffer(1, *turn);
    kernel.set_scalar(2, &next_call, sizeof(next_call));
  }
};

Stitched::Stitched(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Stitched::~Stitched() = default;

std::unique_ptr<Stitched> Stitched::make(const DevicePtr& device, const CommandList& list,
                                         size_t binding_count, uint32_t workers, std::string* why) {
  constexpr size_t kOtherParameters = 4, kTurnBytes = 128;
  try {
    const StitchProgram program = write_stitched(list, binding_count, workers > 1);
    const size_t count = program.statics.size();
    if (8 * ((workers > 1 ? 3 : count) + 3 * binding_count + kOtherParameters) >
        device_value<size_t>(device->id(), CL_DEVICE_MAX_PARAMETER_SIZE)) {
      throw StitchRefusal{fmt::format("{} buffers are more than a kernel of this device takes",
                                      count + binding_count)};
    }
    const SourcePtr source = make_source(program.text, program.options);
    auto impl =
        std::make_unique<Impl>(Impl{device, Kernel(device->make_kernel(source, kStitchedEntry)),
                                    program.statics, binding_count, program.call_count, workers});
    if (impl->has_workers()) {
      impl->addresses = Buffer::create(device, sizeof(uint64_t) * std::max<size_t>(count, 1));
      impl->turn = Buffer::create(device, kTurnBytes);
      impl->is_stale.resize(count, true);
    }
    impl->set_statics();
    const auto local = static_cast<cl_uint>(impl->first_parameter() + 3 * binding_count);
    cl_check(clSetKernelArg(impl->kernel.get(), local, program.local_bytes, nullptr),
             "clSetKernelArg");
    return std::unique_ptr<Stitched>(new Stitched(std::move(impl)));
  } catch (const StitchRefusal& refusal) {
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
  cl_uint index = impl_->first_parameter();
  for (size_t i = 0; i < bindings.size(); ++i) {
    const StitchBinding& binding = bindings[i];
    if (binding.buffer == nullptr || binding.slots == 0) {
      fail(Code::kInvalidArgument, "[stitch] binding {} has no memory or no slots", i);
    }
    stream.use(*binding.buffer);
    impl_->kernel.set_buffer(index++, *binding.buffer);
    impl_->kernel.set_scalar(index++, &binding.stride, sizeof(binding.stride));
    impl_->kernel.set_scalar(index++, &binding.slots, sizeof(binding.slots));
  }
  for (const BufferPtr& buffer : impl_->statics) stream.use(*buffer);
  if (impl_->has_workers()) impl_->prepare_workers(stream);
  const uint64_t backward = steps.is_backward ? 1 : 0;
  for (const uint64_t* value : {&steps.first, &steps.count, &backward}) {
    impl_->kernel.set_scalar(++index, value, sizeof(*value));  // behind the local memory
  }
  const size_t one = 1, groups = impl_->workers;
  const auto lock = stream.state().lock_queue();
  cl_event event = nullptr;
  const cl_int code = clEnqueueNDRangeKernel(stream.queue(), impl_->kernel.get(), 1, nullptr,
                                             &groups, &one, 0, nullptr, &event);
  stream.end(code, "clEnqueueNDRangeKernel", event, "stitched");
  impl_->next_call += steps.count * impl_->calls_per_step;
  impl_->device->counters().kernel_launches.fetch_add(1, std::memory_order_relaxed);
}

void Stitched::rebind(const Buffer* from, const BufferPtr& to) {
  for (size_t i = 0; i < impl_->statics.size(); ++i) {
    if (impl_->statics[i].get() != from) continue;
    impl_->statics[i] = to;
    if (impl_->has_workers()) impl_->is_stale[i] = true;
  }
  impl_->set_statics();
}

}  // namespace ballast::device
