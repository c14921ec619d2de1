#include "frontend/backend/spare_buffers.h"

#include "frontend/backend/plugin.h"

namespace ballast {

namespace {

// Above that size a kernel's own time hides what a buffer costs.
constexpr uint64_t kLargest = 64 << 10;
constexpr uint64_t kMostBytes = 1 << 20;  // in all

}  // namespace

void release_buffer(ballast_buffer* buffer) {
  const ballast_api& api = plugin();
  if (ballast_error* error = api.device->buffer_release(buffer)) api.error_destroy(error);
}

ballast_buffer* SpareBuffers::take(uint64_t bytes) {
  if (bytes > kLargest) return nullptr;
  std::lock_guard lock(mutex_);
  const auto found = by_size_.find(bytes);
  if (found == by_size_.end() || found->second.empty()) return nullptr;
  ballast_buffer* buffer = found->second.back();
  found->second.pop_back();
  bytes_ -= bytes;
  return buffer;
}

bool SpareBuffers::keep(ballast_buffer* buffer, uint64_t bytes) {
  if (bytes > kLargest || bytes == 0) return false;
  std::lock_guard lock(mutex_);
  if (bytes_ + bytes > kMostBytes) return false;
  by_size_[bytes].push_back(buffer);
  bytes_ += bytes;
  return true;
}

bool SpareBuffers::release_all() {
  std::unordered_map<uint64_t, std::vector<ballast_buffer*>> released;
  {
    std::lock_guard lock(mutex_);
    released.swap(by_size_);
    bytes_ = 0;
  }
  bool were_any = false;
  for (const auto& [bytes, buffers] : released) {
    for (ballast_buffer* buffer : buffers) release_buffer(buffer);
    were_any |= !buffers.empty();
  }
  return were_any;
}

}  // namespace ballast
