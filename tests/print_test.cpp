// Prints come in program order, whole, once: eagerly, jitted, sunk, in the bodies of control flow
// and under every transform.
#include "frontend/ballast_frontend.h"
#include "frontend/test_support.h"

#include <gmock/gmock.h>

#include <map>
#include <stdexcept>
#include <thread>

namespace ballast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Lines = std::vector<std::string>;

// What is printed while it lives: a line per print, scalars shortened to their values.
class Printed {
 public:
  Printed() { ::testing::internal::CaptureStdout(); }
  ~Printed() { ::testing::internal::GetCapturedStdout(); }

  Lines take() {
    std::string text = ::testing::internal::GetCapturedStdout();
    ::testing::internal::CaptureStdout();
    const std::string head = "\nTensor(shape=[], dtype=Float32, value= ";
    for (size_t at = text.find(head); at != std::string::npos; at = text.find(head)) {
      text.replace(at, head.size(), " ").erase(text.find(')', at), 1);
    }
    Lines lines;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      lines.push_back(text.substr(0, end));
      text.erase(0, end + 1);
    }
    return lines;
  }
};

Tensor scalar(float x) { return Tensor::from_host<float>({x}, {}); }

TEST(PrintTest, FormIsMindSpores) {
  ::testing::internal::CaptureStdout();
  Tensor z = Tensor::full({2, 2}, 2);
  auto show = [](Tensor x) {
    ops::print("Debug {z}:", x, 7, std::tuple(ops::sum(x), ops::equal(x, 2)));
    return x;
  };
  show(z);
  jit(show)(z);
  const std::string expected =
      "Debug {z}:\nTensor(shape=[2, 2], dtype=Float32, value=\n"
      "[[ 2.00000000e+00,  2.00000000e+00],\n [ 2.00000000e+00,  2.00000000e+00]])\n7\n"
      "Tensor(shape=[], dtype=Float32, value= 8)\n"
      "Tensor(shape=[2, 2], dtype=Bool, value=\n[[True, True],\n [True, True]])\n";
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), expected + expected);
}

TEST(PrintTest, TheProgramShowsTheToken) {
  Parameter w(scalar(0), "w");
  Program program = eliminate_dead_code(trace(
      [&](const std::vector<Tensor>& in) {
        ops::print("x:", in[0]);
        w.assign(in[0]);
        ops::Print()("w:", w);
        return std::vector<Tensor>{};
      },
      {{DType::kF32, {}}}));
  verify(program);
  EXPECT_EQ(to_string(program),
            "(a:f32[]) {\n"
            "  state b:token = io\n"
            "  c:token = print[text=\"x:\\n{}\"] b a\n"
            "  d:token = print[text=\"w:\\n{}\"] c a\n"
            "  update io <- d\n"
            "  update w <- a\n"
            "  return\n"
            "}\n");
}

TEST(PrintTest, JitPrintsOnEveryRunInOrder) {
  Printed printed;
  Parameter w(scalar(1), "w");
  for (const JitLevel level : {JitLevel::kO0, JitLevel::kO1}) {
    for (const bool has_depend : {false, true}) {
      w.assign(scalar(1));
      auto step = jit(
          [&](Tensor x) {
            ops::print("before", w);
            w.assign(w + x);
            ops::print("after", w);
            ops::print("done");
            Tensor y = x * x;
            return has_depend ? ops::depend(y, w) : y;
          },
          {level});
      EXPECT_THAT(printed.take(), IsEmpty());
      EXPECT_EQ(step(scalar(2)).item<float>(), 4);
      EXPECT_THAT(printed.take(), ElementsAre("before 1", "after 3", "done"));
      step(scalar(3));
      EXPECT_THAT(printed.take(), ElementsAre("before 3", "after 6", "done"));
    }
  }
}

TEST(PrintTest, SunkStepsPrint) {
  Printed printed;
  Parameter total(scalar(0), "total");
  auto step = jit([&](Tensor x) {
    total.assign(total + x);
    ops::print("total", total);
    return total * 2.0f;
  });
  auto loop = sink(step);
  Tensor results = loop(3, each(Tensor::from_host<float>({1, 2, 3}, {3})));
  EXPECT_THAT(printed.take(), ElementsAre("total 1", "total 3", "total 6"));
  EXPECT_EQ(results.to_host<float>(), (std::vector<float>{2, 6, 12}));
}

// Prints from every kind of body, in between, and around.
Tensor everywhere(Tensor x) {
  ops::print("start", x);
  auto [h, ys] = scan(
      [](Tensor carry, Tensor step) {
        Tensor next = carry + step;
        cond(
            ops::less(next, 3), [&] { ops::print("small", next); },
            [&] { ops::print("large", next); });
        return std::pair(next, next * next);
      },
      x, Tensor::from_host<float>({1, 2}, {2}));
  ops::print("between");
  Tensor last = while_loop([](Tensor c) { return ops::less(c, 10); },
                           [](Tensor c) {
                             ops::print("while", c);
                             return c * 2.0f;
                           },
                           h);
  ops::print("end");
  return last + ops::sum(ys);
}
const Lines kEverywhere{"start 1", "small 2", "large 4", "between", "while 4", "while 8", "end"};

TEST(PrintTest, BodiesPrint) {
  Printed printed;
  EXPECT_EQ(everywhere(scalar(1)).item<float>(), 36);
  EXPECT_EQ(printed.take(), kEverywhere);
  for (const JitLevel level : {JitLevel::kO0, JitLevel::kO1}) {
    auto jitted = jit(everywhere, {level});
    EXPECT_EQ(jitted(scalar(1)).item<float>(), 36);
    EXPECT_EQ(printed.take(), kEverywhere);
    jitted(scalar(1));
    EXPECT_EQ(printed.take(), kEverywhere);
  }
}

TEST(PrintTest, GradientsPrintOnce) {
  Printed printed;
  auto gradient = grad(everywhere);
  // 4 (x + 3) + (x + 1)^2 + (x + 3)^2 at 1.
  EXPECT_EQ(gradient(scalar(1)).item<float>(), 16);
  EXPECT_EQ(printed.take(), kEverywhere);
  for (const JitLevel level : {JitLevel::kO0, JitLevel::kO1}) {
    EXPECT_EQ(jit(gradient, {level})(scalar(1)).item<float>(), 16);
    EXPECT_EQ(printed.take(), kEverywhere);
  }
  EXPECT_EQ(jit(grad(gradient))(scalar(1)).item<float>(), 4);
  EXPECT_EQ(printed.take(), kEverywhere);
  auto [value, pullback] = vjp(everywhere, scalar(1));
  EXPECT_EQ(printed.take(), kEverywhere);
  EXPECT_EQ(std::get<0>(pullback(scalar(1))).item<float>(), 16);
  EXPECT_THAT(printed.take(), IsEmpty());
}

TEST(PrintTest, TangentsPrintOnce) {
  Printed printed;
  auto tangent = [](Tensor x) { return jvp(everywhere, x, scalar(1)).second; };
  EXPECT_EQ(tangent(scalar(1)).item<float>(), 16);
  EXPECT_EQ(printed.take(), kEverywhere);
  EXPECT_EQ(jit(tangent)(scalar(1)).item<float>(), 16);
  EXPECT_EQ(printed.take(), kEverywhere);
  EXPECT_EQ(jit([&](Tensor x) { return jvp(grad(everywhere), x, scalar(1)).second; })(scalar(1))
                .item<float>(),
            4);
  EXPECT_EQ(printed.take(), kEverywhere);
}

TEST(PrintTest, CheckpointPrintsOnce) {
  Printed printed;
  auto fn = [](Tensor x) {
    return checkpoint([](Tensor y) {
             ops::print("y", y);
             return ops::exp(y) * y;
           })(x * 2.0f) *
           1.0f;
  };
  jit(grad(fn))(scalar(0));
  EXPECT_THAT(printed.take(), ElementsAre("y 0"));
  jit(vmap(grad(fn)))(Tensor::from_host<float>({1, 2}, {2}));
  EXPECT_THAT(printed.take(), ElementsAre("y 2", "y 4"));
}

TEST(PrintTest, VmapPrintsExampleByExample) {
  Printed printed;
  Tensor xs = Tensor::from_host<float>({1, 2}, {2});
  auto fn = [](Tensor x) {
    ops::print("x", x);
    ops::print("next", x + 1.0f);
    ops::print("shared");
    return x * x;
  };
  const Lines expected{"x 1", "x 2", "next 2", "next 3", "shared"};
  EXPECT_EQ(vmap(fn)(xs).to_host<float>(), (std::vector<float>{1, 4}));
  EXPECT_EQ(printed.take(), expected);
  EXPECT_EQ(jit(vmap(grad(fn)))(xs).to_host<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(printed.take(), expected);
}

TEST(PrintTest, VmapPrintsOnlyWhatAnExampleReaches) {
  Printed printed;
  Tensor xs = Tensor::from_host<float>({1, 5}, {2});
  auto branches = [](Tensor x) {
    return cond(
        ops::less(x, 3),
        [&] {
          ops::print("small", x);
          return x;
        },
        [&] {
          ops::print("large", x);
          return -x;
        });
  };
  for (const bool is_jitted : {false, true}) {
    Tensor ys = is_jitted ? jit(vmap(branches))(xs) : vmap(branches)(xs);
    EXPECT_EQ(ys.to_host<float>(), (std::vector<float>{1, -5}));
    EXPECT_THAT(printed.take(), ElementsAre("small 1", "large 5"));
  }
  auto loop = [](Tensor x) {
    return while_loop([](Tensor c) { return ops::less(c, 6); },
                      [](Tensor c) {
                        ops::print("c", c);
                        return c * 2.0f;
                      },
                      x);
  };
  EXPECT_EQ(jit(vmap(loop))(xs).to_host<float>(), (std::vector<float>{8, 10}));
  EXPECT_THAT(printed.take(), ElementsAre("c 1", "c 2", "c 4", "c 5"));
  auto steps = [](Tensor x) {
    return fori_loop(
        0, 2,
        [](Tensor, Tensor c) {
          ops::print("c", c);
          return c + 1.0f;
        },
        x);
  };
  EXPECT_EQ(jit(vmap(steps))(xs).to_host<float>(), (std::vector<float>{3, 7}));
  EXPECT_THAT(printed.take(), ElementsAre("c 1", "c 5", "c 2", "c 6"));
}

TEST(PrintTest, RandomDrawsAndUpdatesKeepTheirPlaces) {
  Printed printed;
  Generator generator(3);
  Parameter seen(scalar(0), "seen");
  auto step = [&](Tensor x) {
    Tensor noise = ops::random_uniform(Shape{}, 0, 1, generator);
    ops::print("first", noise);
    seen.assign(noise);
    Tensor more = ops::random_uniform(Shape{}, 0, 1, generator);
    ops::print("second", more);
    return x;
  };
  std::vector<Lines> runs;
  for (int mode = 0; mode < 3; ++mode) {
    generator.set_seed(3);
    if (mode == 0) {
      step(scalar(0)), step(scalar(0));
    } else {
      auto jitted = jit(step, {mode == 1 ? JitLevel::kO0 : JitLevel::kO1});
      jitted(scalar(0)), jitted(scalar(0));
    }
    runs.push_back(printed.take());
  }
  ASSERT_EQ(runs[0].size(), 4u);
  EXPECT_NE(runs[0][0], runs[0][2]);
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(runs[0], runs[2]);
}

TEST(PrintTest, ASinkTakesWholeTexts) {
  Lines texts;
  set_print_sink([&](const std::string& text) { texts.push_back(text); });
  auto step = jit([](Tensor x) {
    ops::print("x", x);
    return x;
  });
  step(scalar(2));
  ops::print("eager");
  set_print_sink(nullptr);
  EXPECT_THAT(texts, ElementsAre("x\nTensor(shape=[], dtype=Float32, value= 2)\n", "eager\n"));
}

TEST(PrintTest, ASinkThatThrowsDoesNoHarm) {
  Parameter w(scalar(1), "w");
  auto step = jit([&](Tensor x) {
    ops::print("x", x);
    w.assign(w + x);
    return w.value();
  });
  set_print_sink([](const std::string&) { throw std::runtime_error("no paper"); });
  EXPECT_EQ(step(scalar(2)).item<float>(), 3);
  ops::print("eagerly", w);
  set_print_sink([](const std::string&) { throw 7; });
  EXPECT_EQ(step(scalar(2)).item<float>(), 5);
  set_print_sink(nullptr);
}

TEST(PrintTest, ThreadsPrint) {
  Printed printed;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([t] {
      auto step = jit([t](Tensor x) {
        ops::print("jitted", t);
        return x + 1.0f;
      });
      for (int i = 0; i < 20; ++i) {
        step(scalar(0));
        ops::print("eager", t);
        grad([t](Tensor x) {
          ops::print("traced", t);
          return x * x;
        })(scalar(1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::map<std::string, int> counts;
  const Lines lines = printed.take();  // a print is two lines
  for (size_t i = 0; i + 1 < lines.size(); i += 2) ++counts[lines[i] + lines[i + 1]];
  EXPECT_EQ(counts.size(), 9u);
  for (const auto& [text, count] : counts) EXPECT_EQ(count, 20) << text;
}

TEST(PrintTest, ALoopsConditionPrintsBeforeEveryStepAndOnceMore) {
  auto count = [](Tensor from) {
    auto condition = [](Tensor c) {
      ops::print("test", c);
      return ops::less(c, 2);
    };
    auto body = [](Tensor c) {
      ops::print("step");
      return c + 1.0f;
    };
    return while_loop(condition, body, from);
  };
  const Lines expected = {"test 0", "step", "test 1", "step", "test 2"};
  Printed printed;
  EXPECT_EQ(count(scalar(0)).item<float>(), 2);
  EXPECT_EQ(printed.take(), expected);
  EXPECT_EQ(jit(count)(scalar(0)).item<float>(), 2);
  EXPECT_EQ(printed.take(), expected);
  EXPECT_EQ(grad(count)(scalar(0)).item<float>(), 1);
  EXPECT_EQ(printed.take(), expected);
  EXPECT_EQ(count(scalar(5)).item<float>(), 5);
  EXPECT_EQ(printed.take(), (Lines{"test 5"}));
  EXPECT_EQ(vmap(count)(Tensor::on_host<float>({1, 2}, {2})).to_host<float>(),
            (std::vector<float>{2, 2}));
  EXPECT_EQ(printed.take(), (Lines{"test 1", "test 2", "step", "test 2"}));
}

}  // namespace
}  // namespace ballast
