#include "device/command_list.h"

#include "device/testing.h"

namespace ballast::device {
namespace {

using testing::axpy;
using testing::download;
using ::testing::HasSubstr;
using testing::open_device;
using testing::row_sum_exp;
using testing::upload;

constexpr uint32_t kRows = 6, kColumns = 10;

// A small training-like step: input (binding 0) -> row sums -> running state -> output (binding 1).
struct StepBuffers {
  BufferPtr rows, state;
};

void record_step(CommandList& list, const StepBuffers& buffers, bool with_copy) {
  list.append(row_sum_exp(kRows, kColumns), {{nullptr, 0}, {buffers.rows}});
  list.append(axpy(kRows, 0.9f), {{buffers.state}, {buffers.rows}, {buffers.state}});
  list.append(axpy(kRows, -1.5f, 2), {{buffers.rows}, {buffers.state}, {nullptr, 1}});
  if (with_copy) list.append_copy({nullptr, 1}, {buffers.state}, 8);
}

class CommandListTest : public ::testing::TestWithParam<Replay> {
 protected:
  void SetUp() override {
    if (GetParam() == Replay::kNative && !device_->info().has_command_buffer) {
      GTEST_SKIP() << "the device has no command buffers";
    }
    for (int i = 0; i < 3; ++i) {
      std::vector<float> values(kRows * kColumns);
      for (size_t j = 0; j < values.size(); ++j) values[j] = 0.01f * float((i * 31 + j * 17) % 97);
      inputs_.push_back(upload(device_, values));
      outputs_.push_back(Buffer::create(device_, kRows * 4));
    }
  }
  StepBuffers make_buffers() {
    return {Buffer::create(device_, kRows * 4), upload(device_, std::vector<float>(kRows, 0.125f))};
  }
  // The same step, launch by launch.
  std::vector<float> reference(int steps, bool with_copy) {
    Stream& stream = device_->default_stream();
    const StepBuffers b = make_buffers();
    const BufferPtr out = Buffer::create(device_, kRows * 4);
    for (int i = 0; i < steps; ++i) {
      Buffer* first[] = {inputs_[i % 3].get(), b.rows.get()};
      Buffer* second[] = {b.state.get(), b.rows.get(), b.state.get()};
      Buffer* third[] = {b.rows.get(), b.state.get(), out.get()};
      stream.submit(row_sum_exp(kRows, kColumns), first, 2);
      stream.submit(axpy(kRows, 0.9f), second, 3);
      stream.submit(axpy(kRows, -1.5f, 2), third, 3);
      if (with_copy) stream.copy(*out, 0, *b.state, 0, 8);
    }
    return download<float>(out);
  }

  DevicePtr device_ = open_device();
  std::vector<BufferPtr> inputs_, outputs_;
};

TEST_P(CommandListTest, ReplaysBitForBitWithChangingBindings) {
  for (const bool with_copy : {false, true}) {
    CommandList list(device_);
    record_step(list, make_buffers(), with_copy);
    list.freeze(GetParam());
    for (int i = 0; i < 7; ++i) {
      list.replay(device_->default_stream(), {inputs_[i % 3], outputs_[i % 2]});
    }
    EXPECT_EQ(download<float>(outputs_[0]), reference(7, with_copy)) << with_copy;
  }
}

TEST_P(CommandListTest, ReplaysOnAnotherStream) {
  const auto stream = make_stream(device_);
  CommandList list(device_);
  record_step(list, make_buffers(), true);
  list.freeze(GetParam());
  device_->sync();
  for (int i = 0; i < 4; ++i) list.replay(*stream, {inputs_[i % 3], outputs_[0]});
  EXPECT_EQ(download<float>(*stream, *outputs_[0]), reference(4, true));
}

TEST_P(CommandListTest, ReplayAllocatesNothingAndCounts) {
  CommandList list(device_);
  record_step(list, make_buffers(), true);
  list.freeze(GetParam());
  for (const BufferPtr& input : inputs_) list.prepare({input, outputs_[0]});
  device_->sync();
  const PoolStats before = device_->pool().stats();
  const Counters& counters = device_->counters();
  const uint64_t launches = counters.kernel_launches, submits = counters.submits,
                 copies = counters.copies, bytes = counters.bytes_on_device;
  size_t enqueues = 0;
  for (int i = 0; i < 10; ++i) {
    enqueues += list.replay(device_->default_stream(), {inputs_[i % 3], outputs_[0]});
  }
  const PoolStats after = device_->pool().stats();
  EXPECT_EQ(after.pool_allocations, before.pool_allocations);
  EXPECT_EQ(after.driver_allocations, before.driver_allocations);
  if (list.kind() == Replay::kNative || device_->tasks() == nullptr) {
    EXPECT_EQ(enqueues, list.kind() == Replay::kNative ? 10u : 40u);
  } else {
    EXPECT_GE(enqueues, 10u) << "copies are commands of their own";
    EXPECT_LE(enqueues, 40u) << "launches before and after a copy go together";
  }
  EXPECT_EQ(counters.submits - submits, enqueues);
  EXPECT_EQ(counters.kernel_launches - launches, 30u);
  EXPECT_EQ(counters.copies - copies, 10u);
  EXPECT_EQ(counters.bytes_on_device - bytes, 80u);
  device_->sync();
}

TEST_P(CommandListTest, RebindReplacesAStaticBuffer) {
  CommandList list(device_);
  const StepBuffers buffers = make_buffers();
  record_step(list, buffers, false);
  list.freeze(GetParam());
  list.replay(device_->default_stream(), {inputs_[0], outputs_[0]});
  list.rebind(buffers.state.get(), upload(device_, std::vector<float>(kRows, 0.125f)));
  list.replay(device_->default_stream(), {inputs_[0], outputs_[1]});
  EXPECT_EQ(download<float>(outputs_[1]), download<float>(outputs_[0]));
}

TEST_P(CommandListTest, KeepsItsBuffersAlive) {
  CommandList list(device_);
  std::weak_ptr<Buffer> state;
  {
    const StepBuffers buffers = make_buffers();
    state = buffers.state;
    record_step(list, buffers, false);
  }
  list.freeze(GetParam());
  EXPECT_FALSE(state.expired());
  list.replay(device_->default_stream(), {inputs_[0], outputs_[0]});
  EXPECT_EQ(download<float>(outputs_[0]), reference(1, false));
}

TEST_P(CommandListTest, MoreBindingCombinationsThanRecordings) {
  CommandList list(device_);
  const BufferPtr one = upload(device_, std::vector<float>(4, 1.0f));
  list.append(axpy(4, 2.0f), {{one}, {nullptr, 0}, {nullptr, 0}});  // x = 2 + x
  list.freeze(GetParam());
  std::vector<BufferPtr> many;
  for (size_t i = 0; i < CommandList::kMaxNativeRecordings + 6; ++i) {
    many.push_back(upload(device_, std::vector<float>(4, float(i))));
  }
  for (int round = 0; round < 2; ++round) {
    for (const BufferPtr& buffer : many) list.replay(device_->default_stream(), {buffer});
  }
  for (size_t i = 0; i < many.size(); ++i) {
    ASSERT_EQ(download<float>(many[i]), std::vector<float>(4, float(i) + 4.0f));
  }
}

TEST_P(CommandListTest, MisuseIsRefused) {
  CommandList list(device_);
  EXPECT_ERROR(list.append(axpy(4, 1.0f), {{inputs_[0]}}), Code::kInvalidArgument,
               HasSubstr("operand 1 of 1"));
  EXPECT_ERROR(list.replay(device_->default_stream(), {}), Code::kFailedPrecondition,
               HasSubstr("not frozen"));
  record_step(list, make_buffers(), false);
  list.append_copy({nullptr, 1}, {inputs_[0]}, kRows * 4 + 1);
  list.freeze(GetParam());
  EXPECT_ERROR(list.append(axpy(4, 1.0f), {}), Code::kFailedPrecondition, HasSubstr("frozen"));
  EXPECT_ERROR(list.freeze(GetParam()), Code::kFailedPrecondition, HasSubstr("frozen"));
  Stream& stream = device_->default_stream();
  EXPECT_ERROR(list.replay(stream, {inputs_[0]}), Code::kInvalidArgument,
               HasSubstr("1 bindings, the list uses 2"));
  EXPECT_ERROR(list.replay(stream, {inputs_[0], nullptr}), Code::kInvalidArgument,
               HasSubstr("binding 1 is null"));
  EXPECT_ERROR(list.replay(stream, {inputs_[0], outputs_[0]}), Code::kInvalidArgument,
               HasSubstr("a copy of 25 bytes, a buffer of 24"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, CommandListTest,
                         ::testing::Values(Replay::kAuto, Replay::kList, Replay::kNative),
                         [](const auto& kind) {
                           return kind.param == Replay::kNative ? "Native"
                                  : kind.param == Replay::kList ? "List"
                                                                : "Auto";
                         });

TEST(EmptyCommandList, ReplaysNothing) {
  const DevicePtr device = open_device();
  CommandList list(device);
  list.freeze(Replay::kList);
  EXPECT_EQ(list.replay(device->default_stream(), {}), 0u);
}

}  // namespace
}  // namespace ballast::device
