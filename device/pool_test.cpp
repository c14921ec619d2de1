#include "device/pool.h"

#include "device/testing.h"

namespace ballast::device {
namespace {

using ::testing::HasSubstr;
using testing::open_device;

constexpr uint64_t kMiB = 1ull << 20;

class PoolTest : public ::testing::Test {
 protected:
  DevicePtr device_ = open_device();
  uint64_t alignment_ = device_->info().buffer_alignment;
  Pool pool_{device_->context(), 0, alignment_};
};

TEST_F(PoolTest, TakesTheSmallestHoleThatFits) {
  Block* big = pool_.allocate(64 * 1024);
  Block* fence1 = pool_.allocate(256);
  Block* small = pool_.allocate(16 * 1024);
  Block* fence2 = pool_.allocate(256);
  const uint64_t big_at = big->offset, small_at = small->offset;
  pool_.free(big, {});
  pool_.free(small, {});
  Block* fits_small = pool_.allocate(12 * 1024);
  Block* fits_big = pool_.allocate(40 * 1024);
  EXPECT_EQ(fits_small->offset, small_at);
  EXPECT_EQ(fits_big->offset, big_at);
  for (Block* block : {fits_small, fits_big, fence1, fence2}) pool_.free(block, {});
}

TEST_F(PoolTest, SplitsAndMergesNeighbours) {
  std::vector<Block*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(pool_.allocate(kMiB));
  EXPECT_EQ(pool_.stats().driver_allocations, 1u);
  EXPECT_EQ(pool_.stats().largest_free, 0u);
  for (int i : {1, 3, 2}) pool_.free(blocks[i], {});
  EXPECT_EQ(pool_.stats().free_blocks, 1u);
  EXPECT_EQ(pool_.stats().largest_free, 3 * kMiB);
  Block* merged = pool_.allocate(3 * kMiB);
  EXPECT_EQ(merged->offset, blocks[1]->offset);
  EXPECT_EQ(pool_.stats().driver_allocations, 1u);
  pool_.free(merged, {});
  for (int i : {0, 4, 5, 6, 7}) pool_.free(blocks[i], {});
  EXPECT_EQ(pool_.stats().largest_free, 8 * kMiB);
}

TEST_F(PoolTest, HandsOutTheSameBlockWithItsMemoryObject) {
  Block* first = pool_.allocate(1000);
  const uint64_t serial = first->serial;
  pool_.free(first, {});
  Block* again = pool_.allocate(1000);
  EXPECT_EQ(again->serial, serial);
  pool_.free(again, {});
  Block* smaller = pool_.allocate(alignment_);
  EXPECT_EQ(smaller->serial == serial, smaller->shared != nullptr)
      << "another size is another memory object, in shared memory the same address";
  pool_.free(smaller, {});
}

TEST_F(PoolTest, BlocksAreAlignedAndDisjoint) {
  std::vector<Block*> blocks;
  for (uint64_t size : {0ull, 1ull, 63ull, 64ull, 65ull, 4097ull}) {
    blocks.push_back(pool_.allocate(size));
    EXPECT_EQ(blocks.back()->offset % alignment_, 0u);
    EXPECT_GE(blocks.back()->size, std::max<uint64_t>(size, 1));
  }
  for (size_t i = 1; i < blocks.size(); ++i) {
    EXPECT_GE(blocks[i]->offset, blocks[i - 1]->offset + blocks[i - 1]->size);
  }
  for (Block* block : blocks) pool_.free(block, {});
}

TEST_F(PoolTest, CountsWhatIsInUse) {
  Block* a = pool_.allocate(kMiB);
  Block* b = pool_.allocate(2 * kMiB);
  EXPECT_EQ(pool_.stats().in_use, 3 * kMiB);
  pool_.free(b, {});
  PoolStats stats = pool_.stats();
  EXPECT_EQ(stats.in_use, kMiB);
  EXPECT_EQ(stats.peak_in_use, 3 * kMiB);
  EXPECT_EQ(stats.reserved, 8 * kMiB);
  EXPECT_EQ(stats.pool_allocations, 2u);
  pool_.reset_peak();
  EXPECT_EQ(pool_.stats().peak_in_use, kMiB);
  pool_.free(a, {});
}

TEST_F(PoolTest, TrimReturnsFreeDriverBlocksOnly) {
  Block* small = pool_.allocate(100);
  Block* own = pool_.allocate(32 * kMiB);
  EXPECT_EQ(pool_.stats().reserved, 34 * kMiB);
  pool_.free(own, {});
  pool_.trim();
  EXPECT_EQ(pool_.stats().reserved, 2 * kMiB);
  pool_.free(small, {});
  pool_.trim();
  EXPECT_EQ(pool_.stats().reserved, 0u);
  EXPECT_EQ(pool_.stats().peak_reserved, 34 * kMiB);
}

TEST_F(PoolTest, PendingBlocksWaitForTheirEvents) {
  cl_int code = CL_SUCCESS;
  const EventHandle event(clCreateUserEvent(device_->context(), &code));
  Block* used = pool_.allocate(4096);
  const uint64_t at = used->offset;
  pool_.free(used, {event.get()});
  Block* other = pool_.allocate(4096);
  EXPECT_NE(other->offset, at);
  clSetUserEventStatus(event.get(), CL_COMPLETE);
  Block* reused = pool_.allocate(4096);
  EXPECT_EQ(reused->offset, at);
  pool_.free(other, {});
  pool_.free(reused, {});
}

TEST_F(PoolTest, TheLimitIsAnErrorThatSaysWhyAndASmallerRequestFits) {
  Pool pool(device_->context(), 16 * kMiB, alignment_);
  Block* held = pool.allocate(10 * kMiB);
  EXPECT_ERROR(pool.allocate(7 * kMiB), Code::kOutOfDeviceMemory,
               HasSubstr("7340032 bytes do not fit: 10485760 in use, 10485760 reserved, limit "
                         "16777216"));
  Block* smaller = pool.allocate(6 * kMiB);
  pool.free(held, {});
  // Ten free megabytes lie in another driver block: trimming makes room for eight new ones.
  Block* after_trim = pool.allocate(8 * kMiB);
  pool.free(after_trim, {});
  pool.free(smaller, {});
}

TEST_F(PoolTest, SmallBlocksDoNotPinLargeRegions) {
  Pool pool(device_->context(), 64 * kMiB, alignment_);
  pool.free(pool.allocate(40 * kMiB), {});
  Block* number = pool.allocate(4);
  Block* large = pool.allocate(52 * kMiB);
  pool.free(large, {});
  pool.free(number, {});
}

// Where the limit leaves no room for another region, any free memory will do.
TEST_F(PoolTest, AtTheLimitSmallAndLargeShareRegions) {
  Pool pool(device_->context(), kMiB, alignment_);
  Block* held = pool.allocate(900 * 1024);
  pool.free(held, {});
  std::vector<Block*> small;
  for (int i = 0; i < 16; ++i) small.push_back(pool.allocate(60 * 1024));
  EXPECT_ERROR(pool.allocate(100 * 1024), Code::kOutOfDeviceMemory, HasSubstr("do not fit"));
  for (Block* block : small) pool.free(block, {});
  pool.free(pool.allocate(900 * 1024), {});
}

TEST_F(PoolTest, ABlockPendingAtTheLimitIsWaitedFor) {
  Pool pool(device_->context(), 8 * kMiB, alignment_);
  const auto stream = make_stream(device_);
  Block* used = pool.allocate(8 * kMiB);
  const EventHandle done = stream->marker();
  pool.free(used, {done.get()});
  Block* reused = pool.allocate(8 * kMiB);
  pool.free(reused, {});
}

TEST_F(PoolTest, RefusesWhatTheDeviceCannotHold) {
  for (uint64_t size : {device_->info().memory_bytes + 1, UINT64_MAX, UINT64_MAX - 100}) {
    EXPECT_ERROR(pool_.allocate(size), Code::kOutOfDeviceMemory,
                 HasSubstr(std::to_string(size) + " bytes do not fit"));
  }
  pool_.free(pool_.allocate(4096), {});
}

}  // namespace
}  // namespace ballast::device
