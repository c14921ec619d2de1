#include "graph/passes.h"

#include "graph/test_support.h"
#include "graph/text.h"

namespace ballast::graph {
namespace {

using namespace testing;

// A softmax written out is one kernel; the totals' axis is kept or given back.
TEST(FuseRows, ReductionsAlongRowsJoinWhatSurroundsThem) {
  const Graph kept =
      fuse_rows(parse_nodes("input %0 \"x\": f32[2, 3, 32]\n"
                            "%1 = reduce_max(%0) {axes = [-1], keep_dims = 1} : f32[2, 3, 1]\n"
                            "%2 = sub(%0, %1) : f32[2, 3, 32]\n%3 = exp(%2) : f32[2, 3, 32]\n"
                            "%4 = reduce_sum(%3) {axes = [2], keep_dims = 1} : f32[2, 3, 1]\n"
                            "%5 = div(%3, %4) : f32[2, 3, 32]\noutput %5\n"));
  ASSERT_EQ(ops(kept), "fused_rows");
  EXPECT_EQ(string_attr(kept.nodes()[0].attrs, "program"),
            "reduce_max(i0):f32;sub(i0,s0):f32;exp(s1):f32;reduce_sum(s2):f32;div(s2,s3):f32");
  verify(parse(print(kept)));

  const Graph given_back = fuse_rows(parse_nodes(
      "input %0 \"x\": f32[4, 32]\ninput %1 \"g\": f32[32]\n%2 = mul(%0, %0) : f32[4, 32]\n"
      "%3 = reduce_mean(%2) {axes = [1]} : f32[4]\n%4 = reshape(%3) {shape = [4, 1]} : f32[4, 1]\n"
      "%5 = rsqrt(%4) : f32[4, 1]\n%6 = broadcast_to(%5) {shape = [4, 32]} : f32[4, 32]\n"
      "%7 = mul(%0, %6) : f32[4, 32]\n%8 = mul(%7, %1) : f32[4, 32]\noutput %8\n"));
  ASSERT_EQ(ops(given_back), "fused_rows");
  EXPECT_EQ(string_attr(given_back.nodes()[0].attrs, "program"),
            "mul(i0,i0):f32;reduce_mean(s0):f32;rsqrt(s1):f32;mul(i0,s2):f32;mul(s3,i1):f32");
  verify(given_back);
}

TEST(FuseRows, SoftmaxJoinsItsScale) {
  const std::string nodes =
      "input %0 \"x\": f32[2, 32, 32]\nconst %1: f32[] = 0000003f\n"
      "%2 = mul(%0, %1) : f32[2, 32, 32]\n%3 = softmax(%2) {axis = -1} : f32[2, 32, 32]\n"
      "output %3\n";
  const Graph g = fuse_rows(parse_nodes(nodes));
  ASSERT_EQ(ops(g), "fused_rows");
  EXPECT_EQ(string_attr(g.nodes()[0].attrs, "program"), "mul(i0,i1):f32;softmax(s0):f32");
  verify(g);
  std::string across = nodes;
  across.replace(across.find("axis = -1"), 9, "axis = 1");
  EXPECT_EQ(ops(fuse_rows(parse_nodes(across))), "mul softmax");
}

TEST(FuseRows, ARowFusionMayEndInATotal) {
  const Graph g = fuse_rows(parse_nodes(
      "input %0 \"x\": f32[5, 64]\ninput %1 \"y\": f32[5, 64]\n%2 = sub(%0, %1) : f32[5, 64]\n"
      "%3 = mul(%2, %2) : f32[5, 64]\n%4 = reduce_sum(%3) {axes = [1]} : f32[5]\noutput %4\n"));
  ASSERT_EQ(ops(g), "fused_rows");
  EXPECT_EQ(g.value(g.outputs()[0]).type.shape, Shape{5});
  verify(g);
}

TEST(FuseRows, RowFusionLeavesWhatItCannotTake) {
  // [16] lies along the row where it is read, so it is no total of each row.
  const Graph square = fuse_rows(
      parse_nodes("input %0 \"x\": f32[16, 16]\n%1 = reduce_sum(%0) {axes = [1]} : f32[16]\n"
                  "%2 = sub(%0, %1) : f32[16, 16]\noutput %2\n"));
  EXPECT_EQ(ops(square), "reduce_sum sub");
  // Rows too short, another axis, integers, and a total that is a result itself.
  for (const char* nodes : {"input %0 \"x\": f32[4, 8]\n%1 = exp(%0) : f32[4, 8]\n"
                            "%2 = reduce_sum(%1) {axes = [1]} : f32[4]\noutput %2\n",
                            "input %0 \"x\": f32[32, 32]\n%1 = exp(%0) : f32[32, 32]\n"
                            "%2 = reduce_sum(%1) {axes = [0]} : f32[32]\noutput %2\n",
                            "input %0 \"x\": i32[4, 32]\n%1 = neg(%0) : i32[4, 32]\n"
                            "%2 = reduce_sum(%1) {axes = [1]} : i32[4]\noutput %2\n"}) {
    EXPECT_EQ(fuse_rows(parse_nodes(nodes)).nodes().size(), 2u) << nodes;
  }
  const Graph shared = fuse_rows(parse_nodes(
      "input %0 \"x\": f32[4, 32]\n%1 = reduce_sum(%0) {axes = [1], keep_dims = 1} : f32[4, 1]\n"
      "%2 = div(%0, %1) : f32[4, 32]\noutput %1, %2\n"));
  EXPECT_EQ(ops(shared), "reduce_sum div");
  // Operands that repeat within the outer dimensions stay outside.
  const Graph mask =
      fuse_rows(parse_nodes("input %0 \"x\": f32[2, 3, 32]\ninput %1 \"m\": f32[2, 1, 32]\n"
                            "%2 = add(%0, %1) : f32[2, 3, 32]\n%3 = exp(%2) : f32[2, 3, 32]\n"
                            "%4 = reduce_sum(%3) {axes = [-1]} : f32[2, 3]\noutput %4\n"));
  EXPECT_EQ(ops(mask), "add fused_rows");
}

// Aliases vanish within a kernel, so what only repeats a row's value must not be the result, nor
// what a row is passed over for.
TEST(FuseRows, RowFusionKeepsWhatIsRepeatedLong) {
  const std::string repeated =
      "input %0 \"x\": f32[4, 32]\n"
      "%1 = reduce_max(%0) {axes = [-1], keep_dims = 1} : f32[4, 1]\n"
      "%2 = broadcast_to(%1) {shape = [4, 32]} : f32[4, 32]\n";
  for (const char* last :
       {"%3 = exp(%2) : f32[4, 32]\n", "%3 = softmax(%2) {axis = -1} : f32[4, 32]\n",
        "%3 = reduce_sum(%2) {axes = [-1]} : f32[4]\n"}) {
    const Graph g = fuse_rows(parse_nodes(repeated + last + "output %3\n"));
    EXPECT_EQ(g.nodes().size(), 3u) << print(g);
  }
  const Graph joined =
      fuse_rows(parse_nodes(repeated + "%3 = exp(%2) : f32[4, 32]\n%4 = sub(%0, %3) : f32[4, 32]\n"
                                       "output %4\n"));
  EXPECT_EQ(ops(joined), "fused_rows");
}

}  // namespace
}  // namespace ballast::graph
