// Caching memory pool of one device: best fit with split and merge over large driver blocks; small
// requests have driver blocks of their own.
//
// A Block is a slice of a driver allocation: an OpenCL sub-buffer, or an address in shared virtual
// memory (device/region.h). Freed blocks are reused in
// stream order: a block used on the device's default stream only can be handed out again at once,
// because everything later on that stream runs after it (Buffer::note_use orders other streams
// behind it); a block used on other streams waits for their events. Thread-safe.
#pragma once

#include "device/cl.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace ballast::device {

struct PoolStats {
  uint64_t in_use = 0, peak_in_use = 0;
  uint64_t reserved = 0, peak_reserved = 0;
  uint64_t largest_free = 0, free_blocks = 0;
  uint64_t driver_allocations = 0, pool_allocations = 0;
};

// A slice that the pool handed out. `mem` is kept with the slice while it lies free, so handing out
// the same slice again costs no OpenCL call; `serial` names that cl_mem and is never used twice
// (a cl_mem's address may be). Of shared memory, `shared` is what kernels take, and the serial.
struct Block {
  cl_mem driver = nullptr;
  uint64_t offset = 0, size = 0;
  uint64_t address = 0;    // where it lies in host memory; 0: elsewhere
  char* shared = nullptr;  // where it lies in shared memory; nullptr: it has `mem`
  MemHandle mem;
  uint64_t serial = 0;
  // How much the default stream had submitted when the memory was last freed, or uploaded to.
  uint64_t ordered_after = 0;

  // A part that a view asked for, kept likewise: a GPU's driver takes far longer to make and to
  // release one than to launch a kernel.
  struct Part {
    uint64_t offset = 0, size = 0;
    MemHandle mem;
    uint64_t serial = 0;
  };
  static constexpr size_t kMostParts = 8;
  std::vector<Part> parts;
  // Before it gets another extent.
  void release() {
    mem.reset();
    parts.clear();
  }
};

// A number for a cl_mem, unique in the process.
uint64_t next_serial();
inline uint64_t serial_of(const char* shared) { return reinterpret_cast<uint64_t>(shared); }
MemHandle make_sub_buffer(cl_mem driver, uint64_t offset, uint64_t size);

class Pool {
 public:
  // `limit`: bytes the pool may reserve; 0 for none. `alignment`: of every block, a power of two.
  Pool(cl_context context, uint64_t limit, uint64_t alignment);
  ~Pool();
  Pool(const Pool&) = delete;

  // Throws kOutOfDeviceMemory naming the request and the pool's state, after waiting for pending
  // blocks and trimming once. Zero bytes take the smallest block.
  Block* allocate(uint64_t size);
  // `pending`: events that must be done before the block may be handed out again (may be empty);
  // the pool retains them.
  void free(Block* block, const std::vector<cl_event>& pending);
  // Returns wholly free driver blocks to the driver.
  void trim();
  // `call` ends whatever may still use memory that was freed, before it goes back to the driver.
  void set_before_release(std::function<void()> call);
  void reset_peak();
  PoolStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ballast::device
