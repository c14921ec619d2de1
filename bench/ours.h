// Ballast's side of a case: an op, prepared as eager mode does, or a compiled graph, on device
// buffers that are reused. What is timed is the submission of n runs and the wait for the
// last, which is what a caller of the plugin pays; or n steps of a sink.
#pragma once

#include "bench/case.h"
#include "device/stream.h"
#include "graph/executable.h"
#include "graph/op.h"

#include <memory>
#include <string>
#include <vector>

namespace ballast::bench {

// The device under test ($BALLAST_DEVICE), opened at the first call.
const device::DevicePtr& device();
// Before that call: whatever it is, it counts as a GPU.
void open_as_gpu();

class Ours {
 public:
  // Throws device::Error: kNotFound where the registry lacks the op.
  static std::unique_ptr<Ours> of_op(const Case& c);
  static std::unique_ptr<Ours> of_graph(const Case& c, const std::vector<Step>& steps,
                                        graph::Level level);
  // The case as a graph whose steps are sunk: on a CPU stitched, so that none is launched on its
  // own. Throws kUnimplemented where the device or the kernels do not allow it. On a GPU, where a
  // stitched kernel would be one work-item's, as a graph chooses by itself.
  static std::unique_ptr<Ours> sunk(const Case& c);
  virtual ~Ours() = default;

  // Seconds of `count` runs.
  double run(int count);
  std::vector<Checksum> check();
  const std::vector<graph::TensorType>& outputs() const { return output_types_; }
  uint64_t input_bytes() const;
  uint64_t output_bytes() const;

 protected:
  explicit Ours(const Case& c);
  void allocate(std::vector<graph::TensorType> outputs);
  virtual void submit(int count) = 0;

  std::vector<graph::TensorType> input_types_, output_types_;
  std::vector<device::BufferPtr> inputs_, outputs_;
};

}  // namespace ballast::bench
