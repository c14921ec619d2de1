// The workspace of a plan while it is made: regions one after the other, each with a slot of its
// own behind that of the whole. A plain value.
#pragma once

#include "kernels/plan/plan.h"

#include <vector>

namespace ballast::kernels {

class Workspace {
 public:
  // `slot`: of the whole workspace, behind the inputs and outputs.
  explicit Workspace(uint32_t slot) : slot_(slot) {}

  // A new region, of a byte at least; returns its slot.
  uint32_t add(uint64_t bytes) {
    const uint64_t offset = bytes_;
    bytes_ += (bytes == 0 ? 1 : ceil_div(bytes, kRegionAlignment)) * kRegionAlignment;
    return add_part(offset, bytes);
  }
  uint32_t add_floats(int64_t elements) {
    return add(static_cast<uint64_t>(elements) * sizeof(float));
  }
  // A slot for a part of a region.
  uint32_t add_part(uint64_t offset, uint64_t bytes) {
    regions_.push_back({offset, bytes});
    return slot_ + static_cast<uint32_t>(regions_.size());
  }

  uint64_t bytes() const { return bytes_; }
  const std::vector<Region>& regions() const { return regions_; }

 private:
  uint32_t slot_;
  uint64_t bytes_ = 0;
  std::vector<Region> regions_;
};

}  // namespace ballast::kernels
