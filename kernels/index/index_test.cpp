#include "kernels/test_support.h"

namespace ballast::kernels::testing {
namespace {

struct Case {
  Shape table;
  size_t axis;
  Shape indices;
};

// A few from the end, a few outside.
template <class T>
std::vector<T> make_indices(int64_t count, int64_t rows) {
  std::mt19937 engine(7);
  std::vector<T> indices(count);
  for (T& index : indices) {
    index = static_cast<T>(static_cast<int64_t>(engine() % (2 * rows + 4)) - rows - 2);
  }
  return indices;
}

Shape picked_shape(const Case& c, Picks picks) {
  if (picks == Picks::kElements) return c.indices;
  Shape shape(c.table.begin(), c.table.begin() + static_cast<int64_t>(c.axis));
  shape.insert(shape.end(), c.indices.begin(), c.indices.end());
  shape.insert(shape.end(), c.table.begin() + static_cast<int64_t>(c.axis) + 1, c.table.end());
  return shape;
}

// f(place, element of the table) for every index that lies inside.
template <class T, class F>
void for_each_pick(const Case& c, Picks picks, const std::vector<T>& indices, const F& f) {
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < c.axis; ++d) outer *= c.table[d];
  for (size_t d = c.axis + 1; d < c.table.size(); ++d) inner *= c.table[d];
  const int64_t rows = c.table[c.axis];
  const int64_t count =
      picks == Picks::kElements ? c.indices[c.axis] : static_cast<int64_t>(indices.size());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t x = 0; x < inner; ++x) {
        const int64_t place = (o * count + i) * inner + x;
        int64_t row = indices[picks == Picks::kElements ? place : i];
        if (row < 0) row += rows;
        if (row >= 0 && row < rows) f(place, (o * rows + row) * inner + x);
      }
    }
  }
}

// PoCL compiles a kernel once more for each size of a GPU's work-groups: what those are for few
// columns and lines, one type shows.
bool has_rare_groups(DeviceClass device_class, int64_t columns, int64_t lines) {
  return device_class == DeviceClass::kGpu && !is_simulated() && columns <= 128 &&
         (columns > 1 || lines <= 128);
}

template <class T, class I>
void check_gather(const Case& c, Picks picks, DType dtype, DType index_dtype) {
  const Shape shape = picked_shape(c, picks);
  if (is_too_large((sizeof(T) == 4 ? 3 : 80) * (elements(shape) + elements(c.table)))) return;
  std::vector<T> table(elements(c.table)), expected(elements(shape), T{0});
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<T>(i * 7 + 1);
  const auto indices = make_indices<I>(elements(c.indices), c.table[c.axis]);
  for_each_pick(c, picks, indices,
                [&](int64_t place, int64_t element) { expected[place] = table[element]; });
  const HostTensor input(dtype, c.table, table), numbers(index_dtype, c.indices, indices);
  for (DeviceClass device_class : device_classes()) {
    const int64_t columns =
        elements({c.table.begin() + static_cast<int64_t>(c.axis) + 1, c.table.end()});
    if (sizeof(T) != 4 && has_rare_groups(device_class, columns, elements(c.indices))) continue;
    const TensorType type{dtype, shape};
    const Plan plan = plan_gather(device_class, picks, input.type, numbers.type, c.axis, type);
    EXPECT_EQ(run_plan(plan, {input, numbers}, type).as<T>(), expected)
        << class_name(device_class) << " " << to_string(c.table) << " " << to_string(c.indices);
  }
}

// The bits, of NaN those of one.
std::vector<uint32_t> bits_of(std::vector<float> values) {
  for (float& value : values) {
    if (std::isnan(value)) value = float_of(0x7fc00000);
  }
  return f32({static_cast<int64_t>(values.size())}, values).as<uint32_t>();
}
template <class T>
std::vector<T> bits_of(const std::vector<T>& whole) {
  return whole;
}

// Integers of any bits, so that sums wrap.
HostTensor numbers_for(DType dtype, const Shape& shape, uint32_t seed) {
  if (dtype == DType::kF32) return random_f32(shape, seed);
  HostTensor whole(TensorType{dtype, shape});
  std::mt19937 engine(seed);
  for (uint8_t& byte : whole.bytes) byte = static_cast<uint8_t>(engine());
  return whole;
}

template <class T>
T wrapped_sum(T a, T b) {
  if constexpr (std::is_same_v<T, float>) return a + b;
  return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// T is the elements' type, I the indices'.
template <class T, class I>
void check_scatter(const Case& c, Picks picks, DType dtype, DType index_dtype, bool has_table) {
  const Shape shape = picked_shape(c, picks);
  const bool is_usual = dtype == DType::kF32 && index_dtype == DType::kI32;
  if (is_too_large((is_usual ? 6 : 80) * (elements(shape) + elements(c.table)))) return;
  const HostTensor table = numbers_for(dtype, c.table, 1);
  auto values = numbers_for(dtype, shape, 2).as<T>();
  if constexpr (std::is_same_v<T, float>) {  // only the sums that they enter may show it
    for (size_t i = 5; i < values.size(); i += 97) values[i] = i % 2 ? NAN : INFINITY;
  }
  const HostTensor updates(dtype, shape, values);
  const auto indices = make_indices<I>(elements(c.indices), c.table[c.axis]);
  const HostTensor numbers(index_dtype, c.indices, indices);
  // The same additions in the same order: equal bit for bit.
  std::vector<T> expected(elements(c.table), T{0});
  if (has_table) expected = table.as<T>();
  for_each_pick(c, picks, indices, [&](int64_t place, int64_t element) {
    expected[element] = wrapped_sum(expected[element], values[place]);
  });
  std::vector<HostTensor> inputs{numbers, updates};
  if (has_table) inputs.insert(inputs.begin(), table);
  for (DeviceClass device_class : device_classes()) {
    if (is_too_slow(device_class, 20 * elements(shape))) continue;
    const Plan plan = plan_scatter_add(device_class, picks, has_table, numbers.type, updates.type,
                                       c.axis, table.type);
    for (int target : {-1, 0}) {
      if (target == 0 && !has_table) continue;
      EXPECT_EQ(bits_of(run_plan(plan, inputs, table.type, target).as<T>()), bits_of(expected))
          << class_name(device_class) << " " << to_string(table.type) << " "
          << to_string(numbers.type) << " in place of " << target;
    }
  }
}

const Case kRowCases[] = {
    {{5}, 0, {9}},
    {{7, 3}, 0, {4, 2}},
    {{3, 7}, 1, {5}},
    {{2, 5, 33}, 1, {9}},
    {{1, 16}, 0, {1}},
    {{100, 257}, 0, {300}},
    {{40, 64}, 0, {}},
    {{2, 3, 500}, 2, {700}},
    {{5000, 48}, 0, {2000}},
    {{300, 1}, 0, {64, 31}},
    {{0, 4}, 0, {3}},
    {{4, 0}, 0, {3}},
    {{4, 17}, 0, {0}},
    {{20, 6, 128}, 1, {2, 7}},
    {{3000, 256}, 0, {4100}},
    {{19, 300}, 1, {5, 50}},
    {{1}, 0, {1}},
    {{1009}, 0, {997}},
    {{0}, 0, {5}},
    {{3, 0, 7}, 1, {2}},
    {{7, 31}, 0, {13}},
    {{3, 1, 48}, 1, {2, 5}},
};
const Case kElementCases[] = {
    {{6}, 0, {9}},
    {{4, 7}, 1, {4, 3}},
    {{4, 7}, 0, {5, 7}},
    {{3, 5, 33}, 1, {3, 9, 33}},
    {{900, 10}, 1, {900, 1}},
    {{2, 50, 200}, 1, {2, 70, 200}},
    {{1}, 0, {1}},
    {{1}, 0, {13}},
    {{5}, 0, {0}},
    {{0}, 0, {3}},
    {{4, 3}, 1, {4, 0}},
    {{0, 3}, 1, {0, 2}},
    {{3, 0}, 0, {2, 0}},
    {{0, 3}, 0, {2, 3}},
    {{17, 1}, 0, {31, 1}},
    {{2, 3, 5, 7}, 2, {2, 3, 11, 7}},
    {{2, 3, 5, 7}, 3, {2, 3, 5, 2}},
    {{31, 16}, 0, {7, 16}},
    {{13, 64}, 0, {29, 64}},
    {{1, 1009}, 1, {1, 997}},
    {{3, 129}, 1, {3, 260}},
};

TEST(Index, SmallGathers) {
  for (const Case& c : kRowCases) {
    check_gather<float, int32_t>(c, Picks::kRows, DType::kF32, DType::kI32);
  }
  for (const Case& c : kElementCases) {
    check_gather<float, int32_t>(c, Picks::kElements, DType::kF32, DType::kI32);
  }
}

TEST(Index, GathersOfOtherSizes) {
  for (const Case& c : kRowCases) {
    check_gather<uint8_t, int64_t>(c, Picks::kRows, DType::kU8, DType::kI64);
    check_gather<uint16_t, int32_t>(c, Picks::kRows, DType::kBF16, DType::kI32);
    check_gather<int64_t, int32_t>(c, Picks::kRows, DType::kI64, DType::kI32);
  }
  for (const Case& c : kElementCases) {
    check_gather<uint8_t, int64_t>(c, Picks::kElements, DType::kU8, DType::kI64);
    check_gather<uint16_t, int32_t>(c, Picks::kElements, DType::kF16, DType::kI32);
    check_gather<int64_t, int64_t>(c, Picks::kElements, DType::kI64, DType::kI64);
  }
}

TEST(Index, SmallScatterAdds) {
  for (bool has_table : {false, true}) {
    for (const Case& c : kRowCases) {
      check_scatter<float, int32_t>(c, Picks::kRows, DType::kF32, DType::kI32, has_table);
    }
    for (const Case& c : kElementCases) {
      check_scatter<float, int32_t>(c, Picks::kElements, DType::kF32, DType::kI32, has_table);
    }
  }
}

TEST(Index, ScatterAddsOfOtherTypes) {
  for (const Case& c : kRowCases) {
    check_scatter<float, int64_t>(c, Picks::kRows, DType::kF32, DType::kI64, false);
    check_scatter<int32_t, int32_t>(c, Picks::kRows, DType::kI32, DType::kI32, true);
    check_scatter<int64_t, int32_t>(c, Picks::kRows, DType::kI64, DType::kI32, true);
    check_scatter<uint8_t, int32_t>(c, Picks::kRows, DType::kU8, DType::kI32, false);
  }
  for (const Case& c : kElementCases) {
    if (is_simulated()) break;  // the kernels are those of rows
    check_scatter<float, int64_t>(c, Picks::kElements, DType::kF32, DType::kI64, true);
    check_scatter<int32_t, int32_t>(c, Picks::kElements, DType::kI32, DType::kI32, false);
  }
}

TEST(Index, IndicesBeyond32BitsLieOutside) {
  const HostTensor table = f32({3}, {1, 2, 3});
  const HostTensor far(
      DType::kI64, {4},
      std::vector<int64_t>{int64_t{1} << 32, -(int64_t{1} << 32), -1, (int64_t{1} << 32) + 1});
  for (DeviceClass c : device_classes()) {
    const TensorType type{DType::kF32, {4}};
    const Plan plan = plan_gather(c, Picks::kRows, table.type, far.type, 0, type);
    EXPECT_EQ(run_plan(plan, {table, far}, type).as<float>(), (std::vector<float>{0, 0, 3, 0}));
  }
}

struct HotCase {
  Shape indices;
  size_t axis;
  int64_t depth;
};

const HotCase kHotCases[] = {
    {{5}, 1, 3},       {{}, 0, 40},   {{3, 4}, 1, 7},    {{33, 2}, 2, 130},  {{70}, 0, 5},
    {{4}, 1, 0},       {{0}, 1, 4},   {{1}, 0, 1},       {{}, 0, 1},         {{257}, 1, 10},
    {{13, 7}, 0, 11},  {{31}, 1, 16}, {{31}, 1, 17},     {{2, 3, 5}, 2, 19}, {{2, 3, 5}, 3, 33},
    {{2, 0, 5}, 1, 3}, {{64}, 1, 1},  {{1, 1, 9}, 0, 2}, {{16}, 0, 48},      {{7, 1}, 1, 127},
    {{1009}, 1, 3},    {{7}, 1, 131}, {{3, 5}, 2, 200},  {{2, 3}, 0, 144},
};

// `on` and `off` are how the type has 2 and 3.
template <class T, class I>
void check_one_hots(DType dtype, DType index_dtype, T on = 2, T off = 3) {
  const bool is_usual = dtype == DType::kF32 && index_dtype == DType::kI32;
  for (const HotCase& hot : kHotCases) {
    const auto indices = make_indices<I>(elements(hot.indices), std::max<int64_t>(hot.depth, 1));
    Shape shape = hot.indices;
    shape.insert(shape.begin() + static_cast<int64_t>(hot.axis), hot.depth);
    if (is_too_large((is_usual ? 4 : 80) * elements(shape))) continue;
    std::vector<T> expected;
    for_each_index(shape, [&](std::vector<int64_t> at) {
      const int64_t row = at[hot.axis];
      at.erase(at.begin() + static_cast<int64_t>(hot.axis));
      expected.push_back(indices[broadcast_offset(hot.indices, at)] == row ? on : off);
    });
    const HostTensor numbers(index_dtype, hot.indices, indices);
    const TensorType type{dtype, shape};
    for (DeviceClass c : device_classes()) {
      if (sizeof(T) != 4 && has_rare_groups(c, hot.depth, 1)) continue;
      const Plan plan = plan_one_hot(c, numbers.type, hot.axis, 2, 3, type);
      EXPECT_EQ(run_plan(plan, {numbers}, type).template as<T>(), expected)
          << class_name(c) << " " << to_string(type) << " " << name_of(index_dtype);
    }
  }
}

TEST(Index, SmallOneHots) { check_one_hots<float, int32_t>(DType::kF32, DType::kI32); }

TEST(Index, OneHotsOfOtherTypes) {
  check_one_hots<float, int64_t>(DType::kF32, DType::kI64);
  check_one_hots<uint16_t, int32_t>(DType::kBF16, DType::kI32, 0x4000, 0x4040);
  check_one_hots<uint16_t, int64_t>(DType::kF16, DType::kI64, 0x4000, 0x4200);
  check_one_hots<uint8_t, int32_t>(DType::kU8, DType::kI32);
  check_one_hots<int64_t, int64_t>(DType::kI64, DType::kI64);
}

}  // namespace
}  // namespace ballast::kernels::testing
