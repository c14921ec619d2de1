// A compiled graph on one device: memory planned, kernels built, commands recorded.
//
// Owns its arena, constants and staging memory; retains the state buffers bound to it. One run at a
// time ([S] in the ABI); a second one at once is refused.
#pragma once

#include "device/command_list.h"
#include "device/stitch.h"
#include "graph/compile.h"
#include "graph/memory_plan.h"

#include <atomic>
#include <memory>

namespace ballast::graph {

class Control;

// Set by another thread: a run stops before the next iteration of a loop, with kCancelled.
using CancelFlag = std::atomic<bool>;

struct CompileOptions {
  Level level = Level::kO1;
  device::Replay replay = device::Replay::kAuto;
};

// A run's input: a device buffer, or host memory that is staged before run returns.
struct InputBinding {
  device::BufferPtr buffer;
  const void* host = nullptr;
};

class Executable {
 public:
  Executable(const device::DevicePtr& device, const Graph& graph, const CompileOptions& options);
  ~Executable();

  void bind_state(size_t index, const device::BufferPtr& buffer);
  // outputs[i] null: computed and dropped.
  void run(device::Stream& stream, const std::vector<InputBinding>& inputs,
           const std::vector<device::BufferPtr>& outputs, const CancelFlag* is_cancelled = nullptr);

  const device::DevicePtr& device() const { return device_; }
  const Graph& graph() const { return graph_; }  // after the passes
  const CompileOptions& options() const { return options_; }
  const MemoryPlan& memory() const { return memory_; }  // its sums include regions
  const std::string& text() const { return text_; }
  uint64_t constant_bytes() const { return constant_bytes_; }
  // By all nodes of one run: an estimate of its work.
  uint64_t touched_bytes() const { return touched_bytes_; }
  // Per run; how control flow counts is said at Control::Cost.
  size_t launch_count() const { return launch_count_; }
  size_t submit_count() const { return stitched_ ? 1 : submit_count_; }
  device::Replay replay() const { return stitched_ ? device::Replay::kStitch : list_kind_; }

  const TensorType& input_type(size_t i) const { return graph_.value(graph_.inputs()[i]).type; }
  const TensorType& output_type(size_t i) const { return graph_.value(graph_.outputs()[i]).type; }

  // What the sink builds on.
  void replay(device::Stream& stream, const std::vector<device::BufferPtr>& bindings,
              const CancelFlag* is_cancelled = nullptr);
  // States that a run which stops within a loop may have written already.
  const std::vector<size_t>& early_states() const { return early_states_; }
  const TensorType& state_type(size_t i) const { return graph_.value(graph_.states()[i]).type; }
  const device::BufferPtr& state(size_t i) const { return bound_[i]; }
  device::Stitched* stitched() { return stitched_.get(); }
  // Memory of the executable's own for an input that must be copied, or an output that is dropped.
  const device::BufferPtr& input_slot(size_t i);
  const device::BufferPtr& output_slot(size_t i);
  // Before a run: on another stream than the last one it waits for that, as runs share memory.
  void follow_last_run(device::Stream& stream);
  // Every state has a buffer, and one that the graph updates has it alone.
  void check_states();
  void check_input_size(size_t i, uint64_t size) const;
  void check_output_size(size_t i, uint64_t size) const;
  // `bindings`: inputs, then outputs. All are of this device, and outputs are apart, as they are
  // written while inputs and states are still read.
  void check_bindings(const std::vector<device::BufferPtr>& bindings) const;

  // Marks the executable busy for a scope; throws kFailedPrecondition if it is already.
  class Busy {
   public:
    explicit Busy(Executable& executable);
    ~Busy() { executable_.is_busy_ = false; }
    Busy(const Busy&) = delete;

   private:
    Executable& executable_;
  };

 private:
  // What a run does, in order: launches, or a node that the host runs. None where it is stitched.
  struct Segment {
    std::unique_ptr<device::CommandList> list;
    std::unique_ptr<Control> control;
  };

  void record();
  void record_copies();
  void choose_replay();
  bool pays_to_stitch() const;
  void stitch();
  device::CommandList& open_list();
  void add_control(const Node& node, std::vector<device::Operand> operands);
  device::Operand operand(ValueId id);
  device::BufferPtr arena_view(uint64_t offset, uint64_t size);
  void find_early_states();

  device::DevicePtr device_;
  CompileOptions options_;
  Graph graph_;
  std::string text_;
  MemoryPlan memory_;
  device::BufferPtr arena_;
  std::map<std::pair<uint64_t, uint64_t>, device::BufferPtr> arena_views_;
  std::map<ValueId, device::BufferPtr> constants_;
  uint64_t constant_bytes_ = 0;
  uint64_t touched_bytes_ = 0;
  // What is bound; null until then. Two states that are only read may share memory.
  std::vector<device::BufferPtr> bound_;
  // The same memory as the recordings know it, an object for each state: rebinding looks for that.
  std::vector<device::BufferPtr> states_;
  bool are_states_checked_ = false;
  std::vector<size_t> early_states_;
  std::vector<device::BufferPtr> input_slots_, output_slots_;
  std::vector<Segment> segments_;
  size_t launch_count_ = 0, submit_count_ = 0;
  device::Replay list_kind_ = device::Replay::kList;
  std::unique_ptr<device::Stitched> stitched_;
  std::atomic<bool> is_busy_{false};
  // Of the last run. A stream that is gone has waited for its work.
  std::weak_ptr<device::StreamState> last_stream_;
};

}  // namespace ballast::graph
