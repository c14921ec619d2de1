#include "graph/text.h"

#include "graph/test_support.h"

namespace ballast::graph {
namespace {

using namespace testing;
using device::Code;

TEST(Text, RoundTripKeepsEverything) {
  const Graph g = linear_regression(32, 10);
  const std::string text = print(g);
  const Graph again = parse(text);
  verify(again);
  EXPECT_EQ(print(again), text);
  EXPECT_EQ(again.nodes().size(), g.nodes().size());
  EXPECT_EQ(*again.value(again.nodes().back().inputs[4]).data, *bytes_of<float>({0.9f}));
}

TEST(Text, RoundTripOfAttributesAndNames) {
  Graph g;
  const ValueId x = g.add_input("a \"b\" \\ c\nd", f32({2, 3}));
  const ValueId e = g.add_constant(f32({0}), bytes_of<float>({}));
  const ValueId y =
      g.add_node("transpose", {{"perm", std::vector<int64_t>{1, 0}}}, {x}, "f.cpp:9")[0];
  const ValueId z = g.add_node("reduce_sum", {{"axes", std::vector<int64_t>{-1}}}, {y})[0];
  g.set_outputs({z, e});
  EXPECT_EQ(print(parse(print(g))), print(g));
}

// It is equal to the default, and another value.
TEST(Text, KeepsAnAttributeOfMinusZero) {
  const std::string text =
      "ballast.graph 1\ninput %0 \"x\": f32[4]\n"
      "%1 = pad(%0) {paddings = [1, 0], value = -0.0} : f32[5]\noutput %1\n";
  EXPECT_EQ(print(parse(text)), text);
}

TEST(Text, PrintsOneLinePerThing) {
  Graph g;
  const ValueId x = g.add_input("x", f32({2, 3}));
  const ValueId c = g.add_constant(f32({}), bytes_of<float>({1.0f}));
  g.set_outputs({g.add_node("add", {}, {x, c}, "net.cpp:12")[0]});
  EXPECT_EQ(print(g),
            "ballast.graph 1\n"
            "input %0 \"x\": f32[2, 3]\n"
            "const %1: f32[] = 0000803f\n"
            "%2 = add(%0, %1) : f32[2, 3] @ \"net.cpp:12\"\n"
            "output %2\n");
}

TEST(Text, ErrorsNameTheirPlace) {
  const std::string head = "ballast.graph 1\ninput %0 \"x\": f32[2]\n";
  expect_error(Code::kInvalidArgument, "line 1", [] { (void)parse("graph 1"); });
  expect_error(Code::kInvalidArgument, "unknown version", [] { (void)parse("ballast.graph 7"); });
  expect_error(Code::kInvalidArgument, "line 3, column 16: %7 is not defined",
               [&] { (void)parse(head + "%1 = add(%0, %7) : f32[2]"); });
  expect_error(Code::kInvalidArgument, "%0 is defined twice",
               [&] { (void)parse(head + "input %0 \"y\": f32[2]"); });
  expect_error(Code::kInvalidArgument, "gives other types",
               [&] { (void)parse(head + "%1 = neg(%0) : f32[3]"); });
  expect_error(Code::kInvalidArgument, "expected 8 bytes",
               [&] { (void)parse(head + "const %1: f32[2] = 00"); });
  expect_error(Code::kNotFound, "did you mean",
               [&] { (void)parse(head + "%1 = nog(%0) : f32[2]"); });
  expect_error(Code::kInvalidArgument, "is too large",
               [&] { (void)parse(head + "const %1: f32[4611686018427387904, 4] = "); });
  expect_error(Code::kInvalidArgument, "negative extent",
               [&] { (void)parse("ballast.graph 1\ninput %0 \"x\": f32[-2]"); });
  expect_error(Code::kInvalidArgument,
               "line 2, column 38: 9223372036854775808 does not fit 64 bits",
               [] { (void)parse("ballast.graph 1\ninput %0 \"x\": f32[9223372036854775808]"); });
  expect_error(Code::kInvalidArgument, "-9223372036854775809 does not fit 64 bits", [&] {
    (void)parse(head + "%1 = reduce_sum(%0) {axes = [-9223372036854775809]} : f32[]");
  });
  expect_error(Code::kInvalidArgument, "9223372036854775808 does not fit 64 bits", [&] {
    (void)parse(head + "%1 = softmax(%0) {axis = 9223372036854775808} : f32[2]");
  });
  expect_error(Code::kInvalidArgument, "expected", [&] { (void)parse(head + "%1 = neg(%0"); });
}

TEST(Text, TruncatedTextIsAnErrorNotACrash) {
  const std::string text = print(linear_regression(4, 3));
  for (size_t length = 0; length < text.size(); ++length) {
    try {
      verify(parse(text.substr(0, length)));  // cut between statements
    } catch (const device::Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument) << error.what();
    }
  }
}

}  // namespace
}  // namespace ballast::graph
