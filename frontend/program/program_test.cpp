#include "frontend/program/program.h"

#include "frontend/ops/ops.h"
#include "frontend/transforms/vjp.h"

#include <gtest/gtest.h>

namespace ballast {
namespace {

const TensorType kVector{DType::kF32, {3}};

TEST(ProgramTest, PrintsWhatWasTraced) {
  Parameter w(Tensor::zeros({3}), "w");
  Tensor captured = Tensor::ones({3});
  Program program = trace(
      [&](const std::vector<Tensor>& in) {
        Tensor y = ops::tanh(in[0] * w) + captured;
        w.assign(y);
        return std::vector<Tensor>{ops::sum(y * 2.0f)};
      },
      {kVector});
  verify(program);
  EXPECT_EQ(to_string(program),
            "(a:f32[3]) {\n"
            "  captured b:f32[3]\n"
            "  state c:f32[3] = w\n"
            "  d:f32[3] = mul a c\n"
            "  e:f32[3] = tanh d\n"
            "  f:f32[3] = add e b\n"
            "  g:f32[3] = mul f 2:f32\n"
            "  h:f32[] = reduce_sum[axes=[], keep_dims=0] g\n"
            "  update w <- f\n"
            "  return h\n"
            "}\n");
}

TEST(ProgramTest, EquationsCarryTheUsersLine) {
  int line = __LINE__ + 2;
  auto fn = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[0] + 1.0f, ops::softmax(in[0])};
  };
  for (const Equation& equation : trace(fn, {kVector}).equations) {
    EXPECT_EQ(to_string(equation.where), "program_test.cpp:" + std::to_string(line));
  }
}

TEST(ProgramTest, ReadsAfterAnAssignmentSeeIt) {
  Parameter w(Tensor::zeros({3}), "w");
  Program program = trace(
      [&](const std::vector<Tensor>& in) {
        w.assign(in[0] + 1.0f);
        w.assign(w * 2.0f);
        return std::vector<Tensor>{w.value()};
      },
      {kVector});
  EXPECT_EQ(to_string(program),
            "(a:f32[3]) {\n"
            "  b:f32[3] = add a 1:f32\n"
            "  c:f32[3] = mul b 2:f32\n"
            "  update w <- c\n"
            "  return c\n"
            "}\n");
}

TEST(ProgramTest, DeadCodeGoesButEffectsStay) {
  Parameter w(Tensor::zeros({3}), "w"), unused(Tensor::zeros({3}), "unused");
  Program program = trace(
      [&](const std::vector<Tensor>& in) {
        ops::exp(in[0] + unused);
        w.assign(ops::neg(in[0]));
        return std::vector<Tensor>{in[0]};
      },
      {kVector});
  EXPECT_EQ(program.equations.size(), 3u);
  EXPECT_EQ(to_string(eliminate_dead_code(program)),
            "(a:f32[3]) {\n"
            "  b:f32[3] = neg a\n"
            "  update w <- b\n"
            "  return a\n"
            "}\n");
}

TEST(ProgramTest, VerifyRefusesUseBeforeDefinition) {
  Program program = trace(
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{ops::exp(ops::neg(in[0]))}; },
      {kVector});
  std::swap(program.equations[0], program.equations[1]);
  EXPECT_THROW(verify(program), Error);
}

TEST(VjpTest, ExtendsTheProgram) {
  Program program = trace(
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{ops::sum(ops::tanh(in[0]))}; },
      {kVector});
  EXPECT_EQ(to_string(reverse(program, {0}, {})),
            "(a:f32[3]) {\n"
            "  b:f32[3] = tanh a\n"
            "  c:f32[] = reduce_sum[axes=[], keep_dims=0] b\n"
            "  d:f32[1] = reshape[shape=[1]] 1:f32\n"
            "  e:f32[3] = broadcast_to[shape=[3]] d\n"
            "  f:f32[3] = square b\n"
            "  g:f32[3] = sub 1:f32 f\n"
            "  h:f32[3] = mul e g\n"
            "  return c h\n"
            "}\n");
}

TEST(VjpTest, InlinesIntoAnEnclosingTrace) {
  Program program = trace(
      [](const std::vector<Tensor>& in) {
        auto square = [&](Tensor x) { return ops::sum(x * x * in[0]); };
        return std::vector<Tensor>{grad(square)(in[0])};
      },
      {kVector});
  verify(program);
  EXPECT_TRUE(program.captured.empty());
  EXPECT_EQ(program.outputs.at(0).type(), kVector);
}

TEST(EvalTest, RunsOpsAndAssignsEffects) {
  Parameter w(Tensor::from_host<float>({1, 2, 3}, {3}), "w");
  Program program = trace(
      [&](const std::vector<Tensor>& in) {
        w.assign(w + in[0]);
        return std::vector<Tensor>{ops::sum(w)};
      },
      {kVector});
  EXPECT_EQ(eval(program, {Tensor::ones({3})})[0].item<float>(), 9);
  EXPECT_EQ(w.value().to_host<float>(), (std::vector<float>{2, 3, 4}));
}

}  // namespace
}  // namespace ballast
