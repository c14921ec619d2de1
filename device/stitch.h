// Level 3 of the sink: all launches of a small command list become one OpenCL kernel that loops
// over the steps by itself, for graphs whose work per step is smaller than the launches around it.
//
// Works on the text of the recorded kernels: each becomes a plain function whose group ids are loop
// variables, called in recorded order by one work-item. Binding pointers advance per step.
// Keeps the static buffers alive. One thread at a time.
#pragma once

#include "device/command_list.h"

namespace ballast::device {

// A binding's memory: `slots` elements of `stride` bytes; step i uses slot i % slots, or counted
// from the last one on in a backward run.
struct StitchBinding {
  Buffer* buffer = nullptr;
  uint64_t stride = 0;
  uint64_t slots = 1;
};

class Stitched {
 public:
  // nullptr where the list cannot be stitched (copies, work-groups of several items with local
  // memory or barriers, a source it cannot parse or the driver does not compile); `why` then says
  // so. The list may be destroyed afterwards.
  static std::unique_ptr<Stitched> make(const DevicePtr& device, const CommandList& list,
                                        size_t binding_count, std::string* why);
  ~Stitched();

  // One enqueue that runs steps [0, n).
  void run(Stream& stream, const std::vector<StitchBinding>& bindings, uint64_t n_steps,
           bool is_backward = false);
  void rebind(const Buffer* from, const BufferPtr& to);

 private:
  struct Impl;
  explicit Stitched(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ballast::device
