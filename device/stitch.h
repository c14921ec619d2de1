// Level 3 of the sink: all launches of a command list become one OpenCL kernel that loops over the
// steps by itself, for graphs to which launches cost more than a little of their work.
//
// Works on the text of the recorded kernels: each becomes a plain function whose group ids are loop
// variables, called in recorded order, by one work-item or by several (stitch_program.h). Binding
// pointers advance per step.
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

struct StitchSteps {
  uint64_t count = 1, first = 0;  // [first, first + count)
  bool is_backward = false;
};

// How many workers a device is given for a list that is too large for one: PoCL, whose launches
// cost 10 to 20 us, its compute units. 1 elsewhere: Intel's compiler may round a multiply-add of
// the stitched kernel otherwise than the same kernel's alone, so that what may be stitched should
// be little, and a simulator of groups one after the other, word by word, gains nothing.
uint32_t stitch_workers(const DeviceInfo& info);

class Stitched {
 public:
  // `workers`: how many work-groups share the work of each launch. nullptr where the list cannot be
  // stitched (copies, work-groups of several items with local memory or barriers, a source it
  // cannot parse or the driver does not compile); `why` then says so. The list may be destroyed
  // afterwards.
  static std::unique_ptr<Stitched> make(const DevicePtr& device, const CommandList& list,
                                        size_t binding_count, uint32_t workers, std::string* why);
  ~Stitched();

  uint32_t workers() const;
  // One enqueue that runs these steps. (With workers a first or rebound run makes small ones too.)
  void run(Stream& stream, const std::vector<StitchBinding>& bindings, const StitchSteps& steps);
  void rebind(const Buffer* from, const BufferPtr& to);

 private:
  struct Impl;
  explicit Stitched(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ballast::device
