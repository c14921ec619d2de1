#include "kernels/test_support.h"

namespace ballast::kernels::testing {
namespace {

struct View {
  Shape shape;
  std::vector<int64_t> strides;
};

const View kViews[] = {
    {{}, {}},
    {{5}, {1}},
    {{5}, {0}},
    {{3, 4}, {1, 3}},                                     // transpose
    {{67, 129}, {1, 67}},                                 // transpose beyond one tile
    {{16, 32}, {32, 1}},                                  // dense
    {{4, 32}, {0, 1}},                                    // repeated rows
    {{4, 32}, {1, 0}},                                    // repeated columns
    {{2, 3, 4}, {1, 8, 2}},                               // permuted
    {{2, 3, 4, 5}, {1, 2, 6, 24}},                        // reversed
    {{2, 3, 2, 3, 2, 3}, {1, 2, 6, 12, 36, 72}},          // reversed
    {{2, 2, 3, 2, 3, 2, 3}, {1, 2, 4, 12, 24, 72, 144}},  // more loops than a kernel has
    {{16, 16}, {1, 16}},                                  // one block
    {{17, 31}, {1, 17}},                                  // blocks that move inwards
    {{3, 40, 5, 33}, {1, 3, 3 * 40 * 33, 3 * 40}},
    {{5, 33, 40}, {33 * 40, 1, 33}},  // batched transpose
    {{70000, 2, 3}, {6, 1, 2}},       // more than 16 bits count
    {{300, 129}, {1, 300}},           // several groups
    {{1030, 1024}, {1, 1030}},        // whole lines past the caches
    {{12, 40}, {1, 12}},              // short rows
    {{40, 9}, {1, 40}},
    {{4, 19, 8, 24}, {19 * 192, 24, 19 * 24, 1}},
    {{9, 250}, {257, 1}},  // 64 lanes at a time, and 32
    {{9, 250}, {1, 0}},
    {{9, 61}, {70, 1}},
    // Rows of 8 lanes at a time, and of 4.
    {{50, 8}, {9, 1}},
    {{50, 15}, {31, 1}},
    {{50, 4}, {5, 1}},
    {{50, 7}, {9, 1}},
    {{51, 8}, {17, 2}},
    {{51, 13}, {26, 2}},
    {{51, 4}, {8, 2}},
    {{51, 7}, {13, 2}},
    {{9, 61}, {1, 0}},
    // Few channels, from and to the inside of pixels: one block, several that move inwards, less
    // than one.
    {{2, 16}, {1, 2}},
    {{3, 17}, {1, 3}},
    {{4, 61}, {1, 4}},
    {{16, 2}, {1, 16}},
    {{31, 3}, {1, 31}},
    {{101, 4}, {1, 101}},
    {{3, 7}, {1, 3}},
    {{7, 4}, {1, 7}},
    {{3, 3}, {1, 3}},
    {{2, 3, 19, 23}, {19 * 23 * 3, 1, 23 * 3, 3}},
    {{2, 19, 23, 3}, {19 * 23 * 3, 23, 1, 19 * 23}},
    {{5, 3, 7, 18}, {7 * 20 * 3, 1, 20 * 3, 3}},  // rows of pixels that are not all of a row
    {{5, 7, 18, 4}, {4 * 7 * 20, 20, 1, 7 * 20}},
    {{3, 37}, {1, 4}},           // three channels of four
    {{700, 3, 18}, {54, 1, 3}},  // several groups of small images
    {{700, 18, 3}, {54, 1, 18}},
    {{3, 30011}, {1, 3}},  // several groups of an image
    {{30011, 3}, {1, 30011}},
    {{3, 360000}, {1, 3}},  // whole lines past the caches
    {{360000, 3}, {1, 360000}},
    // Groups of a loop from further out.
    {{2, 37, 3, 4, 32}, {4 * 37 * 32, 32, 2 * 4 * 37 * 32, 37 * 32, 1}},
    {{2, 1100, 3, 4, 32}, {4 * 1100 * 32, 32, 2 * 4 * 1100 * 32, 1100 * 32, 1}},
    // Whole lines past the caches.
    {{1030, 1024}, {1040, 1}},
    {{1540, 1536}, {1536, 0}},
    {{2, 1400, 3, 4, 32}, {4 * 1400 * 32, 32, 2 * 4 * 1400 * 32, 1400 * 32, 1}},
    {{70000}, {1}},
    {{33, 3000}, {3000, 1}},
    {{0, 3}, {3, 1}},
    {{1}, {1}},
    {{2, 0, 5}, {0, 5, 1}},
    {{7, 1, 13}, {0, 0, 1}},  // broadcasts of rows, columns and a scalar
    {{3, 31, 2}, {2, 0, 1}},
    {{11, 17}, {0, 0}},
};

template <class T>
void check_copies(DType dtype) {
  for (const View& view : kViews) {
    if (is_too_large((sizeof(T) == 4 ? 1 : 10) * elements(view.shape))) continue;
    int64_t last = 0;
    for (size_t d = 0; d < view.shape.size(); ++d) last += (view.shape[d] - 1) * view.strides[d];
    std::vector<T> source(elements(view.shape) > 0 ? last + 1 : 0);
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<T>(i * 7 + 1);
    const HostTensor input(dtype, {static_cast<int64_t>(source.size())}, source);
    for (DeviceClass c : device_classes()) {
      const TensorType type{dtype, view.shape};
      const Plan plan = plan_copy(c, dtype, view.shape, view.strides);
      const auto got = run_plan(plan, {input}, type).as<T>();
      size_t at = 0;
      for_each_index(view.shape, [&](const std::vector<int64_t>& index) {
        int64_t from = 0;
        for (size_t d = 0; d < index.size(); ++d) from += index[d] * view.strides[d];
        EXPECT_EQ(got[at++], source[from]) << class_name(c) << " " << to_string(view.shape);
      });
    }
  }
}

TEST(Copy, OneByte) { check_copies<uint8_t>(DType::kU8); }
TEST(Copy, TwoBytes) { check_copies<uint16_t>(DType::kF16); }
TEST(Copy, FourBytes) { check_copies<float>(DType::kF32); }
TEST(Copy, EightBytes) { check_copies<int64_t>(DType::kI64); }

}  // namespace
}  // namespace ballast::kernels::testing
