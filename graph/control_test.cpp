#include "graph/control.h"

#include "graph/sink.h"
#include "graph/test_support.h"
#include "graph/text.h"

#include <chrono>
#include <thread>

namespace ballast::graph {
namespace {

using namespace testing;
using device::BufferPtr;
using device::Code;
using device::Replay;

// carry' = tanh(carry w + x), y = carry' x, over `rows` rows of `n` elements.
std::string scan_text(int64_t rows, int64_t n, bool reverse) {
  const std::string row = fmt::format("f32[{}]", n), all = fmt::format("f32[{}, {}]", rows, n);
  return fmt::format(
      "ballast.graph 1\ninput %0 \"h\": {0}\ninput %1 \"xs\": {1}\ninput %2 \"w\": {0}\n"
      "%3, %4 = scan(%2, %0, %1) {{consts = 1, carried = 1, length = {2}{3}}} : {0}, {1} @ "
      "\"rnn.cpp:3\" {{\n"
      "  input %0 \"w\": {0}\n  input %1 \"h\": {0}\n  input %2 \"x\": {0}\n"
      "  %3 = mul(%1, %0) : {0}\n  %4 = add(%3, %2) : {0}\n  %5 = tanh(%4) : {0}\n"
      "  %6 = mul(%5, %2) : {0} @ \"rnn.cpp:4\"\n  output %5, %6\n}}\n"
      "output %3, %4\n",
      row, all, rows, reverse ? ", reverse = 1" : "");
}

std::vector<float> wave(uint64_t n) {
  std::vector<float> values;
  for (uint64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(i * 31 % 17) / 17.0f - 0.4f);
  return values;
}

// The outputs of one run after another.
std::vector<std::vector<float>> run(Executable& exe, const std::vector<BufferPtr>& inputs) {
  std::vector<InputBinding> from;
  std::vector<BufferPtr> to;
  for (const BufferPtr& input : inputs) from.push_back({input, nullptr});
  for (size_t i = 0; i < exe.graph().outputs().size(); ++i) {
    to.push_back(upload(std::vector<float>(exe.output_type(i).bytes() / sizeof(float))));
  }
  exe.run(test_device()->default_stream(), from, to);
  std::vector<std::vector<float>> results;
  for (const BufferPtr& buffer : to) results.push_back(download(buffer));
  return results;
}

TEST(Control, RoundTripOfNestedRegions) {
  const std::string body =
      "ballast.graph 1\ninput %0 \"n\": f32[]\nconst %1: f32[] = 00002041\n"
      "%2 = while(%0) {consts = 0} : f32[] {\n"
      "  input %0 \"n\": f32[]\n  const %1: f32[] = 00002041\n"
      "  %2 = less(%0, %1) : bool[] @ \"a.cpp:1\"\n  output %2\n} {\n"
      "  input %0 \"n\": f32[]\n  const %1: bool[] = 01\n"
      "  %2 = cond(%1, %0) : f32[] @ \"a.cpp:2\" {\n"
      "    input %0 \"n\": f32[]\n    %1 = exp(%0) : f32[]\n    output %1\n  } {\n"
      "    input %0 \"n\": f32[]\n    output %0\n  }\n"
      "  output %2\n}\noutput %2\n";
  const Graph graph = parse(body);
  verify(graph);
  EXPECT_EQ(print(graph), body);
  EXPECT_EQ(print(parse(scan_text(3, 4, true))), scan_text(3, 4, true));
  expect_error(Code::kInvalidArgument, "expected '}'",
               [&] { parse(body.substr(0, body.rfind('}'))); });
}

TEST(Control, ScanInEveryReplayGivesTheBitsOfItsSteps) {
  for (const int64_t n : {3, 32, 40000}) {  // slots that are copied, that are views, that are long
    const int64_t rows = 5;
    const BufferPtr h = upload(wave(n)), xs = upload(wave(rows * n)), w = upload(wave(n));
    for (const bool reverse : {false, true}) {
      // Step by step, as a graph of one step.
      Executable step(test_device(),
                      parse(fmt::format("ballast.graph 1\ninput %0 \"w\": f32[{0}]\n"
                                        "input %1 \"h\": f32[{0}]\ninput %2 \"x\": f32[{0}]\n"
                                        "%3 = mul(%1, %0) : f32[{0}]\n%4 = add(%3, %2) : f32[{0}]\n"
                                        "%5 = tanh(%4) : f32[{0}]\n%6 = mul(%5, %2) : f32[{0}]\n"
                                        "output %5, %6\n",
                                        n)),
                      {Level::kO0, Replay::kList});
      std::vector<float> carry = wave(n), ys(rows * n);
      const std::vector<float> all = wave(rows * n);
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t at = (reverse ? rows - 1 - i : i) * n;
        const auto results =
            run(step, {w, upload(carry), upload({all.begin() + at, all.begin() + at + n})});
        carry = results[0];
        std::copy(results[1].begin(), results[1].end(), ys.begin() + at);
      }
      for (const Level level : {Level::kO0, Level::kO1}) {
        for (const Replay replay : {Replay::kAuto, Replay::kList, Replay::kNative}) {
          if (replay == Replay::kNative && !test_device()->info().has_command_buffer) continue;
          Executable exe(test_device(), parse(scan_text(rows, n, reverse)), {level, replay});
          for (int again = 0; again < 2; ++again) {
            const auto results = run(exe, {h, xs, w});
            EXPECT_EQ(results[0], carry) << n << " " << int(level) << " " << int(replay);
            EXPECT_EQ(results[1], ys) << n << " " << int(level) << " " << int(replay);
          }
        }
      }
    }
  }
}

TEST(Control, ASmallScanIsOneSubmission) {
  Executable exe(test_device(), parse(scan_text(100, 4, false)), {});
  if (exe.submit_count() > 1) GTEST_SKIP() << "this device does not stitch";
  EXPECT_GE(exe.launch_count(), 200u);
  const BufferPtr h = upload(wave(4)), xs = upload(wave(400)), w = upload(wave(4));
  run(exe, {h, xs, w});
  const uint64_t before = test_device()->counters().kernel_launches;
  run(exe, {h, xs, w});
  EXPECT_EQ(test_device()->counters().kernel_launches - before, 1u);
}

TEST(Control, NothingIsAllocatedAfterTheFirstRun) {
  for (const int64_t n : {3, 40000}) {
    Executable exe(test_device(), parse(scan_text(5, n, false)), {});
    const std::vector<InputBinding> inputs{
        {upload(wave(n)), nullptr}, {upload(wave(5 * n)), nullptr}, {upload(wave(n)), nullptr}};
    const std::vector<BufferPtr> outputs{upload(wave(n)), upload(wave(5 * n))};
    exe.run(test_device()->default_stream(), inputs, outputs);
    const auto before = test_device()->pool().stats();
    for (int i = 0; i < 3; ++i) exe.run(test_device()->default_stream(), inputs, outputs);
    const auto after = test_device()->pool().stats();
    EXPECT_EQ(after.driver_allocations, before.driver_allocations);
    EXPECT_EQ(after.pool_allocations, before.pool_allocations);
    EXPECT_GE(exe.memory().arena_bytes, n * sizeof(float));
  }
}

TEST(Control, CarriesMayChangePlacesAndStayUnchanged) {
  const Graph graph = parse(
      "ballast.graph 1\ninput %0 \"a\": f32[2]\ninput %1 \"b\": f32[2]\ninput %2 \"c\": f32[2]\n"
      "%3, %4, %5, %6 = scan(%0, %1, %2) {consts = 0, carried = 3, length = 3} : f32[2], f32[2], "
      "f32[2], f32[3, 2] {\n"
      "  input %0 \"a\": f32[2]\n  input %1 \"b\": f32[2]\n  input %2 \"c\": f32[2]\n"
      "  output %1, %0, %2, %0\n}\noutput %3, %4, %5, %6\n");
  for (const Level level : {Level::kO0, Level::kO1}) {
    Executable exe(test_device(), graph, {level, Replay::kAuto});
    const auto results = run(exe, {upload({1, 2}), upload({3, 4}), upload({5, 6})});
    EXPECT_EQ(results[0], (std::vector<float>{3, 4}));
    EXPECT_EQ(results[1], (std::vector<float>{1, 2}));
    EXPECT_EQ(results[2], (std::vector<float>{5, 6}));
    EXPECT_EQ(results[3], (std::vector<float>{1, 2, 3, 4, 1, 2}));
  }
}

// count' = count + 1 until it reaches the limit, by a while; then the state is doubled if that is
// below 20, else left, by a cond. The state is updated.
const char* const kCounting =
    "ballast.graph 1\ninput %0 \"limit\": f32[]\nstate %1 \"s\": f32[]\nconst %2: f32[] = "
    "0000a041\n"
    "%3 = while(%0, %1) {consts = 1} : f32[] {\n"
    "  input %0 \"limit\": f32[]\n  input %1 \"s\": f32[]\n"
    "  %2 = less(%1, %0) : bool[]\n  output %2\n} {\n"
    "  input %0 \"limit\": f32[]\n  input %1 \"s\": f32[]\n  const %2: f32[] = 0000803f\n"
    "  %3 = add(%1, %2) : f32[]\n  output %3\n}\n"
    "%4 = less(%3, %2) : bool[]\n"
    "%5 = cond(%4, %3) : f32[] {\n"
    "  input %0 \"s\": f32[]\n  %1 = add(%0, %0) : f32[]\n  output %1\n} {\n"
    "  input %0 \"s\": f32[]\n  output %0\n}\n"
    "update %1 = %5\noutput %3\n";

TEST(Control, WhileAndCondUpdateAState) {
  for (const Level level : {Level::kO0, Level::kO1}) {
    Executable exe(test_device(), parse(kCounting), {level, Replay::kAuto});
    const BufferPtr state = upload({0});
    exe.bind_state(0, state);
    EXPECT_EQ(run(exe, {upload({5})})[0][0], 5);
    EXPECT_EQ(download(state)[0], 10);
    EXPECT_EQ(run(exe, {upload({5})})[0][0], 10);  // the loop runs no step
    EXPECT_EQ(download(state)[0], 20);
    EXPECT_EQ(run(exe, {upload({21})})[0][0], 21);
    EXPECT_EQ(download(state)[0], 21);
    const BufferPtr other = upload({1});
    exe.bind_state(0, other);
    EXPECT_EQ(run(exe, {upload({3})})[0][0], 3);
    EXPECT_EQ(download(other)[0], 6);
    EXPECT_EQ(download(state)[0], 21);
  }
}

TEST(Control, ASinkStepsOverControlFlow) {
  auto exe = std::make_shared<Executable>(test_device(), parse(kCounting), CompileOptions{});
  const BufferPtr state = upload({0}), limits = upload({5, 4, 21}), counts = upload({0, 0, 0});
  exe->bind_state(0, state);
  Sink sink(exe, 0);
  sink.run(test_device()->default_stream(), 3, {{limits, nullptr, 3}}, {{counts, nullptr, 3}});
  EXPECT_EQ(download(counts), (std::vector<float>{5, 10, 21}));
  EXPECT_EQ(download(state)[0], 21);
  EXPECT_EQ(sink.info().replay_allocations, 0u);
}

TEST(Control, PassesKeepRegions) {
  // Two conds with equal operands and constants only: neither merged nor folded.
  const std::string branches =
      " {\n  input %0 \"x\": f32[]\n  %1 = neg(%0) : f32[]\n  output %1\n} {\n"
      "  input %0 \"x\": f32[]\n  output %0\n}\n";
  const Graph graph = parse(
      "ballast.graph 1\nconst %0: bool[] = 01\nconst %1: f32[] = 0000803f\n"
      "%2 = cond(%0, %1) : f32[]" +
      branches + "%3 = cond(%0, %1) : f32[]" + branches + "%4 = add(%2, %3) : f32[]\noutput %4\n");
  Executable exe(test_device(), graph, {});
  EXPECT_EQ(exe.graph().nodes().size(), 3u);
  EXPECT_EQ(run(exe, {})[0][0], -2);
}

TEST(Control, StitchingAGraphWithRegionsIsRefused) {
  expect_error(Code::kUnimplemented, "control flow (scan)", [] {
    Executable(test_device(), parse(scan_text(5, 4, false)), {Level::kO1, Replay::kStitch});
  });
}

TEST(Control, WrongSignatures) {
  auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  const std::string scan = scan_text(3, 4, false);
  auto fails = [](const std::string& part, const std::string& text) {
    expect_error(Code::kInvalidArgument, part, [&] { parse(text); });
  };
  fails("length = -1", replaced(scan, "length = 3", "length = -1"));
  fails("expected 4 steps along its first axis; inputs are",
        replaced(scan, "length = 3", "length = 4"));
  fails("carried = 9 with 3 inputs", replaced(scan, "carried = 1", "carried = 9"));
  fails("region 0 takes (f32[4], f32[4], f32[4]), its operands are (f32[4], f32[4], f32[3, 4])",
        replaced(scan, "carried = 1", "carried = 2"));
  fails("the carry is (f32[4]) before the body and (f32[]) after it",
        replaced(scan, "%5 = tanh(%4) : f32[4]", "%5 = reduce_sum(%4) : f32[]"));
  fails("attribute length (int) is missing", replaced(scan, ", length = 3", ""));
  const std::string loop = kCounting;
  fails("the condition is f32[], expected bool[]",
        replaced(loop, "%2 = less(%1, %0) : bool[]", "%2 = sub(%1, %0) : f32[]"));
  fails("the predicate is f32[], expected bool[]", replaced(loop, "cond(%4", "cond(%3"));
  fails("the regions give (f32[]) and ()", replaced(loop, "output %0\n}\nupdate", "}\nupdate"));
  fails("region 0 has a state, \"s\"",
        replaced(loop, "  input %0 \"s\": f32[]\n  %1", "  state %0 \"s\": f32[]\n  %1"));
}

// early' = early + 1; late' = late + 1 until it reaches a limit, by a while; or `length` times, by
// a scan.
std::string counting_text(const std::string& loop) {
  return "ballast.graph 1\ninput %0 \"limit\": f32[]\nstate %1 \"early\": f32[]\n"
         "state %2 \"late\": f32[]\nconst %3: f32[] = 0000803f\n%4 = add(%1, %3) : f32[]\n" +
         loop +
         "  input %0 \"limit\": f32[]\n  input %1 \"count\": f32[]\n  const %2: f32[] = 0000803f\n"
         "  %3 = add(%1, %2) : f32[]\n  output %3\n}\nupdate %1 = %4\nupdate %2 = %5\noutput %5\n";
}

const char kUntilTheLimit[] =
    "%5 = while(%0, %2) {consts = 1} : f32[] {\n"
    "  input %0 \"limit\": f32[]\n  input %1 \"count\": f32[]\n  %2 = less(%1, %0) : bool[]\n"
    "  output %2\n} {\n";
const char kManyTimes[] =  // far more than a test could wait for
    "%5 = scan(%0, %2) {consts = 1, carried = 1, length = 50000000} : f32[] {\n";

TEST(Control, CancelStopsWithinALoopAndTakesTheStepBack) {
  for (const char* loop : {kUntilTheLimit, kManyTimes}) {
    for (const Level level : {Level::kO0, Level::kO1}) {
      const bool is_scan = loop == kManyTimes;
      auto exe = std::make_shared<Executable>(test_device(), parse(counting_text(loop)),
                                              CompileOptions{level, Replay::kList});
      EXPECT_EQ(exe->early_states().front(), 0u);
      const BufferPtr early = upload({0}), late = upload({0}), ends = upload({0, 0, 0});
      exe->bind_state(0, early);
      exe->bind_state(1, late);
      Sink sink(exe, 0);
      const BufferPtr limits = upload({3, 5, 1e30f});
      const uint64_t whole = is_scan ? 0 : 2;
      std::thread canceller([&] {
        while (sink.progress() < whole) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        sink.cancel();
      });
      const std::string message =
          fmt::format("[sink_run] cancelled after {} steps, in a loop of the next", whole);
      expect_error(Code::kCancelled, message, [&] {
        sink.run(test_device()->default_stream(), 3, {{limits, nullptr, 3}}, {{ends, nullptr, 3}});
      });
      canceller.join();
      EXPECT_EQ(sink.progress(), whole);
      EXPECT_EQ(download(early)[0], whole);
      EXPECT_EQ(download(late)[0], is_scan ? 0 : 5);
      if (is_scan) continue;
      sink.run(test_device()->default_stream(), 1, {{upload({7}), nullptr, 1}}, {{}});
      EXPECT_EQ(download(early)[0], 3);
      EXPECT_EQ(download(late)[0], 7);
    }
  }
}

}  // namespace
}  // namespace ballast::graph
