#include "graph/effect.h"

namespace ballast::graph {

TensorType token_type() { return {DType::kU8, {0}}; }

bool has_effect(const Node& node) {
  return any_within(node, [](const Node& n) { return n.op->effect != nullptr; });
}

bool runs_on_host(const Node& node) { return !node.regions.empty() || node.op->effect; }

void run_effect(device::Stream& stream, const OpCall& call, const device::BufferPtr* buffers) {
  std::vector<std::vector<uint8_t>> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    inputs.emplace_back(call.inputs[i].bytes());
    stream.read(inputs.back().data(), *buffers[i], 0, inputs.back().size());
  }
  call.op->effect(call, inputs);
}

}  // namespace ballast::graph
