#include "graph/passes.h"

#include "graph/prepared_op.h"
#include "graph/test_support.h"
#include "graph/text.h"

#include <cmath>

namespace ballast::graph {
namespace {

using namespace testing;

TEST(Passes, DeadCodeKeepsUpdates) {
  const Graph g = parse_nodes(
      "input %0 \"x\": f32[4]\nstate %1 \"s\": f32[4]\n"
      "%2 = neg(%0) : f32[4]\n%3 = exp(%2) : f32[4]\n%4 = add(%1, %2) : f32[4]\n"
      "%5 = abs(%0) : f32[4]\nupdate %1 = %4\noutput %5\n");
  EXPECT_EQ(ops(remove_dead_code(g)), "neg add abs");
}

TEST(Passes, CommonSubexpressionsMergeNodesAndConstants) {
  const Graph g = parse_nodes(
      "input %0 \"x\": f32[4]\nconst %1: f32[] = 0000803f\nconst %2: f32[] = 0000803f\n"
      "%3 = add(%0, %1) : f32[4]\n%4 = add(%0, %2) : f32[4]\n%5 = mul(%3, %4) : f32[4]\n"
      "output %5\n");
  const Graph merged = merge_common_subexpressions(g);
  EXPECT_EQ(ops(merged), "add mul");
  EXPECT_EQ(merged.nodes()[1].inputs[0], merged.nodes()[1].inputs[1]);
}

// 0.0 == -0.0, and NaN is equal to nothing.
TEST(Passes, CallsAreMergedWhoseFloatsHaveEqualBits) {
  const auto pads = [](const std::string& a, const std::string& b) {
    const auto pad = [](int id, const std::string& value) {
      return fmt::format("%{} = pad(%0) {{paddings = [1, 0], value = {}}} : f32[5]\n", id, value);
    };
    return parse_nodes("input %0 \"x\": f32[4]\n" + pad(1, a) + pad(2, b) + "output %1, %2\n");
  };
  EXPECT_EQ(ops(merge_common_subexpressions(pads("nan", "0.0"))), "pad pad");
  EXPECT_EQ(ops(merge_common_subexpressions(pads("0.0", "-0.0"))), "pad pad");
  EXPECT_EQ(ops(merge_common_subexpressions(pads("nan", "nan"))), "pad");
  EXPECT_EQ(ops(merge_common_subexpressions(pads("1.5", "1.5"))), "pad");
}

TEST(Passes, NothingIsMergedThroughABarrier) {
  const Graph g = parse_nodes(
      "input %0 \"x\": f32[4]\ninput %1 \"g\": f32[4]\n%2 = exp(%0) : f32[4]\n"
      "%3 = barrier(%0, %1) : f32[4]\n%4 = exp(%3) : f32[4]\noutput %2, %4\n");
  EXPECT_EQ(ops(merge_common_subexpressions(simplify(g))), "exp barrier exp");
}

TEST(Passes, ARewriteKeepsTypes) {
  const Graph g = parse_nodes("input %0 \"x\": f32[4]\n%1 = neg(%0) : f32[4]\noutput %1\n");
  Rewrite rewrite(g);
  const ValueId other = rewrite.graph().add_node("reshape", {{"shape", Shape{2, 2}}}, {0})[0];
  expect_error(device::Code::kInternal, "value 1, f32[4], would become f32[2, 2]",
               [&] { rewrite.replace(1, other); });
}

TEST(Passes, SimplifyDropsWhatDoesNothing) {
  const Graph g = parse_nodes(
      "input %0 \"x\": f32[2, 3]\ninput %1 \"w\": f32[4, 3]\n"
      "%2 = reshape(%0) {shape = [2, 3]} : f32[2, 3]\n"
      "%3 = transpose(%1) {perm = [1, 0]} : f32[3, 4]\n"
      "%4 = matmul(%2, %3) : f32[2, 4]\n"
      "%5 = broadcast_to(%4) {shape = [2, 4]} : f32[2, 4]\n"
      "%6 = reshape(%5) {shape = [8]} : f32[8]\n%7 = reshape(%6) {shape = [4, 2]} : f32[4, 2]\n"
      "%8 = cast(%7) {dtype = 1} : f32[4, 2]\noutput %8\n");
  const Graph s = remove_dead_code(simplify(g));
  EXPECT_EQ(ops(s), "matmul reshape");
  EXPECT_EQ(int_attr(s.nodes()[0].attrs, "transpose_b"), 1);
}

TEST(Passes, ProductsHaveTheShapeTheyAreReshapedTo) {
  const char* const head =
      "input %0 \"x\": f32[2, 5, 3]\ninput %1 \"w\": f32[3, 4]\ninput %2 \"y\": f32[2, 5, 4]\n"
      "%3 = reshape(%0) {shape = [10, 3]} : f32[10, 3]\n%4 = matmul(%3, %1) : f32[10, 4]\n";
  const Graph g = remove_dead_code(simplify(
      parse_nodes(std::string(head) + "%5 = reshape(%4) {shape = [2, 5, 4]} : f32[2, 5, 4]\n"
                                      "%6 = relu_grad(%5, %2) : f32[2, 5, 4]\noutput %6\n")));
  EXPECT_EQ(ops(g), "matmul relu_grad");
  EXPECT_EQ(ops(fuse_matmul_epilogues(g)), "matmul");
  // Into a shape that the operand has not: it is reshaped instead.
  const Graph other = remove_dead_code(simplify(
      parse_nodes(std::string(head) + "%5 = reshape(%4) {shape = [5, 2, 4]} : f32[5, 2, 4]\n"
                                      "output %5\n")));
  EXPECT_EQ(ops(other), "reshape matmul");
  // The columns change, or another reads the product as it is.
  for (const char* rest :
       {"%5 = reshape(%4) {shape = [5, 8]} : f32[5, 8]\noutput %5\n",
        "%5 = reshape(%4) {shape = [2, 5, 4]} : f32[2, 5, 4]\noutput %5, %4\n"}) {
    const Graph kept = remove_dead_code(simplify(parse_nodes(std::string(head) + rest)));
    EXPECT_EQ(ops(kept), "reshape matmul reshape") << rest;
  }
  // One row may become a vector, which a matmul does not give.
  const Graph vector = simplify(parse_nodes(
      "input %0 \"x\": f32[1, 3]\ninput %1 \"w\": f32[3, 4]\n%2 = matmul(%0, %1) : f32[1, 4]\n"
      "%3 = reshape(%2) {shape = [4]} : f32[4]\noutput %3\n"));
  EXPECT_EQ(ops(vector), "matmul reshape");
}

TEST(Passes, FoldingGivesTheDevicesBits) {
  const Graph g = parse_nodes(
      "input %0 \"x\": f32[2]\nconst %1: f32[2] = 0000803f00000040\nconst %2: f32[] = cdcc4c3e\n"
      "%3 = mul(%1, %2) : f32[2]\n%4 = exp(%3) : f32[2]\n%5 = add(%0, %4) : f32[2]\noutput %5\n");
  const auto evaluate = [](const OpCall& call, const auto& inputs) {
    return evaluate_on(test_device(), call, inputs);
  };
  const Graph folded = remove_dead_code(fold_constants(g, evaluate));
  ASSERT_EQ(ops(folded), "add");
  const Value& value = folded.value(folded.nodes()[0].inputs[1]);
  ASSERT_EQ(value.kind, ValueKind::kConstant);
  const auto* data = reinterpret_cast<const float*>(value.data->data());
  EXPECT_NEAR(data[0], std::exp(0.2), 1e-6);
  EXPECT_NEAR(data[1], std::exp(0.4), 1e-6);
}

TEST(Passes, MatmulTakesBiasAndRelu) {
  const char* const head =
      "input %0 \"x\": f32[2, 3]\ninput %1 \"w\": f32[3, 4]\ninput %2 \"b\": f32[4]\n"
      "%3 = matmul(%0, %1) : f32[2, 4]\n";
  const Graph full = fuse_matmul_epilogues(parse_nodes(
      std::string(head) + "%4 = add(%2, %3) : f32[2, 4]\n%5 = relu(%4) : f32[2, 4]\noutput %5\n"));
  ASSERT_EQ(ops(full), "matmul");
  EXPECT_EQ(string_attr(full.nodes()[0].attrs, "activation"), "relu");
  EXPECT_EQ(int_attr(full.nodes()[0].attrs, "has_bias"), 1);
  EXPECT_EQ(full.nodes()[0].inputs.size(), 3u);

  // The sum is read twice: relu stays apart.
  const Graph shared = fuse_matmul_epilogues(
      parse_nodes(std::string(head) +
                  "%4 = add(%3, %2) : f32[2, 4]\n%5 = relu(%4) : f32[2, 4]\noutput %4, %5\n"));
  EXPECT_EQ(ops(shared), "matmul relu");
  // A bias over rows is not a bias.
  const Graph rows = fuse_matmul_epilogues(parse_nodes(
      "input %0 \"x\": f32[2, 3]\ninput %1 \"w\": f32[3, 2]\ninput %2 \"b\": f32[2, 1]\n"
      "%3 = matmul(%0, %1) : f32[2, 2]\n%4 = add(%3, %2) : f32[2, 2]\noutput %4\n"));
  EXPECT_EQ(ops(rows), "matmul add");
}

TEST(Passes, MatmulTakesReluGradWhoseOperandComesLater) {
  const Graph g = fuse_matmul_epilogues(parse_nodes(
      "input %0 \"dz\": f32[2, 3]\ninput %1 \"w\": f32[3, 4]\ninput %2 \"h\": f32[2, 4]\n"
      "%3 = matmul(%0, %1) : f32[2, 4]\n%4 = exp(%2) : f32[2, 4]\n"
      "%5 = relu_grad(%3, %4) : f32[2, 4]\noutput %5\n"));
  EXPECT_EQ(ops(g), "exp matmul");
  EXPECT_EQ(string_attr(g.nodes()[1].attrs, "activation"), "relu_grad");
  verify(g);
}

TEST(Passes, MatmulTakesBiasActivationAndResidual) {
  const Graph g = fuse_matmul_epilogues(parse_nodes(
      "input %0 \"x\": f32[5, 2, 3]\ninput %1 \"w\": f32[3, 4]\ninput %2 \"b\": f32[4]\n"
      "%3 = matmul(%0, %1) : f32[5, 2, 4]\n%4 = add(%3, %2) : f32[5, 2, 4]\n"
      "%5 = tanh(%4) : f32[5, 2, 4]\n%6 = neg(%2) : f32[4]\n"
      "input %7 \"r\": f32[5, 2, 4]\n%8 = add(%7, %5) : f32[5, 2, 4]\n"
      "%9 = add(%8, %7) : f32[5, 2, 4]\noutput %9, %6\n"));
  EXPECT_EQ(ops(g), "neg matmul add");
  const Node& matmul = g.nodes()[1];
  EXPECT_EQ(string_attr(matmul.attrs, "activation"), "tanh");
  EXPECT_EQ(int_attr(matmul.attrs, "has_bias"), 1);
  EXPECT_EQ(int_attr(matmul.attrs, "has_residual"), 1);
  EXPECT_EQ(matmul.inputs.size(), 4u);
  verify(g);
}

TEST(Passes, ASumOfTwoProductsGoesToOneOfThem) {
  const Graph g = fuse_matmul_epilogues(
      parse_nodes("input %0 \"x\": f32[2, 3]\ninput %1 \"w\": f32[3, 4]\n"
                  "%2 = matmul(%0, %1) : f32[2, 4]\n%3 = matmul(%0, %1) : f32[2, 4]\n"
                  "%4 = add(%2, %3) : f32[2, 4]\noutput %4\n"));
  EXPECT_EQ(ops(g), "matmul matmul");
  EXPECT_EQ(int_attr(g.nodes()[0].attrs, "has_residual"), 0);
  EXPECT_EQ(int_attr(g.nodes()[1].attrs, "has_residual"), 1);
  verify(g);
}

// A bf16 sum is rounded before the next op: an epilogue would not round there.
TEST(Passes, MatmulOfNarrowFloatsKeepsItsSumsApart) {
  const Graph g = fuse_matmul_epilogues(parse_nodes(
      "input %0 \"x\": bf16[2, 3]\ninput %1 \"w\": bf16[3, 4]\ninput %2 \"r\": bf16[2, 4]\n"
      "%3 = matmul(%0, %1) : bf16[2, 4]\n%4 = relu(%3) : bf16[2, 4]\n"
      "%5 = add(%4, %2) : bf16[2, 4]\noutput %5\n"));
  EXPECT_EQ(ops(g), "matmul add");
}

TEST(Passes, PointwiseChainsBecomeOneKernel) {
  const Graph g = fuse_pointwise(parse_nodes(
      "input %0 \"x\": f32[2, 3]\ninput %1 \"b\": f32[3]\n"
      "%2 = add(%0, %1) : f32[2, 3]\n%3 = exp(%2) : f32[2, 3]\n%4 = mul(%3, %2) : f32[2, 3]\n"
      "%5 = reduce_sum(%4) : f32[]\n%6 = neg(%5) : f32[]\noutput %6\n"));
  ASSERT_EQ(ops(g), "fused reduce_sum neg");
  EXPECT_EQ(string_attr(g.nodes()[0].attrs, "program"),
            "add(i0,i1):f32;exp(s0):f32;mul(s1,s0):f32");
  verify(parse(print(g)));
}

constexpr const char* kProduct =
    "input %0 \"x\": f32[5, 3]\ninput %1 \"w\": f32[4, 3]\ninput %2 \"b\": f32[4]\n"
    "input %3 \"g\": f32[5, 4]\n"
    "%4 = matmul(%0, %1, %2, %3) {transpose_b = 1, has_bias = 1, activation = \"tanh\", "
    "has_residual = 1} : f32[5, 4]\n";

TEST(Passes, ProductsTakeTheChainThatAloneReadsThem) {
  const Graph g =
      fuse_products(fuse_pointwise(parse_nodes(
          std::string(kProduct) + "const %5: f32[] = 0000003f\n%6 = sigmoid(%4) : f32[5, 4]\n"
                                  "%7 = mul(%6, %4) : f32[5, 4]\n%8 = mul(%5, %7) : f32[5, 4]\n"
                                  "%9 = mul(%8, %3) : f32[5, 4]\noutput %9\n")));
  ASSERT_EQ(ops(g), "fused_matmul");
  EXPECT_EQ(string_attr(g.nodes()[0].attrs, "program"),
            "add(i0,i1):f32;tanh(s0):f32;add(s1,i2):f32;sigmoid(s2):f32;mul(s3,s2):f32;"
            "mul(i3,s4):f32;mul(s5,i4):f32");
  EXPECT_EQ(int_attr(g.nodes()[0].attrs, "transpose_b"), 1);
  verify(parse(print(g)));
}

TEST(Passes, ProductsTakeASingleStepToo) {
  const Graph g = fuse_products(
      parse_nodes(std::string(kProduct) + "%5 = mul(%4, %4) : f32[5, 4]\noutput %5\n"));
  ASSERT_EQ(ops(g), "fused_matmul");
  EXPECT_EQ(string_attr(g.nodes()[0].attrs, "program"),
            "add(i0,i1):f32;tanh(s0):f32;add(s1,i2):f32;mul(s2,s2):f32");
}

TEST(Passes, ProductsStayApartFromWhatTheyCannotTake) {
  for (const char* rest :
       {// read twice
        "%5 = neg(%4) : f32[5, 4]\noutput %5, %4\n",
        // one value per row
        "input %5 \"r\": f32[5, 1]\n%6 = mul(%4, %5) : f32[5, 4]\noutput %6\n",
        // another shape
        "input %5 \"r\": f32[2, 5, 4]\n%6 = mul(%4, %5) : f32[2, 5, 4]\noutput %6\n",
        // another dtype
        "%5 = cast(%4) {dtype = 3} : f16[5, 4]\noutput %5\n"}) {
    EXPECT_EQ(fuse_products(parse_nodes(std::string(kProduct) + rest)).nodes().size(), 2u) << rest;
  }
}

TEST(Passes, AStepOfTwoProductsTakesOne) {
  const Graph g =
      fuse_products(parse_nodes("input %0 \"x\": f32[2, 3]\ninput %1 \"w\": f32[3, 4]\n"
                                "%2 = matmul(%0, %1) : f32[2, 4]\n%3 = matmul(%0, %1) : f32[2, 4]\n"
                                "%4 = mul(%2, %3) : f32[2, 4]\noutput %4\n"));
  EXPECT_EQ(ops(g), "matmul fused_matmul");
  verify(g);
}

TEST(Passes, ReductionsTakeTheChainThatTheyAloneRead) {
  const Graph loss = fuse_reductions(fuse_pointwise(parse_nodes(
      "input %0 \"x\": f32[64, 30]\ninput %1 \"y\": f32[30]\n%2 = sub(%0, %1) : f32[64, 30]\n"
      "%3 = mul(%2, %2) : f32[64, 30]\n%4 = reduce_mean(%3) {axes = []} : f32[]\noutput %4\n")));
  EXPECT_EQ(ops(loss), "fused reduce_mean");  // y repeats within the axis
  const Graph g = fuse_reductions(fuse_pointwise(parse_nodes(
      "input %0 \"x\": f32[64, 30]\ninput %1 \"y\": f32[]\n%2 = sub(%0, %1) : f32[64, 30]\n"
      "%3 = mul(%2, %2) : f32[64, 30]\n%4 = reduce_mean(%3) {axes = [0], keep_dims = 1} : f32[1, "
      "30]\noutput %4\n")));
  ASSERT_EQ(ops(g), "fused_reduce");
  EXPECT_EQ(string_attr(g.nodes()[0].attrs, "program"), "sub(i0,i1):f32;mul(s0,s0):f32");
  EXPECT_EQ(string_attr(g.nodes()[0].attrs, "reduction"), "reduce_mean");
  verify(parse(print(g)));
}

TEST(Passes, ReductionsTakeASingleStepToo) {
  const Graph g =
      fuse_reductions(parse_nodes("input %0 \"x\": f32[5, 40]\n%1 = mul(%0, %0) : f32[5, 40]\n"
                                  "%2 = reduce_sum(%1) {axes = [-2]} : f32[40]\noutput %2\n"));
  ASSERT_EQ(ops(g), "fused_reduce");
  EXPECT_EQ(string_attr(g.nodes()[0].attrs, "program"), "mul(i0,i0):f32");
  EXPECT_EQ(g.nodes()[0].inputs.size(), 1u);
}

TEST(Passes, ReductionsStayApartFromWhatOthersRead) {
  for (const char* nodes : {"input %0 \"x\": f32[5, 40]\n%1 = neg(%0) : f32[5, 40]\n"
                            "%2 = reduce_sum(%1) {axes = [0]} : f32[40]\noutput %1, %2\n",
                            // no kernel reduces bf16
                            "input %0 \"x\": bf16[5, 40]\n%1 = neg(%0) : bf16[5, 40]\n"
                            "%2 = reduce_sum(%1) {axes = [0]} : bf16[40]\noutput %2\n",
                            // gives an index
                            "input %0 \"x\": f32[5, 40]\n%1 = neg(%0) : f32[5, 40]\n"
                            "%2 = argmax(%1) {axis = 0} : i32[40]\noutput %2\n"}) {
    EXPECT_EQ(fuse_reductions(parse_nodes(nodes)).nodes().size(), 2u) << nodes;
  }
}

TEST(Passes, PointwiseFusionStopsAtResultsAndOtherShapes) {
  const Graph result = fuse_pointwise(parse_nodes(
      "input %0 \"x\": f32[3]\n%1 = neg(%0) : f32[3]\n%2 = exp(%1) : f32[3]\noutput %1, %2\n"));
  EXPECT_EQ(ops(result), "neg exp");
  const Graph shapes = fuse_pointwise(
      parse_nodes("input %0 \"x\": f32[3]\ninput %1 \"y\": f32[2, 3]\n%2 = neg(%0) : f32[3]\n"
                  "%3 = add(%2, %1) : f32[2, 3]\noutput %3\n"));
  EXPECT_EQ(ops(shapes), "neg add");
}

TEST(Passes, SeparateResultsCopiesWhatIsNotItsOwn) {
  const Graph g = separate_results(
      parse_nodes("input %0 \"x\": f32[3]\nstate %1 \"s\": f32[3]\nstate %2 \"t\": f32[3]\n"
                  "%3 = neg(%0) : f32[3]\n%4 = reshape(%3) {shape = [3, 1]} : f32[3, 1]\n"
                  "update %1 = %2\nupdate %2 = %1\noutput %3, %3, %4, %0\n"));
  EXPECT_EQ(ops(g), "identity identity identity neg reshape identity identity");
  EXPECT_EQ(g.outputs().size(), 4u);
  verify(g);
}

}  // namespace
}  // namespace ballast::graph
