// A sunk run that is stopped leaves the state of its last whole step.
#include "frontend/ballast_frontend.h"
#include "frontend/test_support.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>

namespace ballast::tests {
namespace {

// Runs `call` while another thread cancels it again and again; gives the error's message.
template <class Loop, class Call>
std::string cancelled(Loop& loop, const Call& call) {
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!is_over) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      loop.cancel();
    }
  });
  std::string message = "no error";
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), BALLAST_CANCELLED);
    message = error.what();
  }
  is_over = true;
  other.join();
  return message;
}

TEST(CancelTest, StopsWithinAWhileLoop) {
  Parameter steps(Tensor::scalar(0), "steps"), sum(Tensor::scalar(0), "sum");
  auto loop = sink(jit([&](Tensor limit) {
    steps.assign(steps + 1);
    const Tensor count = while_loop([&](Tensor c) { return ops::less(c, limit); },
                                    [](Tensor c) { return c + 1; }, Tensor::scalar(0));
    sum.assign(sum + count);
    return count;
  }));
  loop(2, each(Tensor::on_host<float>({3, 5}, {2})));
  EXPECT_EQ(sum.value().item<float>(), 8);
  // 1e30 is never reached: c + 1 is c from 2^24 on.
  const Tensor limits = Tensor::on_host<float>({7, 9, 1e30f}, {3});
  const std::string message = cancelled(loop, [&] { loop(3, each(limits)); });
  // However long the first steps took, what is said was done is done.
  ASSERT_EQ(message.rfind("[sink_run] cancelled after ", 0), 0u) << message;
  const int done = std::stoi(message.substr(27));
  EXPECT_EQ(steps.value().item<float>(), 2 + done);
  EXPECT_EQ(sum.value().item<float>(), 8 + (done > 0 ? 7 : 0) + (done > 1 ? 9 : 0));
  EXPECT_NE(message.find("(at cancel_test.cpp:"), std::string::npos) << message;
  loop(1, each(Tensor::on_host<float>({2}, {1})));
  EXPECT_EQ(steps.value().item<float>(), 3 + done);
}

// One request, while the step is being traced for the first time; it does not wait for that.
TEST(CancelTest, StopsACallThatIsStillCompiling) {
  std::promise<void> is_tracing, is_cancelled;
  bool is_first = true;
  auto loop = sink(jit([&](Tensor x) {
    if (is_first) {
      is_tracing.set_value();
      EXPECT_EQ(is_cancelled.get_future().wait_for(std::chrono::seconds(10)),
                std::future_status::ready);
    }
    is_first = false;
    return x + 1;
  }));
  loop.cancel();  // without a call it does nothing
  std::thread other([&] {
    is_tracing.get_future().wait();
    loop.cancel();
    is_cancelled.set_value();
  });
  EXPECT_EQ(message_of(BALLAST_CANCELLED, [&] { loop(3, repeat(Tensor::scalar(1))); })
                .rfind("[sink_run] cancelled after 0 steps", 0),
            0u);
  other.join();
  EXPECT_EQ(loop(3, repeat(Tensor::scalar(1))).to_host<float>(), std::vector<float>(3, 2));
}

TEST(CancelTest, StopsBetweenSteps) {
  constexpr uint64_t kMany = 1'000'000'000;  // far more than a test could wait for
  for (Replay replay : {Replay::kList, Replay::kAuto}) {
    Parameter w(Tensor::zeros({8}), "w"), seen(Tensor::zeros({8}), "seen");
    JitOptions options;
    options.replay = replay;
    auto loop = sink(jit(
        [&](Tensor x) {
          seen.assign(ops::exp(w.value()));
          w.assign(w + x);
          return std::vector<Tensor>();
        },
        options));
    const std::string message = cancelled(loop, [&] { loop(kMany, repeat(Tensor::ones({8}))); });
    ASSERT_EQ(message.rfind("[sink_run] cancelled after ", 0), 0u) << message;
    const float done = std::stof(message.substr(27));
    EXPECT_EQ(w.value().to_host<float>(), std::vector<float>(8, std::min(done, 16777216.0f)));
  }
}

}  // namespace
}  // namespace ballast::tests
