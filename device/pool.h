// Caching memory pool of one device: best fit with split and merge over large driver blocks.
//
// A Block is a slice of a driver allocation (an OpenCL sub-buffer). Freed blocks are reused in
// stream order: a block used on the device's default stream only can be handed out again at once,
// because everything later runs after it; a block used on other streams waits for their events.
// Thread-safe.
#pragma once

#include "device/cl.h"

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace ballast::device {

struct PoolStats {
  uint64_t in_use = 0, peak_in_use = 0;
  uint64_t reserved = 0, peak_reserved = 0;
  uint64_t largest_free = 0, free_blocks = 0;
  uint64_t driver_allocations = 0, pool_allocations = 0;
  // 1 - largest_free / (reserved - in_use); 0 when nothing is free.
  double fragmentation() const;
};

struct Block;  // pool.cpp

class Pool {
 public:
  // `limit`: bytes the pool may reserve; 0 for none. `alignment`: of every block, a power of two.
  Pool(cl_context context, uint64_t limit, uint64_t alignment);
  ~Pool();
  Pool(const Pool&) = delete;

  // Throws kOutOfDeviceMemory naming the request and the pool's state, after trimming once.
  Block* allocate(uint64_t size);
  // `pending`: events that must be done before the block may be handed out again (may be empty).
  void free(Block* block, std::vector<cl_event> pending);
  // Returns wholly free driver blocks to the driver.
  void trim();
  void reset_peak();
  PoolStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ballast::device
