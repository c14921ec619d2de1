// One op prepared for a device: types inferred, kernels chosen. Immutable; any thread may launch
// it.
#pragma once

#include "device/stream.h"
#include "graph/op.h"

namespace ballast::graph {

class PreparedOp {
 public:
  PreparedOp(device::DevicePtr device, OpCall call);

  const device::DevicePtr& device() const { return device_; }
  const OpCall& call() const { return call_; }
  const std::vector<TensorType>& outputs() const { return outputs_; }
  const Plan& plan() const { return plan_; }

  // `buffers`: inputs, outputs, then the workspace if plan().workspace_bytes > 0. Checks sizes.
  void launch(device::Stream& stream, const device::BufferPtr* buffers, size_t count) const;

 private:
  void check_operand(size_t i, const device::Buffer& buffer) const;

  device::DevicePtr device_;
  OpCall call_;
  std::vector<TensorType> outputs_;
  Plan plan_;
};

// Runs one call on host data and waits: inputs' bytes in, outputs' bytes back.
std::vector<std::vector<uint8_t>> evaluate_on(
    const device::DevicePtr& device, const OpCall& call,
    const std::vector<const std::vector<uint8_t>*>& inputs);

}  // namespace ballast::graph
