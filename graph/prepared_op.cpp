#include "graph/prepared_op.h"

#include "device/short_array.h"
#include "graph/effect.h"
#include "kernels/plan/tune.h"

namespace ballast::graph {

namespace {

Plan tuned_plan(const device::DevicePtr& device, const OpCall& call,
                const std::vector<TensorType>& outputs) {
  if (call.op->effect) return {};
  const kernels::TuningScope tuning(device);
  Plan plan = make_plan(device->info().device_class, call, outputs);
  for (device::Launch& launch : plan.launches) launch.serial = device::next_serial();
  return plan;
}

}  // namespace

using device::Buffer;
using device::BufferPtr;
using device::Code;
using device::fail;

PreparedOp::PreparedOp(device::DevicePtr device, OpCall call)
    : device_(std::move(device)),
      call_(std::move(call)),
      outputs_(infer(call_)),
      plan_(tuned_plan(device_, call_, outputs_)) {}

void PreparedOp::check_operand(size_t i, const Buffer& buffer) const {
  const size_t input_count = call_.inputs.size();
  const bool is_input = i < input_count;
  const bool is_output = !is_input && i < input_count + outputs_.size();
  const uint64_t needed = is_input    ? call_.inputs[i].bytes()
                          : is_output ? outputs_[i - input_count].bytes()
                                      : plan_.workspace_bytes;
  if (buffer.size() < needed) {
    fail(Code::kInvalidArgument, "[{}] {} {} needs {} bytes, its buffer has {}", call_.op->name,
         is_input    ? "input"
         : is_output ? "output"
                     : "workspace",
         is_input    ? i
         : is_output ? i - input_count
                     : 0,
         needed, buffer.size());
  }
  if (buffer.device() != device_) {
    fail(Code::kInvalidArgument, "[{}] operand {} is on another device", call_.op->name, i);
  }
}

void PreparedOp::launch(device::Stream& stream, const BufferPtr* buffers, size_t count) const {
  for (size_t i = 0; i < count; ++i) check_operand(i, *buffers[i]);
  if (call_.op->effect) return run_effect(stream, call_, buffers);
  device::ShortArray<Buffer*, 16> operands(count + plan_.regions.size());
  Buffer** next = operands.data();
  for (size_t i = 0; i < count; ++i) *next++ = buffers[i].get();
  std::vector<BufferPtr> views;
  for (const kernels::Region& region : plan_.regions) {
    views.push_back(Buffer::view(buffers[count - 1], region.offset, region.bytes));
    *next++ = views.back().get();
  }
  for (const device::Launch& launch : plan_.launches) {
    stream.submit(launch, operands.data(), operands.size());
  }
}

std::vector<std::vector<uint8_t>> evaluate_on(
    const device::DevicePtr& device, const OpCall& call,
    const std::vector<const std::vector<uint8_t>*>& inputs) {
  const PreparedOp op(device, call);
  device::Stream& stream = device->default_stream();
  std::vector<BufferPtr> owned;
  for (const auto* data : inputs) {
    owned.push_back(Buffer::create(device, data->size()));
    stream.write(*owned.back(), 0, data->data(), data->size());
  }
  for (const TensorType& type : op.outputs()) owned.push_back(Buffer::create(device, type.bytes()));
  const size_t results = owned.size() - op.outputs().size();
  if (op.plan().workspace_bytes > 0) {
    owned.push_back(Buffer::create(device, op.plan().workspace_bytes));
  }
  op.launch(stream, owned.data(), owned.size());
  std::vector<std::vector<uint8_t>> data;
  for (size_t i = 0; i < op.outputs().size(); ++i) {
    data.emplace_back(op.outputs()[i].bytes());
    stream.read(data.back().data(), *owned[results + i], 0, data.back().size());
  }
  return data;
}

}  // namespace ballast::graph
