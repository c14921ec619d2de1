// What the host does within a run, between command lists: effects (graph/effect.h), and control
// flow: a cond, while or scan whose regions are executables of their own.
//
// The host decides, on the stream of the run around it and within that one call: a cond reads its
// predicate, a while its condition after every step (both wait for the device); a scan runs the
// sink over its body, with xs and ys as queues, and waits for nothing. What loops carry are states
// of their body: copied in, updated in place, copied out.
#pragma once

#include "graph/executable.h"

#include <memory>
#include <vector>

namespace ballast::graph {

// Whether the node is a while or a scan, or one lies in its regions.
bool has_loop(const Node& node);

class Control {
 public:
  // What a node's regions add to the executable around it.
  struct Cost {
    uint64_t launches = 0;  // a scan's of all its steps, a while's of one, a cond's of its longer
    uint64_t submits = 0;   // branch
    uint64_t arena_bytes = 0, naive_bytes = 0, lower_bound_bytes = 0, constant_bytes = 0;
  };

  // `operands`: the inputs, then the outputs of `node`, one of the graph's.
  static std::unique_ptr<Control> make(const device::DevicePtr& device, const Graph& graph,
                                       const Node& node, std::vector<device::Operand> operands,
                                       const CompileOptions& options);
  virtual ~Control() = default;
  Control(const Control&) = delete;

  // `bindings` as of CommandList::replay.
  virtual void run(device::Stream& stream, const std::vector<device::BufferPtr>& bindings,
                   const CancelFlag* is_cancelled) = 0;
  virtual Cost cost() const = 0;
  // Replaces a static buffer.
  void rebind(const device::Buffer* from, const device::BufferPtr& to);

 protected:
  explicit Control(std::vector<device::Operand> operands) : operands_(std::move(operands)) {}
  const device::BufferPtr& at(size_t operand,
                              const std::vector<device::BufferPtr>& bindings) const {
    const device::Operand& found = operands_[operand];
    return found.buffer ? found.buffer : bindings[found.binding];
  }

 private:
  std::vector<device::Operand> operands_;
};

}  // namespace ballast::graph
