#include "kernels/test_support.h"

#include <algorithm>
#include <limits>

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
    {{}, {{}, {}}, {}},
    {{1}, {{0}, {1}}, {1}},
    {{3, 0, 2}, {{1, 0, 0}, {1, 1, 1}}, {2, 0, 2}},
    {{1009}, {{5}, {1}}, {997}},
    {{17, 141}, {{16, 140}, {-1, -1}}, {17, 141}},  // flips
    {{2, 31, 135}, {{0, 30, 0}, {1, -1, 1}}, {2, 31, 135}},
    {{1, 13, 1, 144}, {{0, 0, 0, 143}, {1, 1, 1, -1}}, {1, 13, 1, 144}},
    {{5, 1, 164}, {{0, 0, 0}, {1, 1, 1}}, {5, 1, 148}},
    // Whole lines past the caches.
    {{1060, 1040}, {{16, 1039}, {1, -1}}, {1032, 1024}},
    {{1032, 2060}, {{1031, 5}, {-1, 2}}, {1032, 1024}},
};

// PoCL compiles a kernel once more for each size of a GPU's work-groups: what those are for short
// lines, one type shows.
bool has_rare_groups(DeviceClass device_class, int64_t line) {
  return device_class == DeviceClass::kGpu && !is_simulated() && line > 1 && line <= 128;
}

// `two`: how the type has the number 2.
template <class T>
void check_parts(DType dtype, T two = 2) {
  for (const Part& part : kParts) {
    if (is_too_large((sizeof(T) == 4 ? 1 : 10) * elements(part.whole))) continue;
    std::vector<T> whole(elements(part.whole)), small(elements(part.size));
    for (size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<T>(i * 5 + 3);
    for (size_t i = 0; i < small.size(); ++i) small[i] = static_cast<T>(i * 3 + 1);
    std::vector<T> sliced, embedded(whole.size(), two);
    for_each_index(part.size, [&](const std::vector<int64_t>& index) {
      int64_t at = 0;
      for (size_t d = 0; d < index.size(); ++d) {
        at = at * part.whole[d] + part.slice.begin[d] + index[d] * part.slice.steps[d];
      }
      embedded[at] = small[sliced.size()];
      sliced.push_back(whole[at]);
    });
    const HostTensor input(dtype, part.whole, whole), piece(dtype, part.size, small);
    for (DeviceClass c : device_classes()) {
      const int64_t line = small.size() > 1 ? part.size.back() : 1;
      if (sizeof(T) != 4 && has_rare_groups(c, line)) continue;
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
TEST(Region, PartsOfTwoBytes) { check_parts<uint16_t>(DType::kBF16, 0x4000); }
TEST(Region, PartsOfOtherSizes) {
  check_parts<uint8_t>(DType::kU8);
  check_parts<int64_t>(DType::kI64);
}

// What padding with these puts around the part.
TEST(Region, PadsWithEveryKindOfNumber) {
  struct Pad {
    DType dtype;
    double value;
    uint64_t bits;
  };
  const Pad pads[] = {{DType::kF32, NAN, 0x7fc00000},
                      {DType::kF32, -0.0, 0x80000000},
                      {DType::kF32, -INFINITY, 0xff800000},
                      {DType::kBF16, NAN, 0x7fc0},
                      {DType::kBF16, -1.5, 0xbfc0},
                      {DType::kF16, NAN, 0x7e00},
                      {DType::kF16, INFINITY, 0x7c00},
                      {DType::kI64, -2, ~uint64_t{1}},
                      {DType::kBool, 1, 1},
                      {DType::kU8, 255, 255}};
  for (const Pad& pad : pads) {
    const TensorType piece{pad.dtype, {3, 5}}, whole{pad.dtype, {4, 23}};
    HostTensor input(piece), want(whole);
    const size_t size = size_of(pad.dtype);
    for (size_t i = 0; i < 4 * 23; ++i) std::memcpy(&want.bytes[i * size], &pad.bits, size);
    for (size_t row = 0; row < 3; ++row) {
      std::memset(&want.bytes[((row + 1) * 23 + 7) * size], 0, 5 * size);
    }
    for (DeviceClass c : device_classes()) {
      const Plan plan = plan_embed(c, piece, {{1, 7}, {1, 1}}, pad.value, whole);
      EXPECT_EQ(run_plan(plan, {input}, whole).bytes, want.bytes)
          << class_name(c) << " " << name_of(pad.dtype) << " " << pad.value;
    }
  }
}

struct Joint {
  Shape whole;
  size_t axis;
  std::vector<int64_t> extents;  // which make up the axis
};

const Joint kJoints[] = {
    {{6, 85, 2}, 1, {3, 0, 17, 64, 1}},
    {{1}, 0, {1}},
    {{0}, 0, {0, 0}},
    {{4, 0}, 0, {1, 3}},
    {{0, 5}, 1, {2, 3}},
    {{1009}, 0, {1, 1007, 1}},
    {{600}, 0, {287, 313}},
    {{7, 150}, 0, {4, 3}},
    {{7, 300}, 1, {139, 161}},
    {{3, 512}, 1, {256, 256}},
    {{3, 277}, 1, {130, 147}},
    {{2, 13, 131}, 1, {6, 7}},
    {{2, 3, 270}, 2, {137, 133}},
    {{2, 13, 35}, 0, {1, 1}},
    {{1, 1, 190}, 2, {190}},
    {{3, 1, 6, 129}, 2, {1, 2, 3}},
    {{2, 3, 2, 330}, 3, {193, 137}},
    {{3, 520}, 1, {260, 260}},
    {{9, 150}, 0, {1, 1, 1, 1, 1, 1, 1, 1, 1}},  // more than one launch takes
    {{30, 131}, 0, {15, 14, 1}},
    {{31}, 0, {16, 15}},  // short lines
    {{3, 37}, 1, {16, 21}},
    {{2, 13, 5}, 2, {4, 1}},
    {{40, 9}, 1, {1, 1, 1, 1, 1, 1, 1, 1, 1}},
};

// The shortest line that a part moves at once.
int64_t line_of(const Joint& joint) {
  int64_t inner = 1;
  for (size_t d = joint.axis + 1; d < joint.whole.size(); ++d) inner *= joint.whole[d];
  return inner * *std::min_element(joint.extents.begin(), joint.extents.end());
}

// Parts as a host loop cuts them.
template <class T>
void check_joints(DType dtype) {
  for (const Joint& joint : kJoints) {
    if (is_too_large(8 * elements(joint.whole))) continue;
    // Even lines of two bytes are moved by fours.
    if (sizeof(T) == 2 && joint.whole.back() % 2 == 0) continue;
    std::vector<T> all(elements(joint.whole));
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<T>(i * 5 + 3);
    std::vector<TensorType> types;
    std::vector<HostTensor> parts;
    int64_t begin = 0;
    for (int64_t extent : joint.extents) {
      Shape shape = joint.whole;
      shape[joint.axis] = extent;
      std::vector<T> part;
      for_each_index(shape, [&](std::vector<int64_t> index) {
        index[joint.axis] += begin;
        part.push_back(all[broadcast_offset(joint.whole, index)]);
      });
      types.push_back({dtype, shape});
      parts.emplace_back(dtype, shape, part);
      begin += extent;
    }
    const HostTensor whole(dtype, joint.whole, all);
    for (DeviceClass c : device_classes()) {
      if (has_rare_groups(c, line_of(joint))) continue;
      const auto split = run_plan(plan_split(c, whole.type, joint.axis, types), {whole}, types);
      for (size_t i = 0; i < parts.size(); ++i) {
        EXPECT_EQ(split[i].bytes, parts[i].bytes)
            << class_name(c) << " part " << i << " of " << to_string(whole.type);
      }
      const Plan concat = plan_concat(c, types, joint.axis, whole.type);
      EXPECT_EQ(run_plan(concat, parts, whole.type).bytes, whole.bytes)
          << class_name(c) << " " << to_string(whole.type);
    }
  }
}

TEST(Region, JoinsAndSplits) { check_joints<float>(DType::kF32); }
TEST(Region, JoinsAndSplitsTwoBytes) { check_joints<uint16_t>(DType::kBF16); }

// Kernels count in 32 bits, from the buffer's first element.
TEST(Region, RefusesPlacesBeyond32Bits) {
  const auto u8 = [](int64_t count) { return TensorType{DType::kU8, {count}}; };
  const int64_t most = std::numeric_limits<int32_t>::max(), half = 1200000001;
  for (DeviceClass c : device_classes()) {
    EXPECT_THROW(plan_concat(c, {u8(half), u8(half)}, 0, u8(2 * half)), device::Error);
    EXPECT_THROW(plan_split(c, u8(2 * half), 0, {u8(half), u8(half)}), device::Error);
    EXPECT_NO_THROW(plan_concat(c, {u8(most - 6), u8(7)}, 0, u8(most + 1)));
  }
}

TEST(Region, FillsEveryType) {
  for (int64_t count : {1, 6, 33, 4000}) {
    if (is_too_large(8 * count)) continue;
    for (DeviceClass c : device_classes()) {
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
    for (DeviceClass c : device_classes()) {
      const TensorType f{DType::kF32, {count}}, n{DType::kI64, {count}};
      EXPECT_EQ(run_plan(plan_arange(c, f, 0.5, 0.1), {}, f).as<float>(), floats);
      EXPECT_EQ(run_plan(plan_arange(c, n, 7e9, -3), {}, n).as<int64_t>(), wholes);
    }
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
