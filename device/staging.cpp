#include "device/staging.h"

#include <algorithm>
#include <utility>

namespace ballast::device {
namespace {

constexpr uint64_t kMinChunkBytes = 64ull << 10, kMaxChunkBytes = 4ull << 20;
constexpr size_t kMaxChunks = 16;

uint64_t chunk_bytes(uint64_t memory_limit) {
  if (memory_limit == 0) return kMaxChunkBytes;
  return std::clamp(memory_limit / kMaxChunks & ~uint64_t{63}, kMinChunkBytes, kMaxChunkBytes);
}

}  // namespace

Staging::Staging(cl_context context, cl_device_id device, uint64_t memory_limit)
    : context_(context), device_(device), chunk_bytes_(chunk_bytes(memory_limit)) {}

Staging::~Staging() {
  if (!queue_) return;
  for (Chunk& chunk : chunks_) {
    clEnqueueUnmapMemObject(queue_.get(), chunk.mem.get(), chunk.data, 0, nullptr, nullptr);
  }
  clFinish(queue_.get());
}

void* Staging::take(uint64_t size, uint64_t* out_size) {
  if (chunks_.empty() || chunks_[current_].used == chunk_bytes_) next_chunk();
  Chunk& chunk = chunks_[current_];
  void* data = chunk.data + chunk.used;
  *out_size = std::min(size, chunk_bytes_ - chunk.used);
  // Copies start at cache lines.
  chunk.used = std::min(chunk_bytes_, chunk.used + ((*out_size + 63) & ~uint64_t{63}));
  return data;
}

void Staging::set_reader(EventHandle event) { chunks_[current_].reader = std::move(event); }

void Staging::next_chunk() {
  // Chunks are used in turn, so the one after the current is the oldest.
  const size_t oldest = chunks_.empty() ? 0 : (current_ + 1) % chunks_.size();
  const bool is_busy =
      chunks_.empty() || (chunks_[oldest].reader && event_status(chunks_[oldest].reader.get()) > 0);
  if (is_busy && chunks_.size() < kMaxChunks) {
    cl_int code = CL_SUCCESS;
    if (!queue_) {
      queue_.reset(clCreateCommandQueueWithProperties(context_, device_, nullptr, &code));
      cl_check(code, "clCreateCommandQueueWithProperties");
    }
    Chunk chunk;
    chunk.mem.reset(clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                   chunk_bytes_, nullptr, &code));
    cl_check(code, "clCreateBuffer");
    chunk.data =
        static_cast<char*>(clEnqueueMapBuffer(queue_.get(), chunk.mem.get(), CL_TRUE, CL_MAP_WRITE,
                                              0, chunk_bytes_, 0, nullptr, nullptr, &code));
    cl_check(code, "clEnqueueMapBuffer");
    current_ = chunks_.empty() ? 0 : current_ + 1;
    chunks_.insert(chunks_.begin() + current_, std::move(chunk));
    return;
  }
  if (is_busy) {
    const cl_event reader = chunks_[oldest].reader.get();
    clWaitForEvents(1, &reader);  // a failure is found by the stream's next wait
  }
  chunks_[oldest].used = 0;
  chunks_[oldest].reader.reset();
  current_ = oldest;
}

}  // namespace ballast::device
