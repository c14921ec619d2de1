// Puts plans together: one after the other on the same operands, with parts of one workspace
// between them.
#pragma once

#include "kernels/plan/plan.h"
#include "kernels/plan/workspace.h"

#include <utility>
#include <vector>

namespace ballast::kernels {

class PlanBuilder {
 public:
  // `operands`: how many inputs and outputs the whole has; they keep slots 0 and up.
  explicit PlanBuilder(size_t operands) : workspace_(static_cast<uint32_t>(operands)) {}

  // A part of the workspace; returns its slot.
  uint32_t add_region(uint64_t bytes) { return workspace_.add(bytes); }
  uint32_t add_floats(int64_t elements) { return workspace_.add_floats(elements); }
  // `slots[i]` is where operand i of `plan` lies here; its workspace becomes part of this one.
  void append(const Plan& plan, std::vector<uint32_t> slots);
  Plan finish() { return {std::move(launches_), workspace_.bytes(), workspace_.regions()}; }

 private:
  Workspace workspace_;
  std::vector<device::Launch> launches_;
};

}  // namespace ballast::kernels
