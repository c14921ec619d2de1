// Recorded launches and copies, frozen once, replayed many times.
//
// Recording fixes each argument to a buffer (static), or to a *binding* that every replay supplies.
// After freeze() a replay allocates nothing on the device: kernel objects exist with their static
// arguments set, and only launches that touch a changed binding are given new arguments.
// The list keeps its static buffers alive. One thread at a time.
//
// Replay kinds:
//   kList    prepared launches enqueued one by one
//   kNative  cl_khr_command_buffer, one recording per combination of bindings, made by prepare() or
//            at the combination's first replay; combinations beyond kMaxNativeRecordings are
//            replayed as kList
//   (stitching many launches into one kernel is device/stitch.h)
#pragma once

#include "device/stream.h"

#include <vector>

namespace ballast::device {

// What a recorded operand stands for.
struct Operand {
  BufferPtr buffer;      // static if set
  uint32_t binding = 0;  // else: index into the bindings of a replay
};

enum class Replay : int { kAuto = 1, kList = 2, kNative = 3, kStitch = 4 };  // the ABI's values

class CommandList {
 public:
  static constexpr size_t kMaxNativeRecordings = 64;

  explicit CommandList(DevicePtr device);
  ~CommandList();  // waits for the replays of native recordings
  CommandList(const CommandList&) = delete;

  // Operand i is the launch's slot i.
  void append(const Launch& launch, std::vector<Operand> operands);
  // Copies the first `size` bytes.
  void append_copy(Operand target, Operand source, uint64_t size);
  // Builds every program (in parallel) and kernel, and chooses: kAuto takes what is fastest on the
  // device; kNative throws kUnimplemented where the device lacks it.
  void freeze(Replay kind);
  Replay kind() const;  // kList or kNative, after freeze

  size_t launch_count() const;
  const std::vector<Launch>& launches() const;
  const std::vector<std::vector<Operand>>& operands() const;
  bool has_copies() const;

  // Replaces a static buffer everywhere (state rebinding); legal after freeze, not during replay.
  void rebind(const Buffer* from, const BufferPtr& to);
  // Makes the native recording of one combination now rather than at its first replay.
  void prepare(const std::vector<BufferPtr>& bindings);
  // Enqueues everything on `stream`; bindings[i] is binding i. Returns the number of enqueues made.
  size_t replay(Stream& stream, const std::vector<BufferPtr>& bindings);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ballast::device
