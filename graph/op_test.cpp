#include "graph/op.h"

#include "graph/test_support.h"

#include <cmath>
#include <set>

namespace ballast::graph {
namespace {

using namespace testing;
using device::Code;

std::vector<TensorType> infer_types(const std::string& op, Attrs attrs,
                                    std::vector<TensorType> in) {
  return infer(make_call(op, std::move(attrs), std::move(in)));
}

TEST(Op, Broadcasting) {
  EXPECT_EQ(infer_types("add", {}, {f32({5, 1, 3}), f32({4, 1})})[0], f32({5, 4, 3}));
  EXPECT_EQ(infer_types("add", {}, {f32({}), f32({0, 3})})[0], f32({0, 3}));
  EXPECT_EQ(infer_types("less", {}, {i32({2}), i32({})})[0], (TensorType{DType::kBool, {2}}));
  expect_error(Code::kInvalidArgument,
               "[add] shapes [3] and [4] do not broadcast; inputs are f32[3], f32[4]", [] {
                 infer_types("add", {}, {f32({3}), f32({4})});
               });
  expect_error(Code::kInvalidArgument, "[add]", [] {
    infer_types("add", {}, {f32({3}), i32({3})});
  });
}

TEST(Op, UnknownNamesAndAttributes) {
  expect_error(Code::kNotFound, "[matmull] unknown op; did you mean matmul?",
               [] { make_call("matmull", {}, {}); });
  expect_error(Code::kInvalidArgument, "[matmul] unknown attribute transpose_c", [] {
    make_call("matmul", {{"transpose_c", int64_t{1}}}, {f32({1, 1}), f32({1, 1})});
  });
  expect_error(Code::kInvalidArgument, "[matmul] attribute transpose_a is float, expected int", [] {
    make_call("matmul", {{"transpose_a", 1.0}}, {f32({1, 1}), f32({1, 1})});
  });
  expect_error(Code::kInvalidArgument, "[reshape] attribute shape (ints) is missing",
               [] { make_call("reshape", {}, {f32({1})}); });
  expect_error(Code::kInvalidArgument, "[add] takes 2 inputs, got 1 (f32[1])",
               [] { make_call("add", {}, {f32({1})}); });
}

TEST(Op, Matmul) {
  const Attrs tb{{"transpose_b", int64_t{1}}}, ta{{"transpose_a", int64_t{1}}};
  EXPECT_EQ(infer_types("matmul", tb, {f32({64, 784}), f32({512, 784})})[0], f32({64, 512}));
  EXPECT_EQ(infer_types("matmul", ta, {f32({64, 10}), f32({64, 7})})[0], f32({10, 7}));
  EXPECT_EQ(infer_types("matmul", tb, {f32({2, 3, 4}), f32({5, 4})})[0], f32({2, 3, 5}));
  EXPECT_EQ(infer_types("matmul", {}, {f32({0, 4}), f32({4, 5})})[0], f32({0, 5}));
  expect_error(Code::kInvalidArgument, "[matmul] inner extents differ: 4 of input 0 (plain), 3",
               [] {
                 infer_types("matmul", {}, {f32({2, 4}), f32({3, 5})});
               });
  EXPECT_EQ(infer_types("matmul", ta, {f32({5, 1, 4, 3}), f32({2, 4, 6})})[0], f32({5, 2, 3, 6}));
  expect_error(Code::kInvalidArgument, "[matmul] shapes [2] and [3] do not broadcast", [] {
    infer_types("matmul", {}, {f32({2, 1, 1}), f32({3, 1, 1})});
  });
  expect_error(Code::kInvalidArgument, "[matmul] input 1 needs rank 2 or more", [] {
    infer_types("matmul", {}, {f32({2, 3}), f32({3})});
  });
  const Attrs residual{{"has_residual", int64_t{1}}, {"activation", std::string("relu_grad")}};
  expect_error(Code::kInvalidArgument, "[matmul] activation relu_grad takes no residual", [&] {
    infer_types("matmul", residual, {f32({2, 3}), f32({3, 4}), f32({2, 4})});
  });
  EXPECT_EQ(infer_types("matmul", {}, {i32({2, 3}), i32({3, 5})})[0], i32({2, 5}));
  expect_error(Code::kInvalidArgument, "[matmul] does not take these dtypes", [] {
    infer_types("matmul", {}, {i32({2, 3}), f32({3, 5})});
  });
  expect_error(Code::kUnimplemented, "[matmul] has no kernel for i32", [] {
    infer_types("matmul", {}, {f32({2, 3}), i32({3, 5})});
  });
  expect_error(Code::kUnimplemented, "[matmul] has no kernel for i32 with an epilogue", [] {
    infer_types("matmul", {{"activation", std::string("relu")}}, {i32({2, 3}), i32({3, 5})});
  });
}

TEST(Op, Reductions) {
  const auto axes = [](std::vector<int64_t> a, int64_t keep) {
    return Attrs{{"axes", std::move(a)}, {"keep_dims", keep}};
  };
  EXPECT_EQ(infer_types("reduce_sum", {}, {f32({2, 3})})[0], f32({}));
  EXPECT_EQ(infer_types("reduce_sum", axes({-1}, 0), {f32({2, 3})})[0], f32({2}));
  EXPECT_EQ(infer_types("reduce_max", axes({0, 2}, 1), {f32({2, 3, 4})})[0], f32({1, 3, 1}));
  EXPECT_EQ(infer_types("argmax", {}, {f32({2, 3})})[0], i32({2}));
  EXPECT_EQ(infer_types("argmin", {}, {i32({2, 3})})[0], i32({2}));
  EXPECT_EQ(infer_types("reduce_prod", {}, {i32({2, 3})})[0], i32({}));
  expect_error(Code::kInvalidArgument, "axis 2 is out of range for rank 2", [&] {
    infer_types("reduce_sum", axes({2}, 0), {f32({2, 3})});
  });
  expect_error(Code::kInvalidArgument, "repeat", [&] {
    infer_types("reduce_sum", axes({0, -2}, 0), {f32({2, 3})});
  });
  expect_error(Code::kInvalidArgument, "axis 0 has no elements", [&] {
    infer_types("reduce_max", axes({0}, 0), {f32({0, 3})});
  });
}

TEST(Op, Shapes) {
  const auto shape = [](std::vector<int64_t> s) { return Attrs{{"shape", std::move(s)}}; };
  EXPECT_EQ(infer_types("reshape", shape({-1, 2}), {f32({3, 4})})[0], f32({6, 2}));
  EXPECT_EQ(infer_types("broadcast_to", shape({5, 3}), {f32({3})})[0], f32({5, 3}));
  expect_error(Code::kInvalidArgument, "cannot reshape to [5]", [&] {
    infer_types("reshape", shape({5}), {f32({3, 4})});
  });
  expect_error(Code::kInvalidArgument, "cannot broadcast to [3]", [&] {
    infer_types("broadcast_to", shape({3}), {f32({2, 3})});
  });
  expect_error(Code::kInvalidArgument, "is too large", [&] {
    infer_types("broadcast_to", shape({int64_t{1} << 40, int64_t{1} << 40}), {f32({1})});
  });
  expect_error(Code::kInvalidArgument, "not a permutation", [&] {
    infer_types("transpose", {{"perm", std::vector<int64_t>{0, 0}}}, {f32({2, 3})});
  });
}

TEST(Op, NumbersFitTheirType) {
  const TensorType u8{DType::kU8, {3}};
  const auto pad = [](const TensorType& x, double value) {
    return infer_types("pad", {{"paddings", std::vector<int64_t>{1, 0}}, {"value", value}}, {x});
  };
  for (double value : {-0.5, 255.5}) EXPECT_EQ(pad(u8, value)[0].shape, Shape{4});
  for (double value : {-0x1p31, 0x1p31 - 1}) EXPECT_EQ(pad(i32({3}), value)[0], i32({4}));
  EXPECT_EQ(pad(f32({3}), NAN)[0], f32({4}));
  expect_error(Code::kInvalidArgument, "[pad] value 300 does not fit u8", [&] { pad(u8, 300); });
  expect_error(Code::kInvalidArgument, "[pad] value -1 does not fit u8", [&] { pad(u8, -1); });
  expect_error(Code::kInvalidArgument, "value nan does not fit i32", [&] { pad(i32({3}), NAN); });
  expect_error(Code::kInvalidArgument, "does not fit i32", [&] { pad(i32({3}), 0x1p31); });
  const auto code = static_cast<int64_t>(DType::kI64), narrow = static_cast<int64_t>(DType::kI32);
  expect_error(Code::kInvalidArgument, "[fill] value 9.223372036854776e+18 does not fit i64", [&] {
    infer_types("fill", {{"shape", Shape{2}}, {"value", 0x1p63}, {"dtype", code}}, {});
  });
  expect_error(Code::kInvalidArgument, "[one_hot] value inf does not fit i64", [&] {
    infer_types("one_hot",
                {{"depth", int64_t{3}}, {"axis", int64_t{0}}, {"off", INFINITY}, {"dtype", code}},
                {i32({2})});
  });
  expect_error(Code::kInvalidArgument, "[arange] value 3000000000 does not fit i32", [&] {
    infer_types("arange", {{"count", int64_t{4}}, {"step", 1e9}, {"dtype", narrow}}, {});
  });
}

TEST(Op, CrossEntropyAndOptimizers) {
  EXPECT_EQ(infer_types("softmax_cross_entropy", {}, {f32({64, 10}), i32({64})})[0], f32({64}));
  expect_error(Code::kInvalidArgument, "labels need i32[64]", [] {
    infer_types("softmax_cross_entropy", {}, {f32({64, 10}), i32({63})});
  });
  expect_error(Code::kInvalidArgument, "grad (input 1) needs the parameter's type f32[3]", [] {
    infer_types("apply_gradient_descent", {}, {f32({3}), f32({4}), f32({})});
  });
}

TEST(Op, NarrowFloatsStandInForF32) {
  const auto bf16 = [](Shape shape) { return TensorType{DType::kBF16, std::move(shape)}; };
  const auto f16 = [](Shape shape) { return TensorType{DType::kF16, std::move(shape)}; };
  EXPECT_EQ(infer_types("matmul", {}, {bf16({2, 3}), bf16({3, 5})})[0], bf16({2, 5}));
  EXPECT_EQ(infer_types("reduce_mean", {}, {f16({4})})[0], f16({}));
  EXPECT_EQ(infer_types("argmax", {}, {bf16({2, 3})})[0], i32({2}));
  EXPECT_EQ(infer_types("softmax_cross_entropy", {}, {bf16({4, 10}), i32({4})})[0], bf16({4}));
  // The learning rate may stay f32.
  for (const TensorType& rate : {f32({}), bf16({})}) {
    EXPECT_EQ(infer_types("apply_gradient_descent", {}, {bf16({3}), bf16({3}), rate})[0],
              bf16({3}));
  }
  expect_error(Code::kInvalidArgument,
               "[matmul] input 1 is f32 beside bf16: float inputs need one dtype", [&] {
                 infer_types("matmul", {}, {bf16({2, 3}), f32({3, 5})});
               });
  expect_error(Code::kInvalidArgument, "input 2 is bf16 beside f32", [&] {
    infer_types("apply_gradient_descent", {}, {f32({3}), f32({3}), bf16({})});
  });
  expect_error(Code::kInvalidArgument, "[matmul] inner extents differ", [&] {
    infer_types("matmul", {}, {bf16({2, 3}), bf16({4, 5})});
  });
}

// Casts in, the f32 plan, a cast out; operands of their own type stay where they are.
TEST(Op, NarrowPlansKeepWideOperandsInTheWorkspace) {
  const OpCall call =
      make_call("softmax_cross_entropy", {}, {{DType::kBF16, {4, 10}}, {DType::kI32, {4}}});
  const Plan plan = make_plan(kernels::DeviceClass::kCpu, call, infer(call));
  ASSERT_EQ(plan.launches.size(), 3u);
  ASSERT_EQ(plan.regions.size(), 2u);  // logits and losses in f32: slots 4 and 5
  EXPECT_EQ(plan.regions[0].bytes, 160u);
  EXPECT_EQ(plan.regions[1].bytes, 16u);
  EXPECT_GE(plan.regions[1].offset, plan.regions[0].bytes);
  EXPECT_GE(plan.workspace_bytes, plan.regions[1].offset + plan.regions[1].bytes);
  std::vector<std::set<uint32_t>> slots;
  for (const device::Launch& launch : plan.launches) {
    slots.emplace_back();
    for (const device::Arg& arg : launch.args) {
      if (arg.kind == device::Arg::Kind::kBuffer) slots.back().insert(arg.slot);
    }
  }
  EXPECT_EQ(slots, (std::vector<std::set<uint32_t>>{{0, 4}, {1, 4, 5}, {2, 5}}));
}

TEST(Op, ConvolutionAndPooling) {
  const TensorType x = f32({2, 6, 8, 9}), w = f32({4, 3, 3, 2});
  const Attrs grouped{{"group", int64_t{2}}, {"stride", std::vector<int64_t>{2, 3}}};
  EXPECT_EQ(infer_types("conv2d", grouped, {x, w})[0], f32({2, 4, 3, 3}));
  const auto refuses = [&](const std::string& message, Attrs attrs, std::vector<TensorType> in) {
    expect_error(Code::kInvalidArgument, message, [&] { infer_types("conv2d", attrs, in); });
  };
  refuses("[conv2d] the weights [4, 3, 3, 2] are for 3 channels per group, the input has 6", {},
          {x, w});
  refuses("group is 4, expected a divisor of the 6 input and 4 output channels",
          {{"group", int64_t{4}}}, {x, w});
  refuses("stride is [0, 1], expected 2 numbers of at least 1",
          {{"group", int64_t{2}}, {"stride", std::vector<int64_t>{0, 1}}}, {x, w});
  refuses("the kernel covers 9 by 5 elements, but the padded input has 8 by 9",
          {{"group", int64_t{2}}, {"dilation", std::vector<int64_t>{4, 4}}}, {x, w});
  refuses("input 0 needs rank 4", {}, {f32({3}), w});
  refuses("this epilogue takes 3 inputs, got 2", {{"group", int64_t{2}}, {"has_bias", int64_t{1}}},
          {x, w});
  refuses("input 2 needs f32[4]", {{"group", int64_t{2}}, {"has_bias", int64_t{1}}},
          {x, w, f32({5})});
  refuses("activation \"gelu\" is not none or relu",
          {{"group", int64_t{2}}, {"activation", std::string("gelu")}}, {x, w});
  expect_error(Code::kInvalidArgument, "dy (input 0) needs shape [2, 4, 6, 8]", [&] {
    infer_types("conv2d_weight_grad",
                {{"group", int64_t{2}}, {"weight_size", std::vector<int64_t>{4, 3, 3, 2}}}, {x, x});
  });
  expect_error(
      Code::kInvalidArgument, "input_size is [2, 6], expected 4 numbers of at least 0", [&] {
        infer_types("conv2d_input_grad", {{"input_size", std::vector<int64_t>{2, 6}}}, {x, w});
      });
  expect_error(Code::kInvalidArgument, "kernel_size is [2], expected 2 numbers", [&] {
    infer_types("max_pool2d", {{"kernel_size", std::vector<int64_t>{2}}}, {x});
  });
  expect_error(Code::kInvalidArgument, "expected less than the kernel's extent of 2 by 2", [&] {
    infer_types("max_pool2d",
                {{"kernel_size", std::vector<int64_t>{2, 2}},
                 {"padding", std::vector<int64_t>{2, 0, 0, 0}}},
                {x});
  });
  expect_error(Code::kInvalidArgument, "which average pooling does not have", [&] {
    infer_types(
        "avg_pool2d",
        {{"kernel_size", std::vector<int64_t>{2, 2}}, {"dilation", std::vector<int64_t>{2, 2}}},
        {x});
  });
}

TEST(Op, Attention) {
  const TensorType q = f32({2, 3, 4, 8}), k = f32({2, 3, 5, 8}), v = f32({2, 3, 5, 6});
  const TensorType out = f32({2, 3, 4, 6}), row = f32({2, 3, 4});
  const std::string forward = "scaled_dot_product_attention";
  EXPECT_EQ(infer_types(forward, {}, {q, k, v}), (std::vector<TensorType>{out, row}));
  EXPECT_EQ(infer_types("attention_grad", {}, {out, q, k, v, row, row}),
            (std::vector<TensorType>{q, k, v}));
  const auto refuses = [&](const std::string& message, std::vector<TensorType> in) {
    expect_error(Code::kInvalidArgument, message, [&] { infer_types(forward, {}, in); });
  };
  refuses("q, k and v need rank 2 or more, got f32[8]", {f32({8}), k, v});
  refuses("k is f32[2, 3, 5, 6], expected f32[2, 3, 5, 8] beside q f32[2, 3, 4, 8]", {q, v, v});
  refuses("v is f32[2, 3, 4, 6], expected f32[2, 3, 5, 6] beside k f32[2, 3, 5, 8]", {q, k, out});
  refuses(
      "the mask is f32[4, 1], expected bool or f32 that broadcasts to [2, 3, 4, 5] and has all 5",
      {q, k, v, f32({4, 1})});
  refuses("the mask is i32[4, 5]", {q, k, v, {DType::kI32, {4, 5}}});
  refuses("the mask is bool[2, 4, 5]", {q, k, v, {DType::kBool, {2, 4, 5}}});
  expect_error(Code::kInvalidArgument, "dout is f32[2, 3, 4, 8], expected f32[2, 3, 4, 6]", [&] {
    infer_types("attention_grad", {}, {q, q, k, v, row, row});
  });
  expect_error(Code::kInvalidArgument, "delta is f32[2, 3, 4, 6], expected f32[2, 3, 4]", [&] {
    infer_types("attention_grad", {}, {out, q, k, v, row, out});
  });
  const TensorType deep = f32({2, 3, 2, 4, 8});
  expect_error(Code::kUnimplemented, "broadcast it to [2, 3, 2] first", [&] {
    infer_types(forward, {}, {deep, deep, deep, f32({2, 1, 2, 4, 4})});
  });
}

TEST(Op, ListingIsSortedAndComplete) {
  std::string last;
  for (const OpDef* op : list_ops()) {
    EXPECT_LT(last, op->name);
    EXPECT_EQ(find_op(op->name), op);
    EXPECT_FALSE(op->is_internal);
    last = op->name;
  }
  EXPECT_EQ(find_op("nothing"), nullptr);
}

}  // namespace
}  // namespace ballast::graph
