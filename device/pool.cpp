#include "device/pool.h"

#include "device/error.h"
#include "device/region.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <list>
#include <mutex>
#include <set>
#include <utility>

namespace ballast::device {
namespace {

constexpr uint64_t kMinDriverBlock = 8ull << 20;

// Small requests have regions of their own (one huge page): among large ones a number that stays
// would keep a region from going back, or from being whole when all else of it is free.
constexpr uint64_t kSmallRequest = 64ull << 10, kSmallDriverBlock = 2ull << 20;
bool is_small(uint64_t size) { return size <= kSmallRequest; }

struct Region;
struct Slice;

struct BySize {
  using is_transparent = void;
  bool operator()(const Slice* a, const Slice* b) const;
  bool operator()(const Slice* a, uint64_t size) const;
};
using FreeSlices = std::set<Slice*, BySize>;

// One slice of a region. Free neighbours stay apart until a request finds no fit: programs free and
// ask for the same sizes again and again, and an exact fit keeps its sub-buffer.
struct Slice : Block {
  Region* region = nullptr;
  std::list<Slice>::iterator self;
  FreeSlices::node_type place;  // among the free ones, kept while it is none of them
  bool is_free = true;
};

struct Region {
  uint64_t number = 0;  // age, so that equal fits are taken in a fixed order
  uint64_t size = 0;
  uint64_t address = 0;   // as a block's
  bool is_small = false;  // of small requests
  DriverMemory memory;
  std::list<Slice> slices;  // by offset, without gaps
};

bool BySize::operator()(const Slice* a, const Slice* b) const {
  if (a->size != b->size) return a->size < b->size;
  if (a->region != b->region) return a->region->number < b->region->number;
  return a->offset < b->offset;
}
bool BySize::operator()(const Slice* a, uint64_t size) const { return a->size < size; }

struct Pending {
  Slice* slice;
  std::vector<EventHandle> events;
};

}  // namespace

uint64_t next_serial() {
  static std::atomic<uint64_t> serial{0};
  return ++serial;
}

MemHandle make_sub_buffer(cl_mem driver, uint64_t offset, uint64_t size) {
  const cl_buffer_region region{offset, size};
  cl_int code = CL_SUCCESS;
  MemHandle mem(
      clCreateSubBuffer(driver, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code));
  cl_check(code, "clCreateSubBuffer");
  return mem;
}

struct Pool::Impl {
  cl_context context;
  cl_device_id device;
  uint64_t configured_limit;
  uint64_t limit;      // the smaller of the configured one and the device's memory
  uint64_t max_block;  // largest single driver allocation
  uint64_t alignment;
  mutable std::mutex mutex;
  std::list<Region> regions;
  FreeSlices free_large, free_small;  // by their regions
  std::vector<Pending> pending;
  PoolStats stats;
  uint64_t regions_made = 0;
  std::function<void()> before_release;

  FreeSlices& free_slices(bool is_small) { return is_small ? free_small : free_large; }

  void insert_free(Slice& slice) {
    slice.is_free = true;
    FreeSlices& all = free_slices(slice.region->is_small);
    if (slice.place) {
      all.insert(std::move(slice.place));
    } else {
      all.insert(&slice);
    }
  }

  // Moves slices whose events are done to the free set; `wait` for them first.
  void collect_pending(bool wait) {
    auto done = [&](Pending& entry) {
      for (EventHandle& event : entry.events) {
        const cl_event raw = event.get();
        // A failed command has ended too: its stream reports it.
        if (wait)
          clWaitForEvents(1, &raw);
        else if (event_status(raw) > CL_COMPLETE)
          return false;
      }
      insert_free(*entry.slice);
      return true;
    };
    pending.erase(std::remove_if(pending.begin(), pending.end(), done), pending.end());
  }

  // Joins neighbouring free slices everywhere.
  void merge() {
    for (Region& region : regions) {
      FreeSlices& all = free_slices(region.is_small);
      for (auto slice = region.slices.begin(); slice != region.slices.end(); ++slice) {
        if (!slice->is_free) continue;
        auto next = std::next(slice);
        if (next == region.slices.end() || !next->is_free) continue;
        all.erase(&*slice);
        slice->release();
        while (next != region.slices.end() && next->is_free) {
          all.erase(&*next);
          slice->size += next->size;
          slice->ordered_after = std::max(slice->ordered_after, next->ordered_after);
          next = region.slices.erase(next);
        }
        all.insert(&*slice);
      }
    }
  }

  void release_free_regions() {
    merge();
    const auto is_free = [](const Region& region) {
      return region.slices.size() == 1 && region.slices.front().is_free;
    };
    if (before_release && std::any_of(regions.begin(), regions.end(), is_free)) before_release();
    for (auto region = regions.begin(); region != regions.end();) {
      if (is_free(*region)) {
        free_slices(region->is_small).erase(&region->slices.front());
        stats.reserved -= region->size;
        region = regions.erase(region);
      } else {
        ++region;
      }
    }
  }

  // Takes the best fit of the regions of such requests, or of the others, and gives back what is
  // left over; nullptr if nothing fits.
  Slice* take(uint64_t size, bool of_others = false) {
    FreeSlices& all = free_slices(is_small(size) != of_others);
    auto fit = all.lower_bound(size);
    if (fit == all.end()) return nullptr;
    Slice& slice = **fit;
    slice.place = all.extract(fit);
    if (slice.size > size) {
      slice.release();
      add_slice(*slice.region, std::next(slice.self), slice.offset + size, slice.size - size)
          .ordered_after = slice.ordered_after;
      slice.size = size;
    }
    slice.is_free = false;
    return &slice;
  }

  Slice& add_slice(Region& region, std::list<Slice>::iterator before, uint64_t offset,
                   uint64_t size) {
    auto slice = region.slices.emplace(before);
    slice->region = &region;
    slice->driver = region.memory.buffer.get();
    if (region.memory.shared) slice->shared = region.memory.shared.get() + offset;
    slice->self = slice;
    slice->offset = offset;
    slice->size = size;
    slice->address = region.address == 0 ? 0 : region.address + offset;
    insert_free(*slice);
    return *slice;
  }

  bool add_region(uint64_t size, bool is_small) {
    if (size > max_block || stats.reserved > limit || size > limit - stats.reserved) return false;
    DriverMemory memory = make_region(context, device, size);
    if (!memory) return false;
    Region& region = regions.emplace_back();
    region.number = regions_made++;
    region.size = size;
    region.is_small = is_small;
    region.memory = std::move(memory);
    if (region.memory.buffer) region.address = host_address(region.memory.buffer.get());
    add_slice(region, region.slices.end(), 0, size);
    stats.reserved += size;
    stats.peak_reserved = std::max(stats.peak_reserved, stats.reserved);
    ++stats.driver_allocations;
    return true;
  }

  bool grow(uint64_t size) {
    if (is_small(size)) return add_region(kSmallDriverBlock, true) || add_region(size, true);
    const uint64_t step = std::max(kMinDriverBlock, (stats.reserved / 8) & ~(alignment - 1));
    // A request that would fill most of a block gets one of its own size.
    return (size <= step / 2 && add_region(step, false)) || add_region(size, false);
  }

  Slice* find(uint64_t size) {
    if (!pending.empty()) collect_pending(false);
    if (Slice* slice = take(size)) return slice;
    merge();
    if (Slice* slice = take(size)) return slice;
    if (grow(size)) return take(size);
    collect_pending(true);
    merge();
    for (bool of_others : {false, true}) {
      if (Slice* slice = take(size, of_others)) return slice;
    }
    release_free_regions();
    return grow(size) ? take(size) : nullptr;
  }
};

Pool::Pool(cl_context context, uint64_t limit, uint64_t alignment) : impl_(new Impl) {
  cl_device_id device = nullptr;
  cl_check(clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(device), &device, nullptr),
           "clGetContextInfo");
  // PoCL commits memory at first use, so the device's own bounds are checked here.
  const uint64_t memory = device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
  impl_->context = context;
  impl_->device = device;
  impl_->configured_limit = limit;
  impl_->limit = limit == 0 ? memory : std::min(limit, memory);
  impl_->max_block = device_value<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  impl_->alignment = alignment;
}

Pool::~Pool() = default;

Block* Pool::allocate(uint64_t size) {
  Impl& pool = *impl_;
  std::lock_guard lock(pool.mutex);
  // Rounding up must not wrap around.
  const bool is_absurd = size > UINT64_MAX - pool.alignment;
  const uint64_t rounded =
      is_absurd ? size
                : std::max((size + pool.alignment - 1) & ~(pool.alignment - 1), pool.alignment);
  Slice* slice = is_absurd ? nullptr : pool.find(rounded);
  if (slice == nullptr) {
    fail(Code::kOutOfDeviceMemory,
         "[allocate] {} bytes do not fit: {} in use, {} reserved, limit {}{}, largest single block "
         "{}",
         size, pool.stats.in_use, pool.stats.reserved, pool.limit,
         pool.configured_limit == 0 ? " (the device's memory)" : "", pool.max_block);
  }
  if (slice->shared != nullptr) {
    slice->serial = serial_of(slice->shared);
  } else if (!slice->mem) {
    try {
      slice->mem = make_sub_buffer(slice->driver, slice->offset, slice->size);
    } catch (...) {
      pool.insert_free(*slice);
      throw;
    }
    slice->serial = next_serial();
  }
  pool.stats.in_use += slice->size;
  pool.stats.peak_in_use = std::max(pool.stats.peak_in_use, pool.stats.in_use);
  ++pool.stats.pool_allocations;
  return slice;
}

void Pool::free(Block* block, const std::vector<cl_event>& pending) {
  std::lock_guard lock(impl_->mutex);
  Slice& slice = static_cast<Slice&>(*block);
  impl_->stats.in_use -= slice.size;
  if (pending.empty()) {
    impl_->insert_free(slice);
    return;
  }
  Pending entry{&slice, {}};
  for (cl_event event : pending) {
    clRetainEvent(event);
    entry.events.emplace_back(event);
  }
  impl_->pending.push_back(std::move(entry));
}

void Pool::trim() {
  check_process();
  std::lock_guard lock(impl_->mutex);
  impl_->collect_pending(false);
  impl_->release_free_regions();
}

void Pool::set_before_release(std::function<void()> call) {
  impl_->before_release = std::move(call);
}

void Pool::reset_peak() {
  std::lock_guard lock(impl_->mutex);
  impl_->stats.peak_in_use = impl_->stats.in_use;
  impl_->stats.peak_reserved = impl_->stats.reserved;
}

PoolStats Pool::stats() const {
  std::lock_guard lock(impl_->mutex);
  PoolStats stats = impl_->stats;
  // Neighbouring free slices count as the one block that a request would find.
  for (const Region& region : impl_->regions) {
    uint64_t run = 0;
    for (const Slice& slice : region.slices) {
      if (!slice.is_free) {
        run = 0;
        continue;
      }
      if (run == 0) ++stats.free_blocks;
      run += slice.size;
      stats.largest_free = std::max(stats.largest_free, run);
    }
  }
  return stats;
}

}  // namespace ballast::device
