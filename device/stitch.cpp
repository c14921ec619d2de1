#include "device/stitch.h"

#include "device/kernel.h"
#include "device/stitch_source.h"
#include "device/stream_state.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace ballast::device {
namespace {

constexpr const char* kEntry = "ballast_stitched";

// A value of `type` from its bits.
std::string literal(const std::string& type, const Arg& arg) {
  static const std::set<std::string> integers = {
      "char",         "uchar",         "short",  "ushort",        "int",
      "uint",         "long",          "ulong",  "unsigned char", "unsigned short",
      "unsigned int", "unsigned long", "size_t", "bool"};
  if (integers.count(type) != 0) return fmt::format("({})0x{:x}UL", type, arg.bits);
  if (type == "float") return fmt::format("as_float(0x{:x}u)", arg.bits);
  if (type == "double") return fmt::format("as_double(0x{:x}UL)", arg.bits);
  if (type == "half") return fmt::format("as_half((ushort)0x{:x})", arg.bits);
  throw StitchRefusal{fmt::format("a scalar of type \"{}\"", type)};
}

class Writer {
 public:
  explicit Writer(size_t binding_count) : binding_count_(binding_count) {}

  void add(const Launch& launch, const std::vector<Operand>& operands) {
    if (options_ && *options_ != launch.source->options) {
      throw StitchRefusal{"sources with different compiler options"};
    }
    options_ = launch.source->options;
    unit_.add(*launch.source);
    const KernelFunction& function = unit_.kernel(*launch.source, launch.kernel);
    if (function.parameters.size() != launch.args.size()) {
      throw StitchRefusal{fmt::format("{} has {} parameters, its launch {} arguments",
                                      launch.kernel, function.parameters.size(),
                                      launch.args.size())};
    }
    const Geometry geometry = geometry_of(launch);
    const bool has_one_item = launch.local == std::array<uint64_t, 3>{1, 1, 1};
    if (function.needs_one_item_groups && !has_one_item) {
      throw StitchRefusal{
          fmt::format("{} has work-groups of several items that share memory", launch.kernel)};
    }
    calls_ += loops(geometry) + function.name + "(_g0, _g1, _g2, _l0, _l1, _l2";
    for (size_t d = 0; d < 3; ++d) calls_ += fmt::format(", {}", geometry.local[d]);
    for (size_t d = 0; d < 3; ++d)
      calls_ += fmt::format(", {}", geometry.global[d] / geometry.local[d]);
    for (size_t i = 0; i < launch.args.size(); ++i) {
      calls_ += ", " + argument(launch.args[i], function.parameters[i], operands);
    }
    calls_ += ");\n";
  }

  // One definition for each distinct static buffer, each binding, local memory, and the steps.
  std::string text() const {
    std::string parameters, locals, advance;
    for (size_t i = 0; i < statics_.size(); ++i) {
      parameters += fmt::format("__global uchar* _s{}, ", i);
    }
    for (size_t i = 0; i < binding_count_; ++i) {
      parameters += fmt::format("__global uchar* _b{0}, ulong _stride{0}, ulong _slots{0}, ", i);
      locals += fmt::format("  ulong _slot{0} = _backward ? _slots{0} - 1 : 0;\n", i);
      advance += fmt::format(
          "    if (_backward) _slot{0} = (_slot{0} == 0 ? _slots{0} : _slot{0}) - 1;\n"
          "    else if (++_slot{0} == _slots{0}) _slot{0} = 0;\n",
          i);
    }
    return fmt::format(
        "{}__kernel void {}({}__local ulong16* _shared, ulong _steps, ulong _backward) {{\n{}  for "
        "(ulong _step = "
        "0; "
        "_step < _steps; ++_step) {{\n{}{}  }}\n}}\n",
        unit_.text(), kEntry, parameters, locals, calls_, advance);
  }

  const std::vector<BufferPtr>& statics() const { return statics_; }
  const std::string& options() const { return *options_; }
  uint64_t local_bytes() const { return local_bytes_; }
  size_t parameter_bytes() const { return 8 * (statics_.size() + 3 * binding_count_ + 3); }

 private:
  static std::string loops(const Geometry& geometry) {
    std::string text = "    ";
    for (const char kind : {'g', 'l'}) {
      for (int d = 2; d >= 0; --d) {
        const size_t n = kind == 'g' ? geometry.global[d] / geometry.local[d] : geometry.local[d];
        text += fmt::format("for (size_t _{0}{1} = 0; _{0}{1} < {2}; ++_{0}{1}) ", kind, d, n);
      }
    }
    return text;
  }

  std::string argument(const Arg& arg, const KernelParameter& parameter,
                       const std::vector<Operand>& operands) {
    if (arg.kind == Arg::Kind::kLocal) {
      local_bytes_ = std::max(local_bytes_, arg.bits);
      return "(__local void*)_shared";
    }
    if (arg.kind == Arg::Kind::kScalar) return literal(parameter.type, arg);
    const Operand& operand = operands[arg.slot];
    if (!operand.buffer) {
      if (operand.binding >= binding_count_) throw StitchRefusal{"a binding that is not declared"};
      return fmt::format("(__global void*)(_b{0} + _slot{0} * _stride{0})", operand.binding);
    }
    auto at = std::find(statics_.begin(), statics_.end(), operand.buffer);
    if (at == statics_.end()) at = statics_.insert(at, operand.buffer);
    return fmt::format("(__global void*)_s{}", at - statics_.begin());
  }

  size_t binding_count_;
  StitchUnit unit_;
  std::string calls_;
  std::vector<BufferPtr> statics_;
  std::optional<std::string> options_;
  uint64_t local_bytes_ = 64;
};

}  // namespace

struct Stitched::Impl {
  DevicePtr device;
  Kernel kernel;
  std::vector<BufferPtr> statics;
  size_t binding_count = 0;

  void set_statics() {
    for (cl_uint i = 0; i < statics.size(); ++i) kernel.set_buffer(i, *statics[i]);
  }
};

Stitched::Stitched(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Stitched::~Stitched() = default;

std::unique_ptr<Stitched> Stitched::make(const DevicePtr& device, const CommandList& list,
                                         size_t binding_count, std::string* why) {
  try {
    if (list.has_copies()) throw StitchRefusal{"the list has copies"};
    if (list.launch_count() == 0) throw StitchRefusal{"the list is empty"};
    Writer writer(binding_count);
    for (size_t i = 0; i < list.launch_count(); ++i)
      writer.add(list.launches()[i], list.operands()[i]);
    if (writer.parameter_bytes() >
        device_value<size_t>(device->id(), CL_DEVICE_MAX_PARAMETER_SIZE)) {
      throw StitchRefusal{fmt::format("{} buffers are more than a kernel of this device takes",
                                      writer.statics().size() + binding_count)};
    }
    auto impl = std::make_unique<Impl>(Impl{
        device, Kernel(device->make_kernel(make_source(writer.text(), writer.options()), kEntry)),
        writer.statics(), binding_count});
    impl->set_statics();
    const auto local = static_cast<cl_uint>(impl->statics.size() + 3 * binding_count);
    cl_check(clSetKernelArg(impl->kernel.get(), local, writer.local_bytes(), nullptr),
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

void Stitched::run(Stream& stream, const std::vector<StitchBinding>& bindings, uint64_t n_steps,
                   bool is_backward) {
  stream.begin();
  if (bindings.size() != impl_->binding_count) {
    fail(Code::kInvalidArgument, "[stitch] {} bindings, the list uses {}", bindings.size(),
         impl_->binding_count);
  }
  if (n_steps == 0) return;
  auto index = static_cast<cl_uint>(impl_->statics.size());
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
  impl_->kernel.set_scalar(index + 1, &n_steps, sizeof(n_steps));
  const uint64_t backward = is_backward ? 1 : 0;
  impl_->kernel.set_scalar(index + 2, &backward, sizeof(backward));
  const size_t one = 1;
  std::lock_guard lock(stream.state().mutex);
  cl_event event = nullptr;
  const cl_int code = clEnqueueNDRangeKernel(stream.queue(), impl_->kernel.get(), 1, nullptr, &one,
                                             &one, 0, nullptr, &event);
  stream.end(code, "clEnqueueNDRangeKernel", event, "stitched");
  impl_->device->counters().kernel_launches.fetch_add(1, std::memory_order_relaxed);
}

void Stitched::rebind(const Buffer* from, const BufferPtr& to) {
  for (BufferPtr& buffer : impl_->statics) {
    if (buffer.get() == from) buffer = to;
  }
  impl_->set_statics();
}

}  // namespace ballast::device
