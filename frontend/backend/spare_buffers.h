// Small buffers of a device that were let go, kept to be handed out again: the result of an eager
// op then costs no call of the plugin. Reuse is ordered by the device's default stream, the only
// one that the frontend uses, as in the plugin's pool. Thread-safe.
#pragma once

#include <ballast/ballast.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace ballast {

// A failure has no one to tell; the plugin has logged it.
void release_buffer(ballast_buffer* buffer);

class SpareBuffers {
 public:
  SpareBuffers() = default;
  SpareBuffers(const SpareBuffers&) = delete;
  SpareBuffers& operator=(const SpareBuffers&) = delete;

  // A kept buffer of just `bytes`, or null.
  ballast_buffer* take(uint64_t bytes);
  // Keeps the buffer, or says that it does not.
  bool keep(ballast_buffer* buffer, uint64_t bytes);
  // Gives them all back to the plugin, whose memory statistics count them as in use. False if there
  // were none.
  bool release_all();

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::vector<ballast_buffer*>> by_size_;
  uint64_t bytes_ = 0;
};

}  // namespace ballast
