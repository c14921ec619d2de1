// The text of a stitched kernel: the functions that a list's kernels have become, and their calls.
//
// Two forms. Of a small list one work-item makes all calls, written one after the other. Of a
// larger one several *workers* (work-groups) go through a table of calls together: of each call
// they take groups until none is left, and begin the next call when all of its groups are done. A
// worker waits only for groups that another one is running, so any number of workers may be running
// at a time: where the device runs one work-group after the other, the first does everything.
#pragma once

#include "device/command_list.h"

#include <string>
#include <vector>

namespace ballast::device {

struct StitchProgram {
  std::string text, options;
  std::vector<BufferPtr> statics;  // the list's static buffers, each once
  uint64_t local_bytes = 64;       // none at all is no argument
  uint64_t call_count = 0;         // of a step
};

constexpr const char* kStitchedEntry = "ballast_stitched";

// The kernel's parameters: the static buffers (with workers: their addresses, the words by which
// workers take turns, the number of the first call); buffer, stride and slots of each binding;
// local memory; the first step, the steps, and whether they run backward. Throws TextRefusal.
StitchProgram write_stitched(const CommandList& list, size_t binding_count, bool has_workers);

}  // namespace ballast::device
