// Convolutions of GPUs by strips of rows and columns.
#include "kernels/conv/conv_reference.h"

#include <utility>

namespace ballast::kernels::testing {
namespace {

ConvConfig depthwise(Shape x, int64_t kernel, int64_t stride, int64_t pad) {
  const int64_t channels = x[1];
  return make(std::move(x), channels, kernel, stride, pad, 1, channels);
}

// Fewer results than a strip has, as many, and more.
TEST(Conv, StripsOfGpus) {
  check(depthwise({1, 1, 1, 1}, 3, 1, 1));
  check(depthwise({2, 2, 7, 3}, 3, 1, 1));
  check(depthwise({1, 2, 8, 5}, 5, 1, 2));
  check(depthwise({1, 1, 7, 4}, 7, 1, 3));
  check(depthwise({1, 2, 9, 6}, 3, 2, 1));
  check(depthwise({1, 1, 8, 5}, 5, 2, 2));
  check(make({1, 8, 5, 4}, 8, 3, 1, 1, 1, 2));  // four channels at a time
  check(make({1, 2, 5, 4}, 4, 3, 1, 1, 1, 2));
}

TEST(ConvLarge, StripsOfGpus) {
  for (const int64_t stride : {1, 2}) {
    for (const int64_t kernel : {3, 5, 7}) {
      for (const int64_t pad : {0, 1, 2, 3, 8}) {  // beyond the window too
        check(depthwise({2, 3, 13, 17}, kernel, stride, pad));
        check(depthwise({1, 2, 16, 30}, kernel, stride, pad));
      }
      check(depthwise({3, 5, 29, 67}, kernel, stride, kernel / 2));
      check(make({2, 3, 14, 15}, 6, kernel, stride, 1, 1, 3));  // results that share a plane
      check(make({2, 9, 14, 15}, 3, kernel, stride, 1, 1, 3));
    }
  }
  check(make({2, 12, 14, 15}, 12, 3, 1, 1, 1, 3));
  check(make({2, 24, 9, 31}, 12, 3, 1, 2, 1, 3));
  check(make({2, 40, 9, 31}, 4, 3, 1, 1));  // more channels than four go over
  ConvConfig uneven = depthwise({2, 3, 12, 15}, 5, 2, 1);
  uneven.top = 3, uneven.left = 0, uneven.right = 4;
  check(uneven);
  uneven.stride_h = uneven.stride_w = 1;
  check(uneven);
}

// Sums towards the weights in parts.
TEST(ConvLarge, StripsOfGpusInParts) {
  check(depthwise({9, 2, 60, 60}, 3, 1, 1));
  check(depthwise({9, 2, 60, 60}, 7, 1, 3));
  check(depthwise({9, 1, 65, 119}, 3, 2, 1));
  check(make({5, 4, 60, 61}, 4, 3, 1, 1));
}

}  // namespace
}  // namespace ballast::kernels::testing
