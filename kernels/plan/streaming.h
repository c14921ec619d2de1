// Which results a CPU writes past its caches. A store that misses them reads its line first, and
// whoever comes next finds little of a large result there. Plain functions; any thread.
#pragma once

#include "device/device.h"

#include <cstdint>

namespace ballast::kernels {

// Results of so many bytes may go past the caches, which would have kept little of them; those that
// hold nothing else up wait for twice as many.
constexpr int64_t kStreamedBytes = 4 << 20, kStreamedRowsBytes = 2 * kStreamedBytes;

// Elements of 4 bytes in a page of 4 KiB: rows a multiple of it apart begin in one set of the first
// cache.
constexpr int64_t kPageElements = 1024;

// Whether dense lines of `length` 4-byte elements may be written past the caches: they are whole
// cache lines, and `least_bytes` of them.
bool should_stream(device::DeviceClass device_class, int64_t lines, int64_t length,
                   int64_t least_bytes);

// How many bytes, read and written, a launch may pass over for its results to be worth keeping in
// this machine's last cache all the same; 0 where that is hardly faster than memory.
int64_t last_cache_bytes();

// Moves, which read as much as they write, stream results of so many bytes.
int64_t streamed_move_bytes();

}  // namespace ballast::kernels
