#include "device/kernel_parameter.h"

#include <gtest/gtest.h>

namespace ballast::device {
namespace {

TEST(KernelParameterTest, PartsTypeFromNameAndQualifiers) {
  struct Case {
    const char *text, *type, *name;
    bool is_pointer, is_local = false;
  };
  const Case cases[] = {{" const int _a", "int", "_a", false},
                        {"\n const unsigned  int n ", "unsigned int", "n", false},
                        {"__private const uchar16 v3", "uchar16", "v3", false},
                        {" __global float *restrict _x", "float", "_x", true},
                        {"global const volatile ulong* x", "ulong", "x", true},
                        {"__constant short * __restrict t", "short", "t", true},
                        {" __local int16* __shared", "int16", "__shared", true, true},
                        {"local bool *flags", "bool", "flags", true, true}};
  std::string list;
  for (const Case& c : cases) list += (list.empty() ? "" : ",") + std::string(c.text);
  const std::vector<KernelParameter> parameters = parse_parameters(list);
  ASSERT_EQ(parameters.size(), std::size(cases));
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(parameters[i].text, cases[i].text);
    EXPECT_EQ(parameters[i].type, cases[i].type) << cases[i].text;
    EXPECT_EQ(parameters[i].name, cases[i].name) << cases[i].text;
    EXPECT_EQ(parameters[i].is_pointer, cases[i].is_pointer) << cases[i].text;
    EXPECT_EQ(parameters[i].is_local, cases[i].is_local) << cases[i].text;
  }
}

TEST(KernelParameterTest, ListsWithoutParameters) {
  EXPECT_TRUE(parse_parameters("").empty());
  EXPECT_TRUE(parse_parameters(" \n\t").empty());
}

}  // namespace
}  // namespace ballast::device
