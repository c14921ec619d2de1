// A kernel launch as a value. Eager, recorded and sunk execution all pass this one type.
//
// A launch is written against operand *slots*: the recipe of an op numbers its buffers (inputs,
// then outputs, then workspace). Binding slots to memory happens where the launch is submitted
// (Stream::submit) or recorded (CommandList::append).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ballast::device {

// OpenCL C source and what to pass to its compiler. Shared by all launches of its kernels;
// `id` is a content hash, the key of every program table.
struct Source {
  std::string text;
  std::string options;
  std::string id;
  bool packs_scalars = false;  // see packed_scalars.h
};
using SourcePtr = std::shared_ptr<const Source>;

// Makes a Source with its id filled in.
SourcePtr make_source(std::string text, std::string options = {}, bool packs_scalars = false);

struct Arg {
  enum class Kind : uint8_t { kBuffer, kScalar, kLocal };
  Kind kind = Kind::kScalar;
  uint8_t size = 0;   // kScalar: bytes used of `bits`
  uint32_t slot = 0;  // kBuffer
  uint64_t bits = 0;  // kScalar: the value; kLocal: bytes of __local memory
};

struct Launch {
  SourcePtr source;
  std::string kernel;                       // entry point in source
  std::string label;                        // what profiles show, e.g. "matmul_f32"
  std::array<uint64_t, 3> global{1, 1, 1};  // work-items
  std::array<uint64_t, 3> local{1, 1, 1};
  std::vector<Arg> args;
  // What it goes over, an element counted as often as it is an operand's; 0: not known.
  uint64_t bytes = 0;
  // Not 0: names what the launch runs and its scalars for ever, so that they need not be compared
  // again. To be given only to a launch that is never changed.
  uint64_t serial = 0;
};

}  // namespace ballast::device
