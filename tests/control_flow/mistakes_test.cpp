// Each mistake gives one clear error that names what and where.
#include "tests/control_flow/support.h"

namespace ballast::tests {
namespace {

std::string here(int line) { return "mistakes_test.cpp:" + std::to_string(line); }

template <class F>
std::string traced_message(F fn, std::vector<TensorType> types) {
  return message_of(BALLAST_INVALID_ARGUMENT, [&] { trace(fn, types); });
}

const TensorType kVector{DType::kF32, {3}};

TEST(ControlFlowErrors, Predicate) {
  int line = __LINE__ + 2;
  auto fn = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{cond(
        ops::less(in[0], 0), [&] { return in[0]; }, [&] { return in[0]; })};
  };
  EXPECT_THAT(traced_message(fn, {kVector}),
              AllOf(HasSubstr("[cond] the predicate is bool[3], expected a bool scalar"),
                    HasSubstr(here(line))));
}

TEST(ControlFlowErrors, Branches) {
  auto fn = [](const std::vector<Tensor>& in) {
    Tensor p = ops::less(ops::sum(in[0]), 0);
    return std::vector<Tensor>{cond(
        p, [&] { return in[0]; }, [&] { return ops::sum(in[0]); })};
  };
  EXPECT_THAT(traced_message(fn, {kVector}),
              HasSubstr("leaf 0 of the result is f32[3] where the predicate is true, else f32[]"));
  auto count = [](const std::vector<Tensor>& in) {
    using List = std::vector<Tensor>;
    return cond(
        ops::less(ops::sum(in[0]), 0), [&] { return List{in[0]}; }, [] { return List{}; });
  };
  EXPECT_THAT(traced_message(count, {kVector}),
              HasSubstr("one branch returns 1 tensors, the other 0"));
}

TEST(ControlFlowErrors, Carry) {
  int line = 0;
  auto fn = [&](const std::vector<Tensor>& in) {
    auto below = [](std::pair<Tensor, Tensor> c) { return ops::less(ops::sum(c.first), 0); };
    auto step = [](std::pair<Tensor, Tensor> c) { return std::pair(c.first, ops::sum(c.second)); };
    line = __LINE__ + 1;
    return leaves_of(while_loop(below, step, std::pair(in[0], in[0])));
  };
  std::string message = traced_message(fn, {kVector});
  EXPECT_THAT(
      message,
      HasSubstr("[while_loop] leaf 1 of the carry is f32[3] before the body and f32[] after "
                "it (at " +
                here(line) + ")"));
  EXPECT_THAT(message_of(BALLAST_INVALID_ARGUMENT,
                         [&] {
                           fn({vector_of({1, 2, 3})});
                         }),
              HasSubstr("leaf 1 of the carry"));
  auto scanned = [](const std::vector<Tensor>& in) {
    auto step = [](Tensor c, Tensor x) { return std::pair(ops::cast(c, DType::kI32), x); };
    return leaves_of(scan(step, in[0], in[0]));
  };
  EXPECT_THAT(
      traced_message(scanned, {kVector}),
      HasSubstr("[scan] leaf 0 of the carry is f32[3] before the body and i32[3] after it"));
}

TEST(ControlFlowErrors, ScannedTensors) {
  auto step = [](Tensor c, std::pair<Tensor, Tensor> x) { return std::pair(c, x.first); };
  auto fn = [&](const std::vector<Tensor>& in) {
    return leaves_of(scan(step, in[0], std::pair(in[0], in[1])));
  };
  EXPECT_THAT(traced_message(fn, {kVector, {DType::kF32, {4}}}),
              HasSubstr("[scan] leaf 1 of xs is f32[4], expected 3 steps"));
  EXPECT_THAT(traced_message(fn, {kVector, {DType::kF32, {}}}),
              HasSubstr("leaf 1 of xs is f32[]: there is no axis to step along"));
  auto endless = [](const std::vector<Tensor>& in) {
    auto same = [](Tensor c, std::tuple<>) { return std::pair(c, c); };
    return leaves_of(scan(same, in[0], std::tuple<>()));
  };
  EXPECT_THAT(traced_message(endless, {kVector}), HasSubstr("without xs a length is needed"));
}

TEST(ControlFlowErrors, Conditions) {
  Parameter w(Tensor::scalar(0), "w");
  auto assigns = [&](const std::vector<Tensor>& in) {
    auto below = [&](Tensor c) {
      w.assign(w + 1.0f);
      return ops::less(ops::sum(c), 0);
    };
    return leaves_of(while_loop(
        below, [](Tensor c) { return c; }, in[0]));
  };
  EXPECT_THAT(traced_message(assigns, {kVector}), HasSubstr("the condition assigns parameter w"));
  auto number = [](const std::vector<Tensor>& in) {
    return leaves_of(while_loop([](Tensor c) { return c; }, [](Tensor c) { return c; }, in[0]));
  };
  EXPECT_THAT(traced_message(number, {kVector}),
              HasSubstr("the condition is f32[3], expected a bool scalar"));
  auto bound = [](const std::vector<Tensor>& in) {
    return leaves_of(fori_loop(
        0, in[0], [](Tensor, Tensor c) { return c; }, in[0]));
  };
  EXPECT_THAT(traced_message(bound, {kVector}),
              HasSubstr("[fori_loop] a bound is f32[3], expected an i32 scalar"));
}

TEST(ControlFlowErrors, InsideABodyNameTheLineInTheBody) {
  int line = 0;
  auto fn = [&](const std::vector<Tensor>& in) {
    auto step = [&](Tensor c, Tensor) {
      line = __LINE__ + 1;
      return std::pair(c + Tensor::zeros({7}), c);
    };
    return leaves_of(scan(step, in[0], in[0]));
  };
  std::string message = traced_message(fn, {kVector});
  EXPECT_THAT(message, AllOf(HasSubstr("[add]"), HasSubstr(here(line))));
}

TEST(ControlFlowErrors, ABoolReadOfATracedTensorPointsToCond) {
  auto fn = [](const std::vector<Tensor>& in) {
    if (ops::less(ops::sum(in[0]), 0).item<bool>()) return in;
    return in;
  };
  EXPECT_THAT(message_of(BALLAST_FAILED_PRECONDITION, [&] { trace(fn, {kVector}); }),
              AllOf(HasSubstr("has no value"), HasSubstr("use cond")));
}

}  // namespace
}  // namespace ballast::tests
