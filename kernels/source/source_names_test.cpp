#include "kernels/source/source_names.h"

#include "kernels/test_support.h"

namespace ballast::kernels::testing {
namespace {

std::string renumbered(std::string text) {
  renumber_names(text);
  return text;
}

TEST(SourceNames, NumbersBecomeRanks) {
  EXPECT_EQ(renumbered("__kernel void _kernel_out__12_s0_x(float *_out__12, float *_in0)"),
            "__kernel void _kernel_out_s0_x(float *_out, float *_in0)");
  EXPECT_EQ(renumbered("_t__5[_t__31_s0_x] = _t__5[_1];"), "_t[_t__1_s0_x] = _t[_0];");
  EXPECT_EQ(renumbered("_fold__7_8[0] + _8 + __shared + __address_space__fold__7_8"),
            "_fold_8[0] + _0 + __shared + __address_space__fold_8");
}

TEST(SourceNames, ValuesKeepTheirOrder) {
  EXPECT_EQ(renumbered("int _131 = _in0[_130]; _132 = _131 + _in1_2;"),
            "int _1 = _in0[_0]; _2 = _1 + _in1_2;");
  EXPECT_EQ(renumbered("// produce step0$1\n_step0__1[0] = _7;"),
            "// produce step0\n_step0[0] = _0;");
}

// The same text whether the names were the first of the process or not.
TEST(SourceNames, PlainNamesAreTheFirst) {
  EXPECT_EQ(renumbered("_t[_t__1_s0_x] = _t_s0_y;"), renumbered("_t__5[_t__6_s0_x] = _t__5_s0_y;"));
  EXPECT_EQ(renumbered("for (_t_s0_x) _t__1 = 0;"), renumbered("for (_t__3_s0_x) _t__4 = 0;"));
}

TEST(SourceNames, GatheredVectorsAreValuesToo) {
  EXPECT_EQ(renumbered("float16 _V7; _V7.s0 = _in0[_3]; _V9 = _V7;"),
            "float16 _V0; _V0.s0 = _in0[_0]; _V1 = _V0;");
}

TEST(SourceNames, ArgumentsThatTheHostComputesAreValuesToo) {
  EXPECT_EQ(renumbered("const int _t942, const int _t17) { bool _8 = _t942 < _t17 + _t; }"),
            "const int _t1, const int _t0) { bool _0 = _t1 < _t0 + _t; }");
}

TEST(SourceNames, KernelsHaveNoNumbers) {
  EXPECT_EQ(
      renumbered("__kernel void _kernel_out_200_s0_x__1() {} // kernel _kernel_out_200_s0_x__1"),
      "__kernel void _kernel_out_s0_x() {} // kernel _kernel_out_s0_x");
}

TEST(SourceNames, KernelsCompiledTwiceAreEqual) {
  const TensorType type{DType::kF32, {3, 32}}, line{DType::kF32, {3, 1}};
  const auto text = [&](const std::string& last) {
    FusedPointwise fused;
    fused.inputs = {type};
    fused.steps = {{"exp", {{true, 0}}, type},
                   {"reduce_sum", {{false, 0}}, line},
                   {last, {{false, 0}, {false, 1}}, type}};
    fused.outputs = {2};
    return plan_fused_rows(DeviceClass::kCpu, fused).launches[0].source->text;
  };
  std::string divided = text("div");
  const std::string added = text("add");
  // What differs is the last step: nothing else may.
  size_t same = 0;
  while (divided[same] == added[same]) ++same;
  EXPECT_GT(same, divided.size() / 2);
  EXPECT_EQ(kernel_name_in(divided), kernel_name_in(added));
}

}  // namespace
}  // namespace ballast::kernels::testing
