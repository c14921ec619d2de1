#include "device/stitch_source.h"
#include "kernels/attention/attention_reference.h"
#include "kernels/attention/attention_strips.h"
#include "kernels/plan/registers.h"

#include <algorithm>
#include <limits>

namespace ballast::kernels::testing {
namespace {

using Mask = AttentionConfig::Mask;

std::vector<HostTensor> run_forward(const Plan& plan, const AttentionConfig& c,
                                    const AttentionOperands& o) {
  std::vector<HostTensor> inputs{o.q, o.k, o.v};
  if (c.mask != Mask::kNone) inputs.push_back(o.mask);
  return run_plan(plan, inputs, {o.dout.type, {DType::kF32, {c.batch, c.heads, c.queries}}});
}

std::vector<HostTensor> run_backward(const Plan& plan, const AttentionConfig& c,
                                     const AttentionOperands& o, const HostTensor& out,
                                     const HostTensor& lse) {
  const std::vector<float> dout = o.dout.as<float>(), y = out.as<float>();
  std::vector<float> delta(c.batch * c.heads * c.queries);
  for (size_t i = 0; i < y.size(); ++i) delta[i / c.value_depth] += dout[i] * y[i];
  std::vector<HostTensor> inputs{o.dout, o.q, o.k, o.v, lse, f32(lse.type.shape, delta)};
  if (c.mask != Mask::kNone) inputs.push_back(o.mask);
  return run_plan(plan, inputs, {o.q.type, o.k.type, o.v.type});
}

// The error allowed grows with the largest value; the terms' rounding errors average out.
void expect_near(const HostTensor& got, const std::vector<double>& expected,
                 const std::string& what) {
  const std::vector<float> values = got.as<float>();
  ASSERT_EQ(values.size(), expected.size()) << what;
  double scale = 0;
  for (double x : expected) scale = std::isfinite(x) ? std::max(scale, std::fabs(x)) : scale;
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    wrong += std::isfinite(expected[i])
                 ? !(std::fabs(values[i] - expected[i]) <= 2e-6 + 4e-6 * scale)
                 : ulps(values[i], expected[i]) != 0;
  }
  EXPECT_EQ(wrong, 0u) << what;
}

void check_plans(const Plan& forward, const Plan& backward, const std::string& name,
                 const AttentionConfig& c, const AttentionOperands& o) {
  const AttentionReference want(c, o);
  const std::vector<HostTensor> results = run_forward(forward, c, o);
  expect_near(results[0], want.out, name + " out");
  expect_near(results[1], want.lse, name + " lse");
  const std::vector<HostTensor> back = run_backward(backward, c, o, results[0], results[1]);
  expect_near(back[0], want.dq, name + " dq");
  expect_near(back[1], want.dk, name + " dk");
  expect_near(back[2], want.dv, name + " dv");
}

void check_config(const AttentionConfig& c, const AttentionOperands& o) {
  const int64_t scores = c.batch * c.heads * c.queries * c.keys;
  for (DeviceClass device_class : device_classes()) {
    if (is_too_slow(device_class, scores * (c.depth + c.value_depth))) continue;
    check_plans(plan_attention(device_class, c), plan_attention_grad(device_class, c),
                name_of(device_class, c), c, o);
  }
}

void check_case(const AttentionCase& c) { check_config(config_of(c), make_operands(config_of(c))); }

TEST(Attention, TinySizes) {
  check_case({1, 1, 1, 1, 1, 1});
  check_case({1, 2, 3, 5, 4, 4, true});
  check_case({1, 1, 2, 17, 3, 2, false, Mask::kKeep});
  check_case({1, 1, 3, 4, 16, 16, false, Mask::kAdd, 1, 1, 3});
  check_case({1, 2, 3, 4, 3, 2, true, Mask::kKeep, 1, 2, 1});
  check_case({2, 1, 3, 4, 3, 2, true, Mask::kAdd, 2, 1, 3});
  check_case({1, 1, 20, 4, 16, 16});  // a tile of two vectors of queries
  // Two rounds of a work-group's local memory.
  check_case({1, 1, 2, 33, 3, 2});
  check_case({1, 1, 33, 2, 3, 2});
}

// Tiles are 32 or 24 queries; blocks 128 keys, of the gradients 64 or 60.
TEST(Attention, SizesAroundTileEdges) {
  for (int64_t n : {7, 8, 9, 24, 25, 31, 32, 33, 64, 97}) check_case({1, 2, n, n, 16, 16});
  for (int64_t keys : {59, 61, 63, 65, 127, 128, 129, 257, 513}) {
    check_case({1, 1, 25, keys, 32, 32});
  }
  for (int64_t queries : {255, 257, 520}) check_case({1, 1, queries, 29, 32, 32});
  check_case({1, 2, 40, 70, 64, 48});  // a tile of one vector after one of two
}

TEST(Attention, TilesOfOtherCpus) {
  if (!tests_other_cpus()) GTEST_SKIP() << "PoCL has them";
  const RegistersScope scope(other_registers());
  if (is_simulated()) {
    check_case({1, 1, 2, 3, 3, 2, true});
    return check_case({1, 1, 20, 2, 3, 2, false, Mask::kKeep});
  }
  check_case({1, 2, 40, 140, 40, 48, true});
  check_case({1, 2, 40, 70, 16, 16, false, Mask::kAdd, 1, 2, 40});
}

TEST(Attention, DepthsThatAreNoWholeVectors) {
  for (int64_t depth : {1, 2, 7, 15, 17, 24, 40, 48, 72, 80}) {
    check_case({2, 1, 19, 37, depth, depth});
  }
  check_case({1, 2, 14, 35, 16, 48});
  check_case({1, 2, 14, 35, 48, 16});
  check_case({1, 2, 14, 35, 9, 33});
}

TEST(Attention, WideRows) {
  check_case({1, 1, 13, 40, 128, 128});
  check_case({1, 1, 13, 40, 256, 256});
  check_case({1, 1, 13, 40, 250, 241});
  check_case({1, 1, 13, 40, 300, 257});  // wider than the tiles' stack
}

TEST(Attention, Seeds) {
  check_case({2, 8, 196, 196, 32, 32});
  check_case({1, 2, 600, 600, 64, 64});
}

TEST(Attention, Causal) {
  for (int64_t n : {1, 2, 13, 33, 100, 300, 600}) check_case({1, 2, n, n, 16, 16, true});
  check_case({1, 1, 40, 300, 32, 32, true});  // more keys than queries: the rest is never seen
  check_case({1, 1, 300, 40, 32, 32, true});
  for (int64_t queries : {4, 28, 52}) check_case({1, 2, queries, 191, 16, 16, true});
  check_case({1, 1, 10, 5, 20, 20, true});
}

TEST(Attention, Masks) {
  for (Mask mask : {Mask::kKeep, Mask::kAdd}) {
    for (int64_t keys : {32, 45, 288}) {
      check_case({2, 3, 21, keys, 16, 16, false, mask, 2, 3, 21});
      check_case({2, 3, 21, keys, 16, 16, false, mask, 1, 3, 21});
      check_case({2, 3, 21, keys, 16, 16, false, mask, 2, 1, 21});
      check_case({2, 3, 21, keys, 16, 16, false, mask, 2, 3, 1});
      check_case({2, 3, 21, keys, 20, 12, true, mask, 1, 1, 1});
      check_case({2, 3, 70, keys, 16, 16, false, mask, 2, 3, 70});
      check_case({2, 3, 70, keys, 16, 16, true, mask, 2, 1, 1});
    }
  }
}

// What CPUs compute as a strip: a token after many.
TEST(Attention, SingleQueries) {
  check_case({2, 3, 1, 300, 64, 64});
  check_case({1, 2, 1, 4100, 16, 48});
  check_case({1, 1, 1, 101, 55, 9});
  check_case({1, 2, 1, 200, 32, 32, true});
  for (Mask mask : {Mask::kKeep, Mask::kAdd}) {
    check_case({2, 3, 1, 270, 32, 24, false, mask, 2, 3, 1});
    check_case({2, 3, 1, 270, 32, 24, false, mask, 1, 3, 1});
    check_case({2, 3, 1, 270, 20, 20, true, mask, 2, 1, 1});
    check_case({2, 3, 1, 17, 256, 20, false, mask, 2, 1, 1});
    check_case({2, 3, 1, 8, 512, 20, false, mask, 2, 1, 1});
  }
}

// Of GPUs: one strip, two, and more, of which the last is shorter.
TEST(Attention, Strips) {
  for (const AttentionCase& shape :
       std::vector<AttentionCase>{{1, 1, 5, 66, 64, 3, true, Mask::kAdd},
                                  {1, 2, 70, 70, 64, 40},
                                  {2, 1, 200, 65, 64, 7},
                                  {1, 2, 300, 300, 16, 16, true},
                                  {1, 1, 270, 150, 32, 24, true},
                                  {2, 3, 270, 90, 48, 8, false, Mask::kAdd, 2, 1, 270},
                                  {2, 2, 140, 90, 48, 8, true, Mask::kKeep, 1, 2, 1},
                                  {1, 2, 260, 80, 55, 9, false, Mask::kKeep, 1, 2, 260}}) {
    const AttentionConfig c = config_of(shape);
    if (is_too_large(c.queries * c.keys * 10)) continue;
    ASSERT_TRUE(suits_strips(c));
    const int64_t rows = ceil_div(c.queries, 128);
    for (int64_t most : {int64_t{1}, kStripScores}) {
      const Plan forward = plan_attention_strips(DeviceClass::kGpu, c, most);
      const size_t strips = most == 1 ? rows : 1;
      EXPECT_GE(forward.launches.size(), 3 * strips);
      check_plans(forward, plan_attention_grad_strips(c, most),
                  fmt::format("{} strips: {}", strips, name_of(DeviceClass::kGpu, c)), c,
                  make_operands(c));
    }
  }
}

TEST(Attention, CausalStripsLeaveOutKeysWhereThereIsEnoughToDo) {
  const auto launches = [](int64_t n, bool is_causal) {
    return plan_attention_strips(DeviceClass::kGpu, config_of({1, 1, n, n, 64, 64, is_causal}))
        .launches.size();
  };
  EXPECT_EQ(launches(1024, true), launches(1024, false));
  EXPECT_GE(launches(4096, true), launches(4096, false) + 3);
}

// Twice as many queries and keys take at most so much more memory.
TEST(Attention, MemoryOfStripsIsLinear) {
  const auto bytes = [](int64_t n) {
    const AttentionConfig c = config_of({1, 8, n, n, 64, 64});
    return std::pair(plan_attention_strips(DeviceClass::kGpu, c, 1).workspace_bytes,
                     plan_attention_grad_strips(c, 1).workspace_bytes);
  };
  const auto [forward, backward] = bytes(4096);
  const auto [twice, twice_back] = bytes(8192);
  EXPECT_LE(twice, 2 * forward);
  EXPECT_LE(twice_back, 2 * backward);
}

// Rows that may attend to nothing: zeros, lse of -infinity, and no gradient.
TEST(Attention, FullyMaskedRows) {
  const int64_t queries = is_simulated() ? 3 : 30, keys = is_simulated() ? 5 : 50;
  for (Mask mask : {Mask::kKeep, Mask::kAdd}) {
    const AttentionCase shape{1, 2, queries, keys, 16, 16, false, mask, 1, 1, queries};
    const AttentionConfig c = config_of(shape);
    AttentionOperands o = make_operands(c);
    std::vector<uint8_t> keep(queries * keys, 1);
    for (int64_t i : {int64_t{0}, queries / 4, queries - 1}) {
      std::fill_n(keep.begin() + i * keys, keys, uint8_t{0});
    }
    std::vector<float> add;
    for (uint8_t x : keep) add.push_back(x ? 0 : -std::numeric_limits<float>::infinity());
    o.mask = mask == Mask::kKeep ? HostTensor(DType::kBool, o.mask.type.shape, keep)
                                 : f32(o.mask.type.shape, add);
    check_config(c, o);
  }
}

// Blocks of keys that a row may not see at all come before the ones it may.
TEST(Attention, LeadingBlocksHidden) {
  const AttentionCase shape{1, 1, 13, 700, 16, 16, false, Mask::kKeep};
  const AttentionConfig c = config_of(shape);
  AttentionOperands o = make_operands(c);
  std::vector<uint8_t> keep(700, 0);
  for (size_t i = 530; i < 560; ++i) keep[i] = 1;
  o.mask = HostTensor(DType::kBool, {1, 1, 1, 700}, keep);
  check_config(c, o);
}

TEST(Attention, LargeScoresDoNotOverflow) {
  const AttentionCase shape{1, 1, 20, 300, 16, 16};
  AttentionConfig c = config_of(shape);
  c.scale = 40;
  const AttentionOperands o = make_operands(c);
  const AttentionReference want(c, o);
  for (DeviceClass device_class : device_classes()) {
    const std::vector<HostTensor> got = run_forward(plan_attention(device_class, c), c, o);
    const std::vector<float> out = got[0].as<float>(), lse = got[1].as<float>();
    for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], want.out[i], 2e-3);
    for (size_t i = 0; i < lse.size(); ++i) EXPECT_NEAR(lse[i], want.lse[i], 1e-3);
  }
}

// In one element of the first of two heads: along its row, its column or over its head, as sums in
// double have it.
TEST(Attention, NaNAndInfinityGoWhereSumsTakeThem) {
  for (const AttentionCase& shape : std::vector<AttentionCase>{{1, 2, 5, 6, 4, 4},
                                                               {1, 2, 20, 40, 16, 16},
                                                               {1, 2, 40, 140, 9, 24},
                                                               {1, 2, 5, 7, 300, 3}}) {
    const AttentionConfig c = config_of(shape);
    for (HostTensor AttentionOperands::*operand :
         {&AttentionOperands::q, &AttentionOperands::k, &AttentionOperands::v,
          &AttentionOperands::dout}) {
      for (const float special : {NAN, INFINITY, -INFINITY}) {
        AttentionOperands o = make_operands(c);
        HostTensor& tensor = o.*operand;
        std::vector<float> values = tensor.as<float>();
        values[2 * tensor.type.shape[3] + 1] = special;
        SCOPED_TRACE(fmt::format("{} in operand {}", special, &tensor - &o.q));
        tensor = f32(tensor.type.shape, values);
        check_config(c, o);
      }
    }
  }
}

TEST(Attention, EmptyExtents) {
  for (const AttentionCase& c :
       std::vector<AttentionCase>{{1, 2, 0, 4, 8, 8},
                                  {1, 2, 4, 0, 8, 8},
                                  {1, 2, 4, 5, 0, 8},
                                  {1, 2, 4, 5, 8, 0},
                                  {0, 2, 4, 5, 8, 8},
                                  {1, 2, 0, 4, 8, 8, true, Mask::kAdd},
                                  {1, 2, 4, 0, 8, 8, true, Mask::kKeep, 1, 1, 4},
                                  {1, 2, 4, 5, 0, 8, true, Mask::kAdd, 1, 2, 4},
                                  {1, 2, 4, 5, 8, 0, true, Mask::kKeep, 1, 1, 4},
                                  {0, 2, 4, 5, 8, 8, true, Mask::kAdd, 1, 2, 1}}) {
    check_case(c);
  }
  for (DeviceClass device_class : device_classes()) {
    EXPECT_TRUE(plan_attention(device_class, config_of({1, 0, 4, 4, 8, 8})).launches.empty());
  }
}

TEST(Attention, WorkspaceIsLinearInTheSequenceLength) {
  const auto bytes = [](int64_t n, bool is_grad) {
    const AttentionConfig c = config_of({1, 8, n, n, 60, 60});
    return (is_grad ? plan_attention_grad : plan_attention)(DeviceClass::kCpu, c).workspace_bytes;
  };
  for (bool is_grad : {false, true}) {
    EXPECT_EQ(bytes(15360, is_grad), 16 * bytes(960, is_grad)) << is_grad;  // whole tiles
  }
}

// Launches joined here become parts of a sunk program's kernel like any other.
TEST(Attention, JoinedLaunchesAreStitchedTogether) {
  device::StitchUnit unit;
  const AttentionConfig c = config_of({1, 2, 40, 40, 16, 16});
  for (const Plan& plan :
       {plan_attention(DeviceClass::kCpu, c), plan_attention_grad(DeviceClass::kCpu, c)}) {
    for (const device::Launch& launch : plan.launches) {
      EXPECT_NO_THROW(unit.add(*launch.source)) << launch.label;
    }
  }
  EXPECT_EQ(plan_attention(DeviceClass::kCpu, c).launches.size(), 1u);
  EXPECT_EQ(plan_attention_grad(DeviceClass::kCpu, c).launches.size(), 1u);
  // Keys in parts, whose dq are added up once all are there.
  const AttentionConfig parted = config_of({1, 2, 40, 200, 16, 16});
  EXPECT_EQ(plan_attention_grad(DeviceClass::kCpu, parted).launches.size(), 2u);
}

TEST(Attention, RefusesMasksThatDoNotBroadcast) {
  try {
    plan_attention(DeviceClass::kCpu, config_of({2, 3, 4, 5, 8, 8, false, Mask::kAdd, 2, 2, 4}));
    FAIL();
  } catch (const device::Error& error) {
    EXPECT_EQ(error.code(), device::Code::kInvalidArgument);
    EXPECT_STREQ(error.what(), "[attention] a mask of [2, 2, 4] does not fit [2, 3, 4]");
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
