// Kernels that take their scalars in vectors of 16.
//
// PoCL copies the arguments of every launch, one allocation each, freed by another thread: a kernel
// of 16 arguments takes twice as long to submit as one of 4. So the scalars of 4 bytes (int, uint,
// float) become lanes of int16 parameters that follow the other ones. A Source says that it is to
// be compiled so; its text, and a Launch's list of arguments, stay as they were written.
#pragma once

#include "device/launch.h"

#include <string>
#include <vector>

namespace ballast::device {

constexpr size_t kPackedLanes = 16;

// The text with all of its kernels' parameters packed. Kernels with fewer than two scalars of 4
// bytes are left alone.
std::string pack_scalars(const std::string& text);

// Where a launch's arguments go, by pack_scalars's rule.
struct PackedArguments {
  explicit PackedArguments(const Launch& launch);

  std::vector<uint32_t> indices;  // by argument: of the parameter that takes it or holds it
  std::vector<size_t> packed;     // arguments that are packed, lane after lane
  uint32_t first_vector = 0;      // index of the first int16 parameter
};

}  // namespace ballast::device
