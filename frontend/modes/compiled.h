// Compiled: a Program lowered to the plugin's graph and made executable. A call is one ABI call: it
// binds arguments (device buffers or host memory) and outputs; parameters stay bound between calls.
// Output buffers are taken from earlier calls once nobody holds them. One call at a time (locked).
#pragma once

#include "frontend/backend/binding.h"
#include "frontend/modes/cancellation.h"
#include "frontend/modes/context.h"
#include "frontend/modes/donation.h"
#include "frontend/program/program.h"

#include <ballast/graph.h>
#include <ballast/sink.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ballast {

enum class Replay : int32_t { kAuto = 1, kList = 2, kNative = 3, kStitch = 4 };  // BALLAST_REPLAY_*

struct JitOptions {
  std::optional<JitLevel> level;  // unset: default_jit_level()
  Replay replay = Replay::kAuto;
  // Numbers of the arguments whose memory a call may take (donation.h). None of them may be a
  // parameter, given twice in one call, or closed over.
  std::vector<size_t> donate = {};
};
// jit(f, donate({0})): JAX's donate_argnums.
inline JitOptions donate(std::vector<size_t> arguments) {
  JitOptions options;
  options.donate = std::move(arguments);
  return options;
}

struct CompiledInfo {
  uint64_t launch_count = 0;       // kernels per run, before stitching
  uint64_t submit_count = 0;       // enqueues per run
  uint64_t node_count = 0;         // after the passes
  uint64_t arena_bytes = 0;        // planned memory for temporaries
  uint64_t naive_bytes = 0;        // each temporary with memory of its own
  uint64_t lower_bound_bytes = 0;  // largest sum of temporaries alive at once
  uint64_t constant_bytes = 0;
  uint64_t donated_bytes = 0;     // of the outputs that are written into donated arguments
  uint64_t sink_allocations = 0;  // made during sink runs
  double sink_submits_per_step = 0;
  Replay replay = Replay::kAuto;
  JitLevel level = JitLevel::kO1;
  std::string text;  // the optimized graph
};

// One argument of a sunk run: a tensor per step along the leading axis, or one for all steps.
struct Queue {
  Tensor data;
  bool is_stacked = true;

  TensorType step_type() const;
};
inline Queue each(Tensor stacked) { return {std::move(stacked), true}; }
inline Queue repeat(Tensor tensor) { return {std::move(tensor), false}; }

class Compiled {
 public:
  // options.donate is ignored: `donated` says which leaves are, their outputs still to be chosen.
  Compiled(Program program, const JitOptions& options, std::vector<Donated> donated = {});
  ~Compiled();

  // `where`: the call that errors about what it donates name.
  std::vector<Tensor> run(const std::vector<Tensor>& arguments, const Where& where = {});
  // n steps in one ABI call; outputs are stacked: [n, ...]. Stopped, it throws BALLAST_CANCELLED,
  // and parameters have the values of the last whole step.
  std::vector<Tensor> run_sink(uint64_t n, const std::vector<Queue>& queues,
                               Cancellation& cancellation);

  const Program& program() const { return program_; }
  const std::vector<Donated>& donated() const { return donated_; }
  CompiledInfo info();

 private:
  struct State;  // a parameter, and the buffer that is bound for it
  struct Output;
  void bind_state(State& state, size_t index, const BufferPtr& buffer);
  class StatesInUse;
  void bind_states();
  void release_states();
  void bind_inputs(const std::vector<Tensor>& arguments);
  std::vector<BufferPtr> bind_donated(const std::vector<Tensor>& arguments);
  void ensure_sink(uint64_t slots);
  void release_sink();
  BufferPtr take_output(Output& output, uint64_t n);

  Program program_;
  JitOptions options_;
  std::shared_ptr<Device> device_;
  std::mutex mutex_;
  ballast_executable* executable_ = nullptr;
  ballast_sink* sink_ = nullptr;
  uint64_t sink_slots_ = 0;
  std::vector<Donated> donated_;
  std::vector<State> donated_states_;  // of those that have an output; they come first
  std::vector<State> states_;
  std::vector<BufferPtr> states_in_use_;  // of those that are bound for the call in progress
  std::vector<Output> outputs_;
  // What one run binds; members, so that a run needs no memory for it.
  InputBindings<ballast_binding> input_bindings_;
  std::vector<ballast_binding> output_bindings_;
};

}  // namespace ballast
