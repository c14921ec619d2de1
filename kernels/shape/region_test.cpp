#include "kernels/test_support.h"

#include <limits>
#include <numeric>

namespace ballast::kernels::testing {
namespace {

struct Part {
  Shape whole;
  Slice slice;
  Shape size;
};

const Part kParts[] = {
    {{7}, {{2}, {1}}, {3}},
    {{40}, {{39}, {-1}}, {40}},
    {{5, 6}, {{4, 1}, {-2, 2}}, {3, 2}},
    {{9, 70}, {{1, 3}, {1, 1}}, {7, 61}},  // vectors that move inwards
    {{9, 70}, {{0, 0}, {1, 3}}, {9, 24}},  // every third
    {{9, 70}, {{0, 1}, {1, 2}}, {9, 35}},  // every other, to the last element
    {{9, 70}, {{8, 0}, {-1, 2}}, {9, 32}},
    {{9, 70}, {{0, 68}, {1, -1}}, {9, 69}},  // backwards
    {{9, 70}, {{0, 15}, {1, -1}}, {9, 16}},
    {{3, 20, 33}, {{0, 1, 1}, {1, 1, 1}}, {3, 18, 31}},
    {{64, 600}, {{1, 7}, {2, 1}}, {30, 590}},  // several groups
    {{4, 5}, {{0, 0}, {1, 1}}, {4, 5}},
    {{4, 5}, {{0, 0}, {1, 1}}, {0, 5}},
};

template <class T>
void check_parts(DType dtype) {
  for (const Part& part : kParts) {
    if (is_too_large(elements(part.whole))) continue;
    std::vector<T> whole(elements(part.whole)), small(elements(part.size));
    for (size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<T>(i * 5 + 3);
    for (size_t i = 0; i < small.size(); ++i) small[i] = static_cast<T>(i * 3 + 1);
    std::vector<T> sliced, embedded(whole.size(), T{2});
    for_each_index(part.size, [&](const std::vector<int64_t>& index) {
      int64_t at = 0;
      for (size_t d = 0; d < index.size(); ++d) {
        at = at * part.whole[d] + part.slice.begin[d] + index[d] * part.slice.steps[d];
      }
      embedded[at] = small[sliced.size()];
      sliced.push_back(whole[at]);
    });
    const HostTensor input(dtype, part.whole, whole), piece(dtype, part.size, small);
    for (DeviceClass c : kClasses) {
      const Plan slice = plan_slice(c, input.type, part.slice, piece.type);
      EXPECT_EQ(run_plan(slice, {input}, piece.type).template as<T>(), sliced)
          << class_name(c) << " " << to_string(part.size);
      const Plan embed = plan_embed(c, piece.type, part.slice, 2, input.type);
      EXPECT_EQ(run_plan(embed, {piece}, input.type).template as<T>(), embedded)
          << class_name(c) << " " << to_string(part.size);
    }
  }
}

TEST(Region, Parts) { check_parts<int32_t>(DType::kI32); }
TEST(Region, PartsOfOtherSizes) {
  check_parts<uint8_t>(DType::kU8);
  check_parts<int64_t>(DType::kI64);
}

TEST(Region, JoinsAndSplits) {
  const std::vector<int64_t> extents = {3, 0, 17, 64, 1};
  const Shape whole{6, std::accumulate(extents.begin(), extents.end(), int64_t{0}), 2};
  const HostTensor all = random_f32(whole, 3);
  std::vector<TensorType> types;
  for (int64_t extent : extents) types.push_back({DType::kF32, {6, extent, 2}});
  for (DeviceClass c : kClasses) {
    const auto parts = run_plan(plan_split(c, all.type, 1, types), {all}, types);
    EXPECT_EQ(parts[3].as<float>()[0], all.as<float>()[20 * 2]);
    const HostTensor joined = run_plan(plan_concat(c, types, 1, all.type), parts, all.type);
    EXPECT_EQ(joined.as<float>(), all.as<float>()) << class_name(c);
  }
}

// Kernels count in 32 bits, from the buffer's first element.
TEST(Region, RefusesPlacesBeyond32Bits) {
  const auto u8 = [](int64_t count) { return TensorType{DType::kU8, {count}}; };
  const int64_t most = std::numeric_limits<int32_t>::max(), half = 1200000001;
  for (DeviceClass c : kClasses) {
    EXPECT_THROW(plan_concat(c, {u8(half), u8(half)}, 0, u8(2 * half)), device::Error);
    EXPECT_THROW(plan_split(c, u8(2 * half), 0, {u8(half), u8(half)}), device::Error);
    EXPECT_NO_THROW(plan_concat(c, {u8(most - 6), u8(7)}, 0, u8(most + 1)));
  }
}

TEST(Region, FillsEveryType) {
  for (int64_t count : {1, 6, 33, 4000}) {
    for (DeviceClass c : kClasses) {
      const auto filled = [&](DType dtype, double value) {
        const TensorType type{dtype, {count}};
        return run_plan(plan_fill(c, type, value), {}, type);
      };
      const size_t n = static_cast<size_t>(count);
      EXPECT_EQ(filled(DType::kF32, -0.1).as<float>(), std::vector<float>(n, -0.1f));
      EXPECT_EQ(filled(DType::kI64, -5e12).as<int64_t>(), std::vector<int64_t>(n, -5000000000000));
      EXPECT_EQ(filled(DType::kU8, 200).as<uint8_t>(), std::vector<uint8_t>(n, 200));
      EXPECT_EQ(filled(DType::kBool, 0.5).as<uint8_t>(), std::vector<uint8_t>(n, 1));
      // 1 + 2^-8 lies between two bf16 and goes to the even one; 65520 is the first f16 infinity.
      EXPECT_EQ(filled(DType::kBF16, 1.00390625).as<uint16_t>(), std::vector<uint16_t>(n, 0x3f80));
      EXPECT_EQ(filled(DType::kF16, -65520).as<uint16_t>(), std::vector<uint16_t>(n, 0xfc00));
      EXPECT_EQ(filled(DType::kF16, 0x1p-24).as<uint16_t>(), std::vector<uint16_t>(n, 1));
      EXPECT_EQ(filled(DType::kF16, NAN).as<uint16_t>(), std::vector<uint16_t>(n, 0x7e00));
    }
  }
}

TEST(Region, Aranges) {
  for (int64_t count : {0, 1, 17, 20000}) {
    if (is_too_large(count)) continue;
    std::vector<float> floats;
    std::vector<int64_t> wholes;
    for (int64_t i = 0; i < count; ++i) {
      floats.push_back(0.5f + static_cast<float>(i) * 0.1f);
      wholes.push_back(7000000000 - 3 * i);
    }
    for (DeviceClass c : kClasses) {
      const TensorType f{DType::kF32, {count}}, n{DType::kI64, {count}};
      EXPECT_EQ(run_plan(plan_arange(c, f, 0.5, 0.1), {}, f).as<float>(), floats);
      EXPECT_EQ(run_plan(plan_arange(c, n, 7e9, -3), {}, n).as<int64_t>(), wholes);
    }
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
