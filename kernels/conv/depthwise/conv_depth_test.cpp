// Depthwise convolutions of every kind of kernel.
#include "kernels/conv/conv_reference.h"
#include "kernels/plan/registers.h"

namespace ballast::kernels::testing {
namespace {

TEST(ConvLarge, DepthwiseRowsInEitherVectors) {
  for (int64_t registers : tested_registers()) {
    const RegistersScope scope(registers);
    for (int64_t width : {8, 9, 11, 16, 23, 40, 64})
      check(make({2, 5, 9, width}, 5, 3, 1, 1, 1, 5));
    for (int64_t height : {4, 5, 6, 9}) check(make({2, 9, height, 28}, 18, 5, 1, 2, 1, 9));
    for (int64_t width : {8, 9, 10, 15, 16, 17, 18, 23, 24, 25, 26, 31, 32}) {
      check(make({2, 9, 9, width}, 9, 5, 1, 2, 1, 9));
    }
  }
}

// A row to each vector, and two; squares that have a kernel, and others.
TEST(Conv, DepthwiseInPlace) {
  check(make({2, 3, 14, 14}, 3, 3, 1, 1, 1, 3));
  check(make({2, 3, 7, 7}, 3, 3, 1, 1, 1, 3));
  check(make({1, 65, 6, 6}, 65, 3, 1, 1, 1, 65));  // weights of two planes at a time
  check(make({1, 2, 6, 6}, 2, 5, 1, 2, 1, 2));     // both in a register
  check(make({2, 4, 7, 7}, 4, 3, 1, 1, 1, 4));
  check(make({1, 2, 8, 8}, 2, 3, 1, 1, 1, 2));
  check(make({1, 2, 4, 10}, 2, 7, 1, 3, 1, 2));
  check(make({1, 2, 5, 18}, 2, 5, 1, 2, 1, 2));
  check(make({1, 2, 7, 17}, 2, 5, 1, 2, 1, 2));  // blocks of rows in registers
  check(make({1, 2, 8, 16}, 2, 3, 2, 1, 1, 2));
  check(make({1, 1, 8, 34}, 1, 3, 2, 1, 1, 1));
  check(make({2, 3, 14, 14}, 3, 3, 2, 1, 1, 3));  // halved squares of one and of two vectors
  check(make({1, 2, 16, 16}, 2, 5, 2, 2, 1, 2));
  check(make({1, 2, 28, 28}, 2, 3, 2, 1, 1, 2));
  check(make({1, 2, 5, 17}, 2, 3, 1, 1, 1, 2));
  check(make({1, 1, 4, 72}, 1, 3, 1, 1, 1, 1));  // copied, in lines
}

TEST(ConvLarge, DepthwiseSmallSquares) {
  for (int64_t registers : tested_registers()) {
    const RegistersScope scope(registers);
    for (int64_t side = 4; side <= 15; ++side) {
      check(make({3, 11, side, side}, 11, 3, 1, 1, 1, 11));
      check(make({1, 72, side, side}, 72, 3, 1, 1, 1, 72));
      check(make({2, 163, side, side}, 163, 3, 1, 1, 1, 163));
      check(make({3, 11, side, side}, 11, 5, 1, 2, 1, 11));
      check(make({2, 163, side, side}, 163, 5, 1, 2, 1, 163));
      check(make({2, 5, side, side}, 10, 3, 1, 1, 1, 5));
    }
    for (int64_t side : {6, 7, 8}) {  // two planes side by side, several such pairs to a group
      check(make({3, 166, side, side}, 166, 3, 1, 1, 1, 166));
      check(make({2, 166, side, side}, 166, 5, 1, 2, 1, 166));
    }
  }
}

TEST(ConvLarge, DepthwiseHalvedSquares) {
  for (int64_t side : {14, 16, 20, 24, 28, 32}) {
    check(make({3, 11, side, side}, 11, 3, 2, 1, 1, 11));
    check(make({2, 72, side, side}, 72, 5, 2, 2, 1, 72));
    check(make({1, 163, side, side}, 163, 3, 2, 1, 1, 163));
    check(make({2, 7, side, side}, 7, 5, 2, 2, 1, 7));
  }
}

// dx of 5x5 two apart, by couples of pixels.
TEST(ConvLarge, DepthwiseCouples) {
  for (int64_t registers : tested_registers()) {
    const RegistersScope scope(registers);
    for (int64_t pad : {0, 1, 2}) check(make({2, 7, 12, 36}, 7, 5, 2, pad, 1, 7));
    check(make({1, 33, 6, 20}, 33, 5, 2, 2, 1, 33));
    check(make({2, 7, 20, 36}, 7, 5, 2, 2, 1, 7));
    check(
        make({1, 3, 202, 150}, 3, 5, 2, 2, 1, 3));  // blocks of rows, of which the last moves back
    ConvConfig lopsided = make({2, 5, 10, 40}, 5, 5, 2, 1, 1, 5);
    lopsided.left = lopsided.bottom = lopsided.right = 2;
    check(lopsided);
  }
}

// Towards the input the phases of one convolution.
TEST(ConvLarge, DepthwisePhases) {
  check(make({2, 7, 20, 36}, 7, 4, 2, 1, 1, 7));
  check(make({1, 4, 10, 48}, 4, 4, 2, 1, 1, 4));
  ConvConfig lopsided = make({1, 3, 8, 40}, 3, 5, 2, 2, 1, 3);
  lopsided.stride_h = 1, lopsided.kernel_h = 2, lopsided.top = 1, lopsided.bottom = 0;
  check(lopsided);
}

// Rows of one block, of two that overlap or not, and more; planes in one strip and in several.
TEST(ConvLarge, DepthwiseTurned) {
  for (int64_t registers : tested_registers()) {
    const RegistersScope scope(registers);
    for (int64_t width : {7, 8, 9, 11, 16, 17, 34, 37}) {
      check(make({3, 19, 8, width}, 19, 7, 1, 3, 1, 19));
      check(make({2, 8, 5, width}, 8, 5, 1, 2, 1, 8));
    }
    check(make({2, 40, 7, 7}, 40, 7, 1, 3, 1, 40));
    check(make({3, 17, 7, 7}, 17, 5, 1, 2, 1, 17));
    check(make({2, 5, 14, 14}, 5, 7, 1, 3, 1, 5));
    check(make({1, 2, 8, 125}, 2, 5, 1, 2, 1, 2));
    check(make({2, 9, 40, 40}, 9, 7, 1, 3, 1, 9));
    check(make({1, 17, 60, 44}, 17, 5, 1, 2, 1, 17));
    check(make({1, 3, 4, 100}, 3, 7, 1, 3, 1, 3));
  }
}

// Whole vectors of results, whole groups of four rows, and more.
TEST(ConvLarge, DepthwiseHalves) {
  for (int64_t registers : tested_registers()) {
    const RegistersScope scope(registers);
    for (int64_t width : {16, 18, 30, 32, 46, 56, 112}) {
      check(make({2, 11, 8, width}, 11, 3, 2, 1, 1, 11));
      check(make({1, 5, 14, width}, 5, 3, 2, 1, 1, 5));
      check(make({2, 11, 8, width}, 11, 5, 2, 2, 1, 11));  // y with AVX-512
    }
  }
  check(make({1, 3, 22, 94}, 3, 5, 2, 2, 1, 3));      // rows and vectors twice
  check(make({2, 19, 56, 56}, 19, 5, 2, 2, 1, 19));   // with AVX2 turned, in strips
  check(make({8, 48, 64, 128}, 48, 3, 2, 1, 1, 48));  // dx past the caches
}

TEST(ConvLarge, DepthwiseChannelsInTheLanes) {
  check(make({3, 40, 14, 15}, 40, 3, 1, 1, 1, 40));
  check(make({2, 17, 7, 9}, 17, 3, 1, 1, 1, 17));
  check(make({2, 33, 31, 45}, 33, 3, 2, 1, 1, 33));
  check(make({2, 16, 100, 90}, 16, 5, 1, 2, 1, 16));  // blocks of rows
  check(make({1, 8, 117, 61}, 8, 5, 3, 1, 1, 8));     // dx of rows that no window reaches
  check(make({9, 24, 8, 9}, 24, 7, 1, 3, 1, 24));
  check(make({1, 19, 80, 67}, 19, 7, 2, 3, 1, 19));
  check(make({2, 20, 12, 15}, 20, 4, 1, 3, 2, 20));  // any window
  check(make({2, 20, 21, 13}, 20, 3, 2, 4, 2, 20));  // more padding than reach
  ConvConfig lopsided = make({2, 12, 11, 10}, 12, 3, 2, 0, 1, 12);
  lopsided.kernel_w = 5, lopsided.top = 2, lopsided.right = 3, lopsided.stride_w = 1;
  check(lopsided);
}

}  // namespace
}  // namespace ballast::kernels::testing
