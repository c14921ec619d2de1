// Products compiled at run time with a chain behind them: the bits of the product and then the
// chain, whatever the way to compute the product.
#include "kernels/matmul/matmul_choice.h"
#include "kernels/plan/registers.h"
#include "kernels/test_support.h"

#include <map>
#include <set>
#include <tuple>

namespace ballast::kernels::testing {
namespace {

// select(mask, gelu(c + bias) * gate, scale) * scale + c: operands of every form, steps that are
// read twice, and one of another dtype.
FusedPointwise make_chain(const Shape& c) {
  const TensorType full{DType::kF32, c}, mask{DType::kBool, c};
  FusedPointwise chain;
  chain.inputs = {full, {DType::kF32, {c.back()}}, full, mask, {DType::kF32, {}}, full};
  chain.inputs[5].dtype = DType::kBF16;
  chain.steps = {
      {"add", {input(0), input(1)}, full}, {"gelu_tanh", {step(0)}, full},
      {"mul", {step(1), input(2)}, full},  {"select", {input(3), step(2), input(4)}, full},
      {"mul", {step(3), input(4)}, full},  {"add", {step(4), input(0)}, full},
      {"cast", {input(5)}, full},          {"relu_grad", {step(5), step(6)}, full}};
  chain.outputs = {7};
  return chain;
}

HostTensor operand_of(const TensorType& type, uint32_t seed) {
  const HostTensor floats = random_f32(type.shape, seed);
  if (type.dtype == DType::kF32) return floats;
  if (type.dtype == DType::kBool) {
    std::vector<uint8_t> bits;
    for (float value : floats.as<float>()) bits.push_back(value > 0);
    return {type.dtype, type.shape, bits};
  }
  return run_plan(plan_pointwise(DeviceClass::kCpu, "cast", {floats.type}, type), {floats}, type);
}

struct Case {
  MatmulConfig config;
  FusedPointwise chain;
  std::vector<HostTensor> operands;  // A, B, the chain's but the first

  Case(const MatmulConfig& c, const Shape& shape) : config(c), chain(make_chain(shape)) {
    const int64_t products = c.batch.empty() ? 1 : c.batch[0].extent;
    operands = {random_f32({products * c.m * c.k}, 1), random_f32({products * c.k * c.n}, 2)};
    for (uint32_t i = 1; i < chain.inputs.size(); ++i) {
      operands.push_back(operand_of(chain.inputs[i], 10 + i));
    }
  }

  const TensorType& type() const { return chain.inputs[0]; }

  std::vector<uint8_t> apart(DeviceClass device_class) const {
    std::vector<HostTensor> inputs = {
        run_plan(plan_matmul(device_class, config), {operands[0], operands[1]}, type())};
    inputs.insert(inputs.end(), operands.begin() + 2, operands.end());
    return run_plan(plan_fused(device_class, chain), inputs, type()).bytes;
  }

  std::vector<uint8_t> run(const Plan& plan) const {
    return run_plan(plan, operands, type()).bytes;
  }
};

MatmulConfig in_batches(MatmulConfig c, int64_t count) {
  c.batch = {{count, c.m * c.k, c.k * c.n, c.m * c.n}};
  return c;
}

// How a product is computed, as the source of its kernel tells it: with which tile, of which side's
// rows, and whether panels of the other lie where they did.
using Way = std::tuple<DeviceClass, const MatmulTile*, bool, bool>;
using KernelsByWay = std::map<Way, std::string>;

// Compares the chosen way, and those that no case took before, each of which is a kernel to
// compile.
void expect_equal(const Case& one, KernelsByWay& taken) {
  const MatmulConfig& c = one.config;
  const std::string name = fmt::format("{}x{}x{} {}{}", c.m, c.n, c.k, c.transpose_a ? "T" : "N",
                                       c.transpose_b ? "T" : "N");
  for (DeviceClass device_class : device_classes()) {
    const std::vector<uint8_t> expected = one.apart(device_class);
    EXPECT_EQ(one.run(plan_fused_matmul(device_class, c, one.chain)), expected) << name;
    const MatmulProblem problem = make_matmul_problem(c, MatmulSlots(c, &one.chain));
    for (const MatmulChoice& choice : matmul_choices(device_class, problem)) {
      const Way way{device_class, choice.tile, choice.swapped, choice.pack == MatmulPack::kNone};
      if (!can_fuse(choice) || taken.count(way) > 0) continue;
      const Plan plan = plan_matmul_as(device_class, c, choice, &one.chain);
      const std::string& label = plan.launches.back().label;
      taken[way] = label.substr(0, label.find("_fused"));
      EXPECT_EQ(one.run(plan), expected) << name << " " << label;
    }
  }
}

TEST(FusedMatmul, EveryKernelGivesTheBitsOfTheUnfused) {
  const RegistersScope narrow(kNarrowRegisters);  // has all tiles
  KernelsByWay taken;
  std::vector<MatmulConfig> cases;
  if (!compiles_slowly()) {
    cases = {{70, 11, 70, true},
             {33, 70, 9},
             {33, 70, 9, true, true},
             {33, 40, 6, false, true},
             {21, 11, 5}};
  }
  cases.insert(
      cases.end(),
      {{5, 17, 3, true, false}, {1, 300, 19}, {29, 1, 4, false, true}, {1, 1, 0}, {3, 4, 0}});
  for (const MatmulConfig& c : cases) expect_equal({c, {c.m, c.n}}, taken);
  if (compiles_slowly()) return;
  std::set<std::string> all = {"matmul_128x128_block", "matmul_64x64_block", "matmul_32x32_block",
                               "matmul_general"};
  const bool has_cpu_class = device_classes().front() == DeviceClass::kCpu;
  const std::set<std::string> of_cpus = {"matmul_6x64",         "matmul_12x32",
                                         "matmul_8x48",         "matmul_6x16",
                                         "matmul_4x24",         "matmul_4x24_chunks",
                                         "matmul_5x16",         "matmul_5x16_chunks",
                                         "matmul_6x16_chunks",  "matmul_1x64_chunks",
                                         "matmul_6x64_strided", "matmul_6x16_strided",
                                         "matmul_16x32_turned", "matmul_16x16_turned",
                                         "matmul_16x16_short",  "matmul_16x16_short_narrow",
                                         "matmul_6x64_chunks",  "matmul_6x64_chunks_strided"};
  if (has_cpu_class) all.insert(of_cpus.begin(), of_cpus.end());
  std::set<std::string> kernels;
  for (const auto& [way, kernel] : taken) kernels.insert(kernel);
  EXPECT_EQ(kernels, all);
}

TEST(FusedMatmul, Batches) {
  KernelsByWay taken;
  if (compiles_slowly()) {
    return expect_equal({in_batches({3, 16, 2}, 2), {2, 3, 16}}, taken);
  }
  expect_equal({in_batches({18, 35, 9, false, true}, 3), {3, 18, 35}}, taken);
  expect_equal({in_batches({7, 64, 5}, 2), {1, 2, 7, 64}}, taken);
}

// A matrix times a vector has kernels that are not compiled anew.
TEST(FusedMatmul, ProductsWithoutATileComeBeforeTheirChain) {
  const Case one({64, 10, 512, false, true}, {64, 10});
  const Plan plan = plan_fused_matmul(DeviceClass::kCpu, one.config, one.chain);
  EXPECT_EQ(plan.launches.size(), 2);
  EXPECT_EQ(one.run(plan), one.apart(DeviceClass::kCpu));
}

TEST(FusedMatmul, EmptyProductsLaunchNothing) {
  EXPECT_TRUE(plan_fused_matmul(DeviceClass::kCpu, {0, 4, 3}, make_chain({0, 4})).launches.empty());
}

TEST(FusedMatmul, NanAndInfinityPassThrough) {
  const float inf = INFINITY;
  FusedPointwise chain;
  const TensorType type{DType::kF32, {1, 16}};
  chain.inputs = {type};
  chain.steps = {{"relu", {input(0)}, type}, {"neg", {step(0)}, type}};
  chain.outputs = {1};
  std::vector<float> b(16, 1.0f);
  b[1] = inf, b[2] = -inf, b[3] = NAN, b[4] = -1;
  const auto got = run_plan(plan_fused_matmul(DeviceClass::kCpu, {1, 16, 1}, chain),
                            {f32({1, 1}, {2}), f32({1, 16}, b)}, type)
                       .as<float>();
  EXPECT_EQ(got[0], -2);
  EXPECT_EQ(got[1], -inf);
  EXPECT_EQ(got[2], 0);
  EXPECT_TRUE(std::isnan(got[3]));
  EXPECT_EQ(got[4], 0);
}

TEST(FusedMatmul, RefusesWrongChains) {
  const MatmulConfig config{4, 16, 3};
  const auto message = [&](const MatmulConfig& c, const FusedPointwise& chain) -> std::string {
    try {
      plan_fused_matmul(DeviceClass::kCpu, c, chain);
    } catch (const device::Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  FusedPointwise chain = make_chain({4, 16});
  chain.inputs[2].shape = {4, 1};
  EXPECT_NE(message(config, chain).find("[4, 1] beside a product of [4, 16]"), std::string::npos);
  chain = make_chain({4, 16});
  chain.outputs = {0};
  EXPECT_NE(message(config, chain).find("takes no such chain"), std::string::npos);
  MatmulConfig with_bias = config;
  with_bias.has_bias = true;
  EXPECT_NE(message(with_bias, make_chain({4, 16})).find("no such chain"), std::string::npos);
}

TEST(FusedMatmul, SameChainSamePlan) {
  const MatmulConfig config{40, 70, 9};
  const FusedPointwise chain = make_chain({40, 70});
  for (DeviceClass c : device_classes()) {
    EXPECT_TRUE(
        same_launches(plan_fused_matmul(c, config, chain), plan_fused_matmul(c, config, chain)));
    // Compiled anew, after other kernels: the names in its source are the same, and so is its id.
    const MatmulChoice general{false};
    const auto text = [&] {
      return plan_matmul_as(c, config, general, &chain).launches[0].source->text;
    };
    const std::string first = text();
    EXPECT_EQ(text(), first);
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
