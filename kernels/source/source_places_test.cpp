// How addresses are split, on small texts.
#include "kernels/source/source_places.h"

#include <gtest/gtest.h>

#include <string>

namespace ballast::kernels {
namespace {

std::string split(std::string text, bool of_stack = true) {
  split_places(text, of_stack);
  return text;
}

TEST(SourcePlaces, ASumIsAPointerAndAnIndex) {
  const std::string sums =
      " int _3 = _x + _1;\n"
      " int _4 = _3 + 2;\n"
      " long _5 = (long)(_4);\n"
      " long _6 = _9 + _8;\n";
  EXPECT_EQ(split(sums + " float _7 = _in[_5];\n"), sums + " float _7 = (_in + 2 + _1)[_x];\n");
  EXPECT_EQ(split(sums + " float _7 = _in[_6];\n"), sums + " float _7 = (_in + _8)[_9];\n");
  EXPECT_EQ(split(sums + " float8 _7 = *(__global float8_anywhere*)((__global float*)_in + _6);\n"),
            sums + " float8 _7 = *(__global float8_anywhere*)((__global float*)_in + _8 + _9);\n");
  EXPECT_EQ(split(sums + " float _7 = _in[_1];\n"), sums + " float _7 = _in[_1];\n");
}

TEST(SourcePlaces, VectorsOnTheStackAreANumberApart) {
  const auto text = [](const std::string& access, int lanes) {
    return " int _3 = _1 * _y;\n"
           " int _4 = _3 + -2;\n"
           " long _5 = (long)(_4);\n"
           " long _6 = (long)(" +
           std::to_string(lanes) +
           "l);\n"
           " long _7 = _5 * _6;\n"
           " long _8 = (long)(3l);\n"
           " long _9 = _7 >> _8;\n" +
           access;
  };
  const std::string load = " float8 _10 = ((__private float8 *)_x)[_9];\n",
                    store = " ((__private float8 *)_x)[_9] = _10;\n";
  EXPECT_EQ(split(text(load, 8)), text(" float8 _10 = (((__private float8 *)_x) + _3)[-2];\n", 8));
  EXPECT_EQ(split(text(store, 8)), text(" (((__private float8 *)_x) + _3)[-2] = _10;\n", 8));
  EXPECT_EQ(split(text(load, 16)), text(" float8 _10 = ((__private float8 *)(_x + _7))[0];\n", 16))
      << "not the unit of what is accessed";
  EXPECT_EQ(split(text(store, 16)), text(" ((__private float8 *)(_x + _7))[0] = _10;\n", 16));
  EXPECT_EQ(split(text(load, 3)), text(load, 3)) << "another number of vectors";
  EXPECT_EQ(split(text(load, 8), false), text(load, 8));
}

TEST(SourcePlaces, VectorsOnTheStackBeginAtAMultipleOfTheirLanes) {
  const auto text = [](const std::string& access, int between) {
    return " long _2 = (long)(384l);\n"
           " long _3 = _1 * _2;\n"
           " long _4 = (long)(" +
           std::to_string(between) +
           "l);\n"
           " long _5 = _3 + _4;\n"
           " long _6 = (long)(4l);\n"
           " long _7 = _5 >> _6;\n" +
           access;
  };
  const std::string load = " float16 _8 = ((__private float16 *)_x)[_7];\n";
  EXPECT_EQ(split(text(load, 48)),
            text(" float16 _8 = ((__private float16 *)(_x + _5))[0];\n", 48));
  EXPECT_EQ(split(text(load, 8)), text(load, 8));
  const std::string other = " float8 _8 = ((__private float8 *)_x)[_7];\n";
  EXPECT_EQ(split(text(other, 48)), text(other, 48));
}

}  // namespace
}  // namespace ballast::kernels
