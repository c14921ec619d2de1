#include "device/stitch.h"

#include "device/stitch_source.h"
#include "device/testing.h"

namespace ballast::device {
namespace {

using testing::axpy;
using testing::buffer_arg;
using testing::download;
using ::testing::HasSubstr;
using testing::open_device;
using testing::row_sum_exp;
using testing::scalar_arg;
using testing::upload;

constexpr uint32_t kRows = 6, kColumns = 10;
constexpr uint64_t kInputSlots = 3, kOutputSlots = 4;
// More than a device has at a time, too: some begin when others are done.
constexpr uint32_t kWorkers[] = {1, 2, 3, 40};

// counts[i] += 1 where values[i] > limit: another element type, on all three dimensions.
Launch count_above(float limit) {
  static const SourcePtr source = make_source(std::string(testing::kPrelude) + R"(
inline int is_above(float x, float limit) {return x > limit ? 1 : 0;}
__constant int one[2] = {1, 0};
__kernel void count_above(__global const float* restrict values, __global int* restrict counts,
                          const float limit, const unsigned char enabled) {
  int i = get_global_id(0) + get_global_size(0) * (get_global_id(1) + get_num_groups(1) * get_group_id(2));
  if (enabled) counts[i] += is_above(values[i], limit) * one[0];
}
)");
  return {source,        "count_above",
          "count_above", {2, 1, 3},
          {2, 1, 1},     {buffer_arg(0), buffer_arg(1), scalar_arg(limit), scalar_arg(uint8_t{1})}};
}

class StitchTest : public ::testing::Test {
 protected:
  StitchTest() {
    std::vector<float> values(kInputSlots * kRows * kColumns);
    for (size_t j = 0; j < values.size(); ++j) values[j] = 0.01f * float((j * 17) % 97);
    inputs_ = upload(device_, values);
    reset();
  }
  void reset() {
    rows_ = Buffer::create(device_, kRows * 4);
    state_ = upload(device_, std::vector<float>(kRows, 0.125f));
    counts_ = upload(device_, std::vector<int>(kRows, 0));
    outputs_ = upload(device_, std::vector<float>(kOutputSlots * kRows, -1.0f));
  }
  void record(CommandList& list) {
    list.append(row_sum_exp(kRows, kColumns), {{nullptr, 0}, {rows_}});
    list.append(axpy(kRows, 0.9f), {{state_}, {rows_}, {state_}});
    list.append(count_above(40.0f), {{state_}, {counts_}});
    list.append(axpy(kRows, -1.5f, 2), {{rows_}, {state_}, {nullptr, 1}});
  }
  // What the list gives in `steps` replays; slots are taken with copies, as views need alignment.
  void replay_by_list(int steps) {
    CommandList list(device_);
    record(list);
    list.freeze(Replay::kList);
    Stream& stream = device_->default_stream();
    const BufferPtr input = Buffer::create(device_, kRows * kColumns * 4);
    const BufferPtr output = Buffer::create(device_, kRows * 4);
    for (int i = 0; i < steps; ++i) {
      stream.copy(*input, 0, *inputs_, (i % kInputSlots) * input->size(), input->size());
      list.replay(stream, {input, output});
      stream.copy(*outputs_, (i % kOutputSlots) * output->size(), *output, 0, output->size());
    }
  }

  std::unique_ptr<Stitched> stitch(uint32_t workers) {
    CommandList list(device_);
    record(list);
    std::string why;
    auto stitched = Stitched::make(device_, list, 2, workers, &why);
    EXPECT_NE(stitched, nullptr) << why;
    return stitched;
  }
  std::vector<StitchBinding> bindings() const {
    return {{inputs_.get(), kRows * kColumns * 4, kInputSlots},
            {outputs_.get(), kRows * 4, kOutputSlots}};
  }

  DevicePtr device_ = open_device();
  BufferPtr inputs_, rows_, state_, counts_, outputs_;
};

TEST_F(StitchTest, EqualsTheListBitForBitWithSlotsThatWrap) {
  for (const int steps : {1, 2, 11}) {
    reset();
    replay_by_list(steps);
    const auto state = download<float>(state_), outputs = download<float>(outputs_);
    const auto counts = download<int>(counts_);
    EXPECT_GE(*std::max_element(counts.begin(), counts.end()), steps > 8 ? 1 : 0);

    for (const uint32_t workers : kWorkers) {
      reset();
      const auto stitched = stitch(workers);
      const uint64_t launches = device_->counters().kernel_launches;
      stitched->run(device_->default_stream(), bindings(), {uint64_t(steps)});
      if (workers == 1) {
        EXPECT_EQ(device_->counters().kernel_launches - launches, 1u);
      }
      EXPECT_EQ(download<float>(state_), state) << steps << " by " << workers;
      EXPECT_EQ(download<float>(outputs_), outputs) << steps << " by " << workers;
      EXPECT_EQ(download<int>(counts_), counts) << steps << " by " << workers;
    }
  }
}

TEST_F(StitchTest, GoesOnAtAnyStepInBothDirections) {
  for (const uint32_t workers : kWorkers) {
    for (const bool is_backward : {false, true}) {
      reset();
      const auto whole = stitch(workers);
      whole->run(device_->default_stream(), bindings(), {7, 0, is_backward});
      const auto state = download<float>(state_), outputs = download<float>(outputs_);
      reset();
      const auto parts = stitch(workers);
      for (const uint64_t first : {0, 3, 5}) {
        parts->run(device_->default_stream(), bindings(),
                   {first == 0 ? 3ul : 2ul, first, is_backward});
      }
      EXPECT_EQ(download<float>(state_), state) << workers;
      EXPECT_EQ(download<float>(outputs_), outputs) << workers;
    }
  }
}

TEST_F(StitchTest, RunsAgainAndRebinds) {
  for (const uint32_t workers : kWorkers) {
    reset();
    const auto stitched = stitch(workers);
    const std::vector<StitchBinding> bindings = {{inputs_.get(), 0, 1}, {outputs_.get(), 0, 1}};
    Stream& stream = device_->default_stream();
    stitched->run(stream, bindings, {2});
    stitched->run(stream, bindings, {0});
    stitched->run(stream, bindings, {3});
    const auto five_steps = download<float>(state_);
    const BufferPtr fresh = upload(device_, std::vector<float>(kRows, 0.125f));
    stitched->rebind(state_.get(), fresh);
    const auto other = make_stream(device_);
    device_->sync();
    stitched->run(*other, bindings, {5});
    EXPECT_EQ(download<float>(*other, *fresh), five_steps);
    EXPECT_EQ(download<float>(state_), five_steps);
    EXPECT_ERROR(stitched->run(stream, {bindings[0]}, {}), Code::kInvalidArgument,
                 HasSubstr("1 bindings, the list uses 2"));
    EXPECT_ERROR(stitched->run(stream, {bindings[0], {nullptr, 0, 1}}, {}), Code::kInvalidArgument,
                 HasSubstr("binding 1"));
  }
}

// Each of a chain's launches reads what all groups of the one before have written.
TEST_F(StitchTest, WorkersBeginALaunchWhenTheLastOneIsDone) {
  static const SourcePtr source = make_source(R"(
__kernel void turn_around(__global const int* restrict in, __global int* restrict out) {
  size_t i = get_group_id(0), n = get_num_groups(0);
  out[i] = in[n - 1 - i] + 1;
})");
  constexpr int kGroups = 1000, kLaunches = 30, kSteps = 40;
  const BufferPtr a = upload(device_, std::vector<int>(kGroups, 0));
  const BufferPtr b = upload(device_, std::vector<int>(kGroups, 0));
  const Launch launch{source,          "turn_around", "turn_around",
                      {kGroups, 1, 1}, {1, 1, 1},     {buffer_arg(0), buffer_arg(1)}};
  CommandList list(device_);
  for (int i = 0; i < kLaunches; ++i) list.append(launch, {{i % 2 ? b : a}, {i % 2 ? a : b}});
  std::string why;
  const auto stitched = Stitched::make(device_, list, 0, 4, &why);
  ASSERT_NE(stitched, nullptr) << why;
  stitched->run(device_->default_stream(), {}, {kSteps});
  EXPECT_EQ(download<int>(a), std::vector<int>(kGroups, kLaunches * kSteps));
}

// A kernel takes some 100 parameters, a list has any number of buffers.
TEST_F(StitchTest, WorkersTakeAnyNumberOfBuffers) {
  constexpr int kBuffers = 300;
  CommandList list(device_);
  std::vector<BufferPtr> buffers = {upload(device_, std::vector<float>(kRows, 1.0f))};
  for (int i = 0; i < kBuffers; ++i) {
    buffers.push_back(Buffer::create(device_, kRows * 4));
    list.append(axpy(kRows, 1.0f), {{buffers[i]}, {buffers[0]}, {buffers[i + 1]}});
  }
  std::string why;
  if (device_value<size_t>(device_->id(), CL_DEVICE_MAX_PARAMETER_SIZE) < 8 * kBuffers) {
    EXPECT_EQ(Stitched::make(device_, list, 0, 1, &why), nullptr);
    EXPECT_THAT(why, HasSubstr("301 buffers are more than a kernel of this device takes"));
  }
  const auto stitched = Stitched::make(device_, list, 0, 2, &why);
  ASSERT_NE(stitched, nullptr) << why;
  stitched->run(device_->default_stream(), {}, {});
  EXPECT_EQ(download<float>(buffers.back()), std::vector<float>(kRows, kBuffers + 1.0f));
}

// The planner gives one place to values of different types; the compiler must not swap their uses.
TEST_F(StitchTest, MemoryReusedForAnotherTypeKeepsItsOrder) {
  const SourcePtr source = make_source(R"(
__kernel void put_int(__global int* restrict out) { out[0] = 1; }
__kernel void put_float(__global float* restrict out) { out[0] = 2.0f; }
__kernel void get_int(__global const unsigned int* restrict in, __global int* restrict out) {
  out[0] = in[0];
})");
  auto launch = [&](const char* name, std::vector<Arg> args) {
    return Launch{source, name, name, {1, 1, 1}, {1, 1, 1}, std::move(args)};
  };
  const BufferPtr shared = Buffer::create(device_, 4), out = Buffer::create(device_, 4);
  CommandList list(device_);
  list.append(launch("put_int", {buffer_arg(0)}), {{shared}});
  list.append(launch("put_float", {buffer_arg(0)}), {{nullptr, 0}});
  list.append(launch("get_int", {buffer_arg(0), buffer_arg(1)}), {{shared}, {out}});
  for (const uint32_t workers : kWorkers) {
    std::string why;
    const auto stitched = Stitched::make(device_, list, 1, workers, &why);
    ASSERT_NE(stitched, nullptr) << why;
    stitched->run(device_->default_stream(), {{shared.get(), 0, 1}}, {3});
    EXPECT_EQ(download<uint32_t>(out)[0], 0x40000000u) << workers;
  }
}

Launch launch_of(const std::string& text, const std::string& options = {}) {
  return {make_source(text, options), "k", "k", {4, 1, 1}, {2, 1, 1}, {buffer_arg(0)}};
}

TEST_F(StitchTest, RefusesWithAReason) {
  auto refusal = [&](const std::vector<Launch>& launches, bool with_copy = false,
                     uint32_t workers = 1) {
    CommandList list(device_);
    for (const Launch& launch : launches) list.append(launch, {{state_}, {rows_}, {counts_}});
    if (with_copy) list.append_copy({rows_}, {state_}, 4);
    std::string why;
    EXPECT_EQ(Stitched::make(device_, list, 0, workers, &why), nullptr);
    return why;
  };
  EXPECT_EQ(refusal({}), "the list is empty");
  EXPECT_EQ(refusal({axpy(2, 1.0f)}, true), "the list has copies");
  EXPECT_THAT(refusal({launch_of("__kernel void k(__global int* a) { barrier(CLK_LOCAL_MEM_FENCE); "
                                 "a[get_global_id(0)] = 1; }")}),
              HasSubstr("work-groups of several items"));
  EXPECT_THAT(refusal({launch_of("__kernel void k(__global int* a) { for (int i = 0; i < 1; i++) "
                                 "a[get_group_id(i)] = 1; }")}),
              HasSubstr("computed dimension"));
  EXPECT_THAT(refusal({launch_of("int where() { return get_global_id(0); }\n"
                                 "__kernel void k(__global int* a) { a[where()] = 1; }")}),
              HasSubstr("helper function"));
  EXPECT_THAT(
      refusal({launch_of("int f() { return 1; }\n__kernel void k(__global int* a) { *a = f(); }"),
               launch_of("int f() { return 2; }\n__kernel void k(__global int* a) { *a = f(); }")}),
      HasSubstr("two sources define f differently"));
  EXPECT_THAT(
      refusal({launch_of("__kernel void k(__global int* a) { *a = 1; }"),
               launch_of("__kernel void k(__global int* a) { *a = 1; }", "-cl-mad-enable")}),
      HasSubstr("compiler options"));
  for (const char* head : {"int k(__global int* a)", "void k(__global int* a) __x(1)",
                           "void* k(__global int* a)", "void k"}) {
    EXPECT_THAT(refusal({launch_of(fmt::format("__kernel {} {{}}", head))}),
                HasSubstr("kernel's head"))
        << head;
  }
  EXPECT_THAT(refusal({launch_of("__kernel void k(__global int* a, int b) { *a = b; }")}),
              HasSubstr("2 parameters, its launch 1"));
  EXPECT_THAT(refusal({launch_of("__kernel void k(__global int* a) { *a = 1;")}),
              HasSubstr("ends inside"));
  EXPECT_THAT(refusal({axpy(1 << 20, 1.0f)}, false, 2), HasSubstr("axpy has 1048576 groups"));
}

TEST(StitchUnit, KeepsSharedTextOnceAndKernelsApart) {
  StitchUnit unit;
  const Launch first = axpy(4, 1.0f), second = row_sum_exp(2, 2);
  unit.add(*first.source);
  unit.add(*second.source);
  unit.add(*first.source);
  const std::string text = unit.text();
  auto count = [&](const std::string& part) {
    size_t n = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
    return n;
  };
  EXPECT_EQ(count("float_from_bits(unsigned int x)"), 1u);
  EXPECT_EQ(count("restrict"), 0u);
  EXPECT_EQ(count("__kernel"), 0u);
  EXPECT_EQ(count("_axpy("), 1u);
  const KernelFunction& axpy_function = unit.kernel(*first.source, "axpy");
  ASSERT_EQ(axpy_function.parameters.size(), 5u);
  EXPECT_EQ(axpy_function.parameters[0].type, "float");
  EXPECT_TRUE(axpy_function.parameters[0].is_pointer);
  EXPECT_EQ(axpy_function.parameters[3].type, "float");
  EXPECT_FALSE(axpy_function.parameters[3].is_pointer);
  EXPECT_FALSE(axpy_function.needs_one_item_groups);
}

TEST(StitchUnit, TellsDeclarationsWithAttributesApart) {
  const std::string floats = "typedef float anywhere __attribute__((aligned(sizeof(char))));\n";
  const std::string ints = "typedef int whole __attribute__((aligned(sizeof(char))));\n";
  StitchUnit unit;
  unit.add(*make_source(floats + "__kernel void k(__global anywhere* a) { *a = 1; }"));
  unit.add(*make_source(ints + "__kernel void k(__global whole* a) { *a = 1; }"));
  unit.add(*make_source(ints + floats + "__kernel void k(__global whole* a) { *a = 2; }"));
  const std::string text = unit.text();
  for (const char* name : {"float anywhere", "int whole"}) {
    EXPECT_NE(text.find(name), std::string::npos);
    EXPECT_EQ(text.find(name), text.rfind(name));
  }
  EXPECT_THROW(unit.add(*make_source("typedef char whole __attribute__((aligned(1)));")),
               TextRefusal);
}

}  // namespace
}  // namespace ballast::device
