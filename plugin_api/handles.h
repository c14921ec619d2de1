// Opaque handles of the ABI <-> shared C++ objects.
//
// A handle is not an address: it encodes kind, slot and generation, so a stale, foreign or made-up
// handle is found out without touching memory it may point to. Each handle counts its references;
// the object behind it also lives while other objects hold it. Thread-safe.
#pragma once

#include "device/error.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ballast::plugin_api {

// Live handles of all kinds, for plugin_shutdown.
std::atomic<int64_t>& live_handles();

// `Handle` is the ABI's incomplete struct, `Object` what it stands for, `kKind` 1 to 15.
template <class Handle, class Object, uint64_t kKind>
class HandleTable {
 public:
  static HandleTable& instance() {
    static auto* table = new HandleTable;  // outlives every static destructor that may release
    return *table;
  }

  Handle* add(std::shared_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.push_back(slots_.size());
      slots_.emplace_back();
    }
    const uint64_t index = free_.back();
    free_.pop_back();
    Slot& slot = slots_[index];
    slot.object = std::move(object);
    slot.references = 1;
    ++live_handles();
    return encode(index, slot.generation);
  }

  // Throws kInvalidArgument naming `what` for anything but a live handle of this kind.
  std::shared_ptr<Object> get(const Handle* handle, const char* what) {
    const std::lock_guard lock(mutex_);
    return find(handle, what).object;
  }

  // The same for `count` handles at once.
  void get_all(Handle* const* handles, uint64_t count, const char* what,
               std::shared_ptr<Object>* objects) {
    if (count > 0 && handles == nullptr) {
      device::fail(device::Code::kInvalidArgument, "the array of {}s is NULL", what);
    }
    const std::lock_guard lock(mutex_);
    for (uint64_t i = 0; i < count; ++i) objects[i] = find(handles[i], what).object;
  }

  void retain(const Handle* handle, const char* what) {
    const std::lock_guard lock(mutex_);
    ++find(handle, what).references;
  }

  void release(const Handle* handle, const char* what) {
    std::shared_ptr<Object> last;  // declared before the lock: destroyed after it is given up
    const std::lock_guard lock(mutex_);
    Slot& slot = find(handle, what);
    if (--slot.references > 0) return;
    last = std::move(slot.object);
    slot.object.reset();
    ++slot.generation;
    free_.push_back(index_of(handle));
    --live_handles();
  }

 private:
  struct Slot {
    std::shared_ptr<Object> object;
    uint32_t generation = 1;
    uint32_t references = 0;
  };

  static Handle* encode(uint64_t index, uint32_t generation) {
    return reinterpret_cast<Handle*>((uint64_t{generation} << 32) | (index << 4) | kKind);
  }
  static uint64_t bits(const Handle* handle) { return reinterpret_cast<uint64_t>(handle); }
  static uint64_t index_of(const Handle* handle) { return (bits(handle) & 0xffffffff) >> 4; }

  Slot& find(const Handle* handle, const char* what) {
    using device::Code;
    if (handle == nullptr) device::fail(Code::kInvalidArgument, "{} is NULL", what);
    const uint64_t index = index_of(handle);
    if ((bits(handle) & 15) != kKind || index >= slots_.size()) {
      device::fail(Code::kInvalidArgument, "{} is not a handle of this kind", what);
    }
    Slot& slot = slots_[index];
    if (!slot.object || slot.generation != bits(handle) >> 32) {
      device::fail(Code::kInvalidArgument, "{} has been released", what);
    }
    return slot;
  }

  std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<uint64_t> free_;
};

}  // namespace ballast::plugin_api
