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

template <class T, class I>
void check_gather(const Case& c, Picks picks, DType dtype, DType index_dtype) {
  const Shape shape = picked_shape(c, picks);
  if (is_too_large(elements(shape) + elements(c.table))) return;
  std::vector<T> table(elements(c.table)), expected(elements(shape), T{0});
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<T>(i * 7 + 1);
  const auto indices = make_indices<I>(elements(c.indices), c.table[c.axis]);
  for_each_pick(c, picks, indices,
                [&](int64_t place, int64_t element) { expected[place] = table[element]; });
  const HostTensor input(dtype, c.table, table), numbers(index_dtype, c.indices, indices);
  for (DeviceClass device_class : kClasses) {
    const TensorType type{dtype, shape};
    const Plan plan = plan_gather(device_class, picks, input.type, numbers.type, c.axis, type);
    EXPECT_EQ(run_plan(plan, {input, numbers}, type).as<T>(), expected)
        << class_name(device_class) << " " << to_string(c.table) << " " << to_string(c.indices);
  }
}

template <class I>
void check_scatter(const Case& c, Picks picks, DType index_dtype, bool has_table) {
  const Shape shape = picked_shape(c, picks);
  if (is_too_large(elements(shape) + elements(c.table))) return;
  const HostTensor table = random_f32(c.table, 1), updates = random_f32(shape, 2);
  const auto indices = make_indices<I>(elements(c.indices), c.table[c.axis]);
  const HostTensor numbers(index_dtype, c.indices, indices);
  // The same additions in the same order: equal bit for bit.
  std::vector<float> expected(elements(c.table), 0.0f);
  if (has_table) expected = table.as<float>();
  const auto values = updates.as<float>();
  for_each_pick(c, picks, indices,
                [&](int64_t place, int64_t element) { expected[element] += values[place]; });
  std::vector<HostTensor> inputs{numbers, updates};
  if (has_table) inputs.insert(inputs.begin(), table);
  for (DeviceClass device_class : kClasses) {
    const Plan plan = plan_scatter_add(device_class, picks, has_table, numbers.type, updates.type,
                                       c.axis, table.type);
    EXPECT_EQ(run_plan(plan, inputs, table.type).as<float>(), expected)
        << class_name(device_class) << " " << to_string(c.table) << " " << to_string(c.indices);
    if (!has_table) continue;
    EXPECT_EQ(run_plan(plan, inputs, table.type, 0).as<float>(), expected) << "in place";
  }
}

const Case kRowCases[] = {
    {{5}, 0, {9}},           {{7, 3}, 0, {4, 2}},       {{3, 7}, 1, {5}},
    {{2, 5, 33}, 1, {9}},    {{1, 16}, 0, {1}},         {{100, 257}, 0, {300}},
    {{40, 64}, 0, {}},       {{2, 3, 500}, 2, {700}},   {{5000, 48}, 0, {2000}},
    {{300, 1}, 0, {64, 31}}, {{0, 4}, 0, {3}},          {{4, 0}, 0, {3}},
    {{4, 17}, 0, {0}},       {{20, 6, 128}, 1, {2, 7}}, {{3000, 256}, 0, {4100}},
    {{19, 300}, 1, {5, 50}},
};
const Case kElementCases[] = {
    {{6}, 0, {9}},
    {{4, 7}, 1, {4, 3}},
    {{4, 7}, 0, {5, 7}},
    {{3, 5, 33}, 1, {3, 9, 33}},
    {{900, 10}, 1, {900, 1}},
    {{2, 50, 200}, 1, {2, 70, 200}},
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
  }
}

TEST(Index, SmallScatterAdds) {
  for (const Case& c : kRowCases) {
    if (elements(c.table) == 0) continue;
    for (bool has_table : {false, true}) {
      check_scatter<int32_t>(c, Picks::kRows, DType::kI32, has_table);
    }
    check_scatter<int64_t>(c, Picks::kRows, DType::kI64, false);
  }
  for (const Case& c : kElementCases) {
    for (bool has_table : {false, true}) {
      check_scatter<int32_t>(c, Picks::kElements, DType::kI32, has_table);
    }
  }
}

TEST(Index, IndicesBeyond32BitsLieOutside) {
  const HostTensor table = f32({3}, {1, 2, 3});
  const HostTensor far(
      DType::kI64, {4},
      std::vector<int64_t>{int64_t{1} << 32, -(int64_t{1} << 32), -1, (int64_t{1} << 32) + 1});
  for (DeviceClass c : kClasses) {
    const TensorType type{DType::kF32, {4}};
    const Plan plan = plan_gather(c, Picks::kRows, table.type, far.type, 0, type);
    EXPECT_EQ(run_plan(plan, {table, far}, type).as<float>(), (std::vector<float>{0, 0, 3, 0}));
  }
}

TEST(Index, SmallOneHots) {
  struct HotCase {
    Shape indices;
    size_t axis;
    int64_t depth;
  };
  const HotCase cases[] = {{{5}, 1, 3},  {{}, 0, 40}, {{3, 4}, 1, 7}, {{33, 2}, 2, 130},
                           {{70}, 0, 5}, {{4}, 1, 0}, {{0}, 1, 4}};
  for (const HotCase& hot : cases) {
    const auto indices =
        make_indices<int32_t>(elements(hot.indices), std::max<int64_t>(hot.depth, 1));
    Shape shape = hot.indices;
    shape.insert(shape.begin() + static_cast<int64_t>(hot.axis), hot.depth);
    if (is_too_large(elements(shape))) continue;
    std::vector<float> expected;
    for_each_index(shape, [&](std::vector<int64_t> at) {
      const int64_t row = at[hot.axis];
      at.erase(at.begin() + static_cast<int64_t>(hot.axis));
      expected.push_back(indices[broadcast_offset(hot.indices, at)] == row ? 2.0f : -1.0f);
    });
    const HostTensor numbers = i32(hot.indices, indices);
    for (DeviceClass c : kClasses) {
      const TensorType type{DType::kF32, shape};
      const Plan plan = plan_one_hot(c, numbers.type, hot.axis, 2, -1, type);
      EXPECT_EQ(run_plan(plan, {numbers}, type).as<float>(), expected)
          << class_name(c) << " " << to_string(shape);
    }
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
