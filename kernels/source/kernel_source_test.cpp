// What hints of generators (hints.h) become in a kernel's text, on small texts.
#include "kernels/plan/halide_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ballast::kernels {
namespace {

using testing::HasSubstr;

// The kernel of a loop with such a body.
std::string extracted(const std::string& body) {
  const std::string module =
      "__kernel void _at_least_one_kernel(int x) {}\n"
      "// Address spaces for f\n"
      "__kernel void f(__global float *restrict _in, __global float *restrict _out)\n"
      "{\n"
      " for (int _x = 0; _x < 0 + 8; _x++)\n"
      " {\n" +
      body +
      " } // for _x\n"
      "}\n";
  return extract_kernel(module, "f", SourceRules{});
}

TEST(KernelSource, LoopsByFoursHideHowOftenTheyRun) {
  const std::string text = extracted(
      "  for (int _steps_by_fours__x = 0; _steps_by_fours__x < 0 + 27; _steps_by_fours__x++)\n"
      "  {\n"
      "   _out[_x] = _steps_by_fours__x;\n"
      "  } // for _steps_by_fours__x\n");
  EXPECT_THAT(text, HasSubstr("int _steps_by_fours__x_end = 0 + 27;\n"
                              "HIDE(_steps_by_fours__x_end);\n"
                              "#pragma unroll 4\n"
                              "for (int _steps_by_fours__x = 0; "
                              "_steps_by_fours__x < _steps_by_fours__x_end; "));
  EXPECT_THAT(text, HasSubstr("#define HIDE(number) __asm__("));
}

// Names are numbered anew, in the order in which they appear.
TEST(KernelSource, ARequestStandsWhereItsElementWas) {
  EXPECT_THAT(extracted("  float16 _0 = *(__global float16_anywhere*)(_in + 64);\n"
                        "  float16 _2 = ballast_prefetch(_1, _0);\n"
                        "  _out[_x] = _2;\n"),
              HasSubstr(" {\n"
                        "PREFETCH(&*(__global float16_anywhere*)(_in + 64));\n"
                        "  float16 _2 = _1;\n"));
}

TEST(KernelSource, AnEarlyRequestIsForTheSecondCache) {
  const std::string text = extracted(
      "  float16 _0 = *(__global float16_anywhere*)(_in + 2048);\n"
      "  float16 _2 = ballast_early_prefetch(_1, _0);\n"
      "  _out[_x] = _2;\n");
  EXPECT_THAT(text, HasSubstr(" {\n"
                              "PREFETCH_EARLY(&*(__global float16_anywhere*)(_in + 2048));\n"
                              "  float16 _2 = _1;\n"));
  EXPECT_THAT(text, HasSubstr("#define PREFETCH_EARLY(pointer) __builtin_prefetch("));
}

TEST(KernelSource, ALateRequestStandsAtTheEndOfTheLoop) {
  EXPECT_THAT(extracted("  float _1 = _in[_0];\n"
                        "  float _3 = ballast_late_prefetch(_2, _1);\n"
                        "  if (_4)\n"
                        "  {\n"
                        "   _out[_x] = _3;\n"
                        "  }\n"),
              HasSubstr(" {\n"
                        "  float _3 = _2;\n"
                        "  if (_4)\n"
                        "  {\n"
                        "   _out[_x] = _3;\n"
                        "  }\n"
                        "PREFETCH(&_in[_0]);\n"
                        " } // for _x\n"));
}

// Only what lies in memory can be asked for.
TEST(KernelSource, WhatIsComputedIsNotAskedFor) {
  const std::string text = extracted(
      "  float _2 = _1 + _0;\n"
      "  float _4 = ballast_late_prefetch(_3, _2);\n"
      "  _out[_x] = _4;\n");
  EXPECT_EQ(text.find("PREFETCH(&"), std::string::npos) << text;
  EXPECT_THAT(text, HasSubstr("  _out[_x] = _4;\n } // for _x\n"));
}

}  // namespace
}  // namespace ballast::kernels
