#include "device/buffer.h"

#include "device/stream.h"
#include "device/stream_state.h"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>

namespace ballast::device {
namespace {

// The part of the block, from its start on, with its serial; a new one where it was not asked for
// before. Kept with the block, or in `own` where that has many already.
std::pair<cl_mem, uint64_t> part_of(Block& block, uint64_t offset, uint64_t size, MemHandle* own) {
  static std::mutex mutex;  // of all blocks' parts
  std::lock_guard lock(mutex);
  for (const Block::Part& part : block.parts) {
    if (part.offset == offset && part.size == size) return {part.mem.get(), part.serial};
  }
  Block::Part part{offset, size, make_sub_buffer(block.driver, block.offset + offset, size),
                   next_serial()};
  const std::pair<cl_mem, uint64_t> result = {part.mem.get(), part.serial};
  if (block.parts.size() < Block::kMostParts) {
    block.parts.push_back(std::move(part));
  } else {
    *own = std::move(part.mem);
  }
  return result;
}

}  // namespace

BufferPtr Buffer::create(const DevicePtr& device, uint64_t size) {
  device->check_usable();
  auto buffer = std::make_shared<Buffer>(Private{});
  buffer->block_ = device->pool().allocate(size);
  buffer->device_ = device;
  buffer->size_ = size;
  buffer->shared_ = buffer->block_->shared;
  buffer->mem_ = buffer->block_->mem.get();
  buffer->serial_ = buffer->block_->serial;
  return buffer;
}

BufferPtr Buffer::upload(const DevicePtr& device, const void* data, uint64_t size) {
  BufferPtr buffer = create(device, size);
  Stream& main = device->default_stream();
  main.write(*buffer, 0, data, size);
  buffer->block_->ordered_after = main.state().submitted.load();
  return buffer;
}

BufferPtr Buffer::view(const BufferPtr& parent, uint64_t offset, uint64_t size) {
  check_process();
  const uint64_t alignment = parent->device_->info().buffer_alignment;
  if (offset % alignment != 0) {
    fail(Code::kInvalidArgument, "[buffer_view] offset {} is not a multiple of the alignment {}",
         offset, alignment);
  }
  if (offset > parent->size_ || size > parent->size_ - offset) {
    fail(Code::kInvalidArgument,
         "[buffer_view] a range of {} bytes at offset {} exceeds the parent's {} bytes", size,
         offset, parent->size_);
  }
  auto buffer = std::make_shared<Buffer>(Private{});
  buffer->device_ = parent->device_;
  // Views of views refer to the root: OpenCL has no sub-buffers of sub-buffers.
  buffer->parent_ = parent->parent_ ? parent->parent_ : parent;
  buffer->block_ = parent->block_;
  buffer->offset_ = parent->offset_ + offset;
  buffer->size_ = size;
  if (offset == 0 && size == parent->size_) {
    buffer->shared_ = parent->shared_;
    buffer->mem_ = parent->mem_;
    buffer->serial_ = parent->serial_;
    buffer->parent_ = parent;  // whose mem() it shares
    return buffer;
  }
  Block& block = *buffer->block_;
  // It needs a byte, which an empty view at the very end takes from the block's start.
  const uint64_t start = buffer->offset_ < block.size ? buffer->offset_ : 0;
  if (block.shared != nullptr) {
    buffer->shared_ = block.shared + start;
    buffer->serial_ = serial_of(buffer->shared_);
    return buffer;
  }
  std::tie(buffer->mem_, buffer->serial_) =
      part_of(block, start, std::max<uint64_t>(size, 1), &buffer->view_);
  return buffer;
}

bool Buffer::overlap(const Slice& a, const Slice& b) {
  const uint64_t a_start = a.buffer.offset_ + a.offset, b_start = b.buffer.offset_ + b.offset;
  return a.buffer.block_ == b.buffer.block_ && a.size > 0 && b.size > 0 &&
         a_start < b_start + b.size && b_start < a_start + a.size;
}

Buffer::~Buffer() {
  if (parent_ || block_ == nullptr) return;
  std::vector<EventHandle> markers;
  std::vector<cl_event> pending;
  for (const std::weak_ptr<StreamState>& use : foreign_uses_) {
    // A stream that is gone has waited for its work.
    const std::shared_ptr<StreamState> stream = use.lock();
    if (!stream) continue;
    EventHandle end = stream->mark_end();
    if (!end) continue;
    pending.push_back(end.get());
    markers.push_back(std::move(end));
  }
  block_->ordered_after = device_->default_stream().state().submitted.load();
  device_->pool().free(block_, pending);
}

void Buffer::note_use(Stream& stream) {
  if (parent_) return parent_->note_use(stream);
  const std::shared_ptr<StreamState>& state = stream.shared_state();
  std::lock_guard lock(uses_mutex_);
  for (const std::weak_ptr<StreamState>& use : foreign_uses_) {
    if (!use.owner_before(state) && !state.owner_before(use)) return;
  }
  Stream& main = device_->default_stream();
  if (main.state().completed.load() < block_->ordered_after) {
    stream.wait_for(main.marker().get());
  }
  const auto is_gone = [](const std::weak_ptr<StreamState>& use) { return use.expired(); };
  foreign_uses_.erase(std::remove_if(foreign_uses_.begin(), foreign_uses_.end(), is_gone),
                      foreign_uses_.end());
  foreign_uses_.push_back(state);
}

}  // namespace ballast::device
