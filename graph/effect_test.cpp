#include "graph/effect.h"

#include "graph/passes.h"
#include "graph/prepared_op.h"
#include "graph/print_sink.h"
#include "graph/sink.h"
#include "graph/tensor_text.h"
#include "graph/test_support.h"
#include "graph/text.h"

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace ballast::graph {
namespace {

using namespace testing;
using device::BufferPtr;
using device::Code;
using device::Replay;

// What is printed while it lives.
class Printed {
 public:
  Printed() {
    set_print_sink([this](const std::string& text) { lines_.push_back(text); });
  }
  ~Printed() { set_print_sink(nullptr); }
  std::vector<std::string> take() { return std::exchange(lines_, {}); }

 private:
  std::vector<std::string> lines_;
};
using Lines = std::vector<std::string>;

template <class T>
std::string text_of(DType dtype, Shape shape, const std::vector<T>& values) {
  return tensor_text({dtype, std::move(shape)}, reinterpret_cast<const uint8_t*>(values.data()));
}

TEST(TensorText, IsMindSporesForm) {
  EXPECT_EQ(text_of<float>(DType::kF32, {2, 2}, {2, -1.5, 1e-30f, 3}),
            "Tensor(shape=[2, 2], dtype=Float32, value=\n"
            "[[ 2.00000000e+00, -1.50000000e+00],\n"
            " [ 1.00000000e-30,  3.00000000e+00]])");
  EXPECT_EQ(text_of<int32_t>(DType::kI32, {3}, {1, -20, 3}),
            "Tensor(shape=[3], dtype=Int32, value= [  1, -20,   3])");
  EXPECT_EQ(text_of<uint8_t>(DType::kBool, {2}, {1, 0}),
            "Tensor(shape=[2], dtype=Bool, value= [ True, False])");
  EXPECT_EQ(text_of<float>(DType::kF32, {}, {0.1f}), "Tensor(shape=[], dtype=Float32, value= 0.1)");
  EXPECT_EQ(text_of<int64_t>(DType::kI64, {}, {int64_t{1} << 62}),
            "Tensor(shape=[], dtype=Int64, value= 4611686018427387904)");
  EXPECT_EQ(text_of<uint16_t>(DType::kF16, {3}, {0x3c00, 0x0001, 0xfc00}),
            "Tensor(shape=[3], dtype=Float16, value= "
            "[ 1.00000000e+00,  5.96046448e-08,            -inf])");
  EXPECT_EQ(text_of<uint16_t>(DType::kBF16, {2}, {0x3fc0, 0x7fc0}),
            "Tensor(shape=[2], dtype=BFloat16, value= [ 1.50000000e+00,             nan])");
  EXPECT_EQ(text_of<float>(DType::kF32, {0}, {}), "Tensor(shape=[0], dtype=Float32, value= [])");
  EXPECT_EQ(text_of<int32_t>(DType::kI32, {2, 1, 2}, {1, 2, 3, 4}),
            "Tensor(shape=[2, 1, 2], dtype=Int32, value=\n[[[1, 2]],\n\n [[3, 4]]])");
}

TEST(TensorText, TheMiddleOfLongAxesIsLeftOut) {
  std::vector<int32_t> values(1001);
  for (int32_t i = 0; i < 1001; ++i) values[static_cast<size_t>(i)] = i;
  EXPECT_EQ(text_of<int32_t>(DType::kI32, {1001}, values),
            "Tensor(shape=[1001], dtype=Int32, value= "
            "[   0,    1,    2 ...  998,  999, 1000])");
  EXPECT_EQ(text_of<int32_t>(DType::kI32, {143, 7}, values),
            "Tensor(shape=[143, 7], dtype=Int32, value=\n"
            "[[   0,    1,    2 ...    4,    5,    6],\n"
            " [   7,    8,    9 ...   11,   12,   13],\n"
            " [  14,   15,   16 ...   18,   19,   20]\n"
            " ...\n"
            " [ 980,  981,  982 ...  984,  985,  986],\n"
            " [ 987,  988,  989 ...  991,  992,  993],\n"
            " [ 994,  995,  996 ...  998,  999, 1000]])");
}

const char* const kCount =
    "ballast.graph 1\ninput %0 \"x\": f32[]\nstate %1 \"s\": f32[]\nconst %2: u8[0] = \n"
    "const %3: f32[] = 0000803f\n"
    "%4 = print(%2, %1) {text = \"old {}\"} : u8[0]\n%5 = add(%1, %0) : f32[]\n"
    "%6 = print(%4, %5) {text = \"new {}\"} : u8[0]\n%7 = mul(%5, %5) : f32[]\n"
    "%8 = print(%6, %3) {text = \"{{one}} {}\"} : u8[0]\n"
    "%9 = print(%8, %3) {text = \"{{one}} {}\"} : u8[0]\n"
    "update %1 = %5\noutput %7\n";

std::string scalar(const std::string& label, const std::string& value) {
  return label + " Tensor(shape=[], dtype=Float32, value= " + value + ")\n";
}

TEST(Effect, PrintsAreKeptInOrder) {
  EXPECT_EQ(print(parse(kCount)), kCount);
  Printed printed;
  for (const Level level : {Level::kO0, Level::kO1}) {
    for (const Replay replay : {Replay::kAuto, Replay::kList, Replay::kNative}) {
      if (replay == Replay::kNative && !test_device()->info().has_command_buffer) continue;
      Executable exe(test_device(), parse(kCount), {level, replay});
      EXPECT_EQ(printed.take(), Lines{}) << "compiling prints nothing";
      const BufferPtr state = upload({1}), out = upload({0});
      exe.bind_state(0, state);
      for (int run = 0; run < 2; ++run) {
        exe.run(test_device()->default_stream(), {{upload({2}), nullptr}}, {out});
        const std::string old = run == 0 ? "1" : "3", now = run == 0 ? "3" : "5";
        EXPECT_EQ(printed.take(), (Lines{scalar("old", old), scalar("new", now),
                                         scalar("{one}", "1"), scalar("{one}", "1")}));
      }
      EXPECT_EQ(download(out)[0], 25);
      EXPECT_EQ(download(state)[0], 5);
    }
  }
}

TEST(Effect, SinksPrintEveryStep) {
  Printed printed;
  auto exe = std::make_shared<Executable>(test_device(), parse(kCount), CompileOptions{});
  const BufferPtr state = upload({0}), xs = upload({1, 2, 3}), out = upload({0, 0, 0});
  exe->bind_state(0, state);
  Sink sink(exe, 0);
  sink.run(test_device()->default_stream(), 3, {{xs, nullptr, 3}}, {{out, nullptr, 3}});
  const Lines lines = printed.take();
  ASSERT_EQ(lines.size(), 12u);
  EXPECT_EQ(lines[1], scalar("new", "1"));
  EXPECT_EQ(lines[4], scalar("old", "1"));
  EXPECT_EQ(lines[5], scalar("new", "3"));
  EXPECT_EQ(lines[9], scalar("new", "6"));
  EXPECT_EQ(download(out), (std::vector<float>{1, 9, 36}));
  EXPECT_EQ(sink.info().replay_allocations, 0u);
}

TEST(Effect, StitchingAGraphThatPrintsIsRefused) {
  expect_error(Code::kUnimplemented, "the graph has an effect (print)", [] {
    Executable(test_device(), parse(kCount), {Level::kO1, Replay::kStitch});
  });
}

// h' = h + x, printed; then, where h' < 4, that is said as well. Nothing reads the tokens at the
// end.
const char* const kLoops =
    "ballast.graph 1\ninput %0 \"h\": f32[]\ninput %1 \"xs\": f32[3]\nconst %2: u8[0] = \n"
    "const %3: f32[] = 00008040\n"
    "%4, %5 = scan(%3, %2, %0, %1) {consts = 1, carried = 2, length = 3} : u8[0], f32[] {\n"
    "  input %0 \"limit\": f32[]\n  input %1 \"t\": u8[0]\n  input %2 \"h\": f32[]\n"
    "  input %3 \"x\": f32[]\n  %4 = add(%2, %3) : f32[]\n"
    "  %5 = print(%1, %4) {text = \"h {}\"} : u8[0]\n  %6 = less(%4, %0) : bool[]\n"
    "  %7 = cond(%6, %5) : u8[0] {\n    input %0 \"t\": u8[0]\n"
    "    %1 = print(%0) {text = \"small\"} : u8[0]\n    output %1\n  } {\n"
    "    input %0 \"t\": u8[0]\n    output %0\n  }\n  output %7, %4\n}\n"
    "%6, %7 = while(%3, %4, %5) {consts = 1} : u8[0], f32[] {\n"
    "  input %0 \"limit\": f32[]\n  input %1 \"t\": u8[0]\n  input %2 \"h\": f32[]\n"
    "  %3 = less(%0, %2) : bool[]\n  output %3\n} {\n"
    "  input %0 \"limit\": f32[]\n  input %1 \"t\": u8[0]\n  input %2 \"h\": f32[]\n"
    "  const %3: f32[] = 0000803f\n  %4 = print(%1, %2) {text = \"down {}\"} : u8[0]\n"
    "  %5 = sub(%2, %3) : f32[]\n  output %4, %5\n}\n";

TEST(Effect, RegionsPrint) {
  const Graph graph = parse(kLoops);
  verify(graph);
  Printed printed;
  for (const Level level : {Level::kO0, Level::kO1}) {
    Executable exe(test_device(), graph, {level, Replay::kAuto});
    const BufferPtr h = upload({0}), xs = upload({1, 2, 3});
    for (int again = 0; again < 2; ++again) {
      exe.run(test_device()->default_stream(), {{h, nullptr}, {xs, nullptr}}, {});
      EXPECT_EQ(printed.take(),
                (Lines{scalar("h", "1"), "small\n", scalar("h", "3"), "small\n", scalar("h", "6"),
                       scalar("down", "6"), scalar("down", "5")}));
    }
  }
}

TEST(Effect, WhatTheHostThrowsEndsThere) {
  Executable exe(test_device(), parse(kCount), {});
  const BufferPtr state = upload({1}), out = upload({0});
  exe.bind_state(0, state);
  int calls = 0;
  set_print_sink([&](const std::string&) {
    if (++calls % 2 == 1) throw std::runtime_error("no paper");
    throw 7;
  });
  exe.run(test_device()->default_stream(), {{upload({2}), nullptr}}, {out});
  set_print_sink(nullptr);
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(download(out)[0], 9);
}

TEST(Effect, ThreadsPrintWholeTexts) {
  std::vector<std::string> texts;  // the sink is called by one thread at a time
  set_print_sink([&](const std::string& text) { texts.push_back(text); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([t] {
      const Graph graph =
          parse(fmt::format("ballast.graph 1\nconst %0: u8[0] = \n"
                            "%1 = print(%0) {{text = \"thread {}\"}} : u8[0]\n",
                            t));
      Executable exe(test_device(), graph, {});
      for (int i = 0; i < 50; ++i) exe.run(test_device()->default_stream(), {}, {});
    });
  }
  for (std::thread& thread : threads) thread.join();
  set_print_sink(nullptr);
  EXPECT_EQ(texts.size(), 150u);
  for (int t = 0; t < 3; ++t) {
    EXPECT_EQ(std::count(texts.begin(), texts.end(), fmt::format("thread {}\n", t)), 50);
  }
}

TEST(Effect, OpsPrintAtOnce) {
  Printed printed;
  const PreparedOp op(
      test_device(), make_call("print", {{"text", std::string("x {}")}}, {token_type(), f32({2})}));
  const BufferPtr none = upload({}), x = upload({1, 2}), token = upload({});
  const BufferPtr buffers[] = {none, x, token};
  op.launch(test_device()->default_stream(), buffers, 3);
  EXPECT_EQ(printed.take(), (Lines{"x Tensor(shape=[2], dtype=Float32, value= "
                                   "[ 1.00000000e+00,  2.00000000e+00])\n"}));
}

TEST(Effect, TextsMustFit) {
  auto infers = [](const char* text, std::vector<TensorType> inputs) {
    infer(make_call("print", {{"text", std::string(text)}}, std::move(inputs)));
  };
  expect_error(Code::kInvalidArgument, "[print] text has 2 places for 1 tensors", [&] {
    infers("{} {}", {token_type(), f32({2})});
  });
  expect_error(Code::kInvalidArgument, "[print] text: a lone '{' at 2",
               [&] { infers("a {b}", {token_type()}); });
  expect_error(Code::kInvalidArgument, "a lone '}' at 0", [&] { infers("}", {token_type()}); });
  expect_error(Code::kInvalidArgument, "input 0 is f32[2], expected a token, u8[0]", [&] {
    infers("{}", {f32({2}), f32({2})});
  });
}

}  // namespace
}  // namespace ballast::graph
