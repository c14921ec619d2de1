// Control flow within control flow, in jitted and sunk functions, and as programs.
#include "tests/control_flow/support.h"

namespace ballast::tests {
namespace {

// A scan in a cond in a while.
auto nested(const Tensor& x, const Tensor& xs, const Tensor& w) {
  return while_loop([](std::pair<Tensor, Tensor> state) { return ops::less(state.first, 3); },
                    [&](std::pair<Tensor, Tensor> state) {
                      auto [i, h] = state;
                      Tensor next = cond(
                          ops::equal(ops::floor_mod(i, 2), 0),
                          [&, h = h] { return folded(h, xs, w).first; },
                          [&, h = h] { return h * w; });
                      return std::pair(i + 1, next);
                    },
                    std::pair(Tensor::scalar(0, DType::kI32), x))
      .second;
}

TEST(ControlFlow, Nests) {
  Tensor x = vector_of({.5f, -.5f}), w = vector_of({.9f, 1.1f});
  auto loss = [](Tensor a, Tensor xs, Tensor weight) {
    return ops::sum(ops::square(nested(a, xs, weight)));
  };
  auto written_out = [](Tensor a, Tensor xs, Tensor weight) {
    for (int i = 0; i < 3; ++i) a = i % 2 == 0 ? unrolled(a, xs, weight).first : a * weight;
    return ops::sum(ops::square(a));
  };
  const std::vector<int> all{0, 1, 2};
  std::vector<Tensor> got = leaves_of(value_and_grad(loss, all)(x, sequence(), w));
  std::vector<Tensor> expected = leaves_of(value_and_grad(written_out, all)(x, sequence(), w));
  for (size_t i = 0; i < got.size(); ++i) expect_near(got[i], expected[i], 1e-5f);
  expect_same_jitted(loss, x, sequence(), w);
  expect_same_jitted(value_and_grad(loss, all), x, sequence(), w);
}

TEST(ControlFlow, ASunkStepMayContainALoop) {
  auto train = [](Parameter& w, Parameter& seen) {
    return [&](Tensor xs) {
      auto loss = [&](Tensor data) {
        return ops::sum(ops::square(folded(Tensor::zeros({2}), data, w.value()).second));
      };
      auto [value, gradients] = value_and_grad(loss, std::nullopt, {w})(xs);
      w.assign(w - gradients[0] * 0.1f);
      cond(
          ops::less(value, 1e9f), [&] { seen.assign(seen + 1.0f); }, [] {});
      return value;
    };
  };
  std::vector<float> data;
  for (int i = 0; i < 4 * 6; ++i) data.push_back(std::sin(static_cast<float>(i)));
  Tensor queue = Tensor::from_host(data, {4, 3, 2});
  Parameter w1(vector_of({.9f, 1.1f}), "w"), w2(vector_of({.9f, 1.1f}), "w");
  Parameter seen1(Tensor::scalar(0), "seen"), seen2(Tensor::scalar(0), "seen");
  auto stepped = jit(train(w1, seen1));
  auto loop = sink(jit(train(w2, seen2)));
  std::vector<float> losses;
  for (int64_t i = 0; i < 4; ++i) {
    losses.push_back(
        stepped(ops::reshape(ops::slice(queue, {i, 0, 0}, {1, -1, -1}), {3, 2})).item<float>());
  }
  EXPECT_EQ(floats(loop(4, each(queue))), losses);
  EXPECT_EQ(floats(w2), floats(w1));
  EXPECT_EQ(seen2.value().item<float>(), 4);
  loop(4, each(queue));
  EXPECT_EQ(loop.info().sink_allocations, 0u);
}

TEST(ControlFlow, AJittedLoopIsOneCallAndAllocatesNothingAgain) {
  auto fn = jit([](Tensor x, Tensor xs, Tensor w) { return nested(x, xs, w); });
  Tensor x = vector_of({.5f, -.5f}), w = vector_of({.9f, 1.1f}), xs = sequence().to_device();
  for (int i = 0; i < 3; ++i) fn(x, xs, w).sync();
  Counters before = counters();
  for (int i = 0; i < 5; ++i) fn(x, xs, w);
  Counters after = counters();
  EXPECT_EQ(after.host_calls - before.host_calls, 5u);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_GT(fn.info().launch_count, 5u);
  EXPECT_GT(fn.info().arena_bytes, 0u);
}

TEST(ControlFlow, ProgramsPrintTheirBodies) {
  Program program =
      trace([](const std::vector<Tensor>& in) { return std::vector<Tensor>{absolute(in[0])}; },
            {{DType::kF32, {2}}});
  verify(program);
  EXPECT_EQ(to_string(program),
            "(a:f32[2]) {\n"
            "  b:f32[] = reduce_sum[axes=[], keep_dims=0] a\n"
            "  c:bool[] = less b 0:f32\n"
            "  d:f32[2] = cond c a\n"
            "    (e:f32[2]) {\n"
            "      f:f32[2] = neg e\n"
            "      return f\n"
            "    }\n"
            "    (g:f32[2]) {\n"
            "      h:f32[2] = mul g 2:f32\n"
            "      return h\n"
            "    }\n"
            "  return d\n"
            "}\n");
}

TEST(ControlFlow, DeadResultsOfBodiesGo) {
  Program program = trace(
      [](const std::vector<Tensor>& in) {
        auto step = [&](std::pair<Tensor, Tensor> carry, std::pair<Tensor, Tensor> x) {
          Tensor unused = ops::exp(carry.second) * in[1];
          return std::pair(std::pair(carry.first + x.first, unused),
                           std::pair(carry.first, x.second));
        };
        return std::vector<Tensor>{
            scan(step, std::pair(in[0], in[0]), std::pair(in[2], in[2])).second.first};
      },
      {{DType::kF32, {}}, {DType::kF32, {}}, {DType::kF32, {3}}});
  program = eliminate_dead_code(program);
  verify(program);
  EXPECT_EQ(to_string(program),
            "(a:f32[], b:f32[], c:f32[3]) {\n"
            "  d:f32[] e:f32[3] = scan[consts=0, carried=1, length=3, reverse=0] a c\n"
            "    (f:f32[], g:f32[]) {\n"
            "      h:f32[] = add f g\n"
            "      return h f\n"
            "    }\n"
            "  return e\n"
            "}\n");
}

}  // namespace
}  // namespace ballast::tests
