// Each mistake gives one clear error that names what and where.
#include "frontend/ballast_frontend.h"
#include "frontend/plugin.h"
#include "frontend/test_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace ballast::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string here(int line) { return "errors_test.cpp:" + std::to_string(line); }

TEST(PluginErrors, MissingFile) {
  std::string message =
      message_of(BALLAST_NOT_FOUND, [] { open_plugin("/nowhere/libballast.so"); });
  EXPECT_THAT(message, AllOf(HasSubstr("[plugin]"), HasSubstr("/nowhere/libballast.so"),
                             HasSubstr("No such file")));
}

TEST(PluginErrors, NotAPlugin) {
  std::string message = message_of(BALLAST_NOT_FOUND, [] { open_plugin("libm.so.6"); });
  EXPECT_THAT(message, AllOf(HasSubstr("libm.so.6"), HasSubstr("ballast_get_api")));
}

TEST(PluginErrors, WrongAbiVersion) {
  std::string message = message_of(BALLAST_ABI_MISMATCH, [] {
    open_plugin(find_plugin(), BALLAST_ABI_VERSION(9, 0), BALLAST_ABI_VERSION(9, 5));
  });
  EXPECT_THAT(message, AllOf(HasSubstr(find_plugin()), HasSubstr("9.0"), HasSubstr("9.5")));
}

TEST(PluginErrors, PathAfterLoading) {
  plugin();
  message_of(BALLAST_FAILED_PRECONDITION, [] { set_plugin_path("other.so"); });
}

TEST(DeviceErrors, UnknownDeviceListsWhatThereIs) {
  std::string message = message_of(BALLAST_NOT_FOUND, [] { set_device("no such device"); });
  EXPECT_THAT(message, AllOf(HasSubstr("no such device"), HasSubstr(device_info().name)));
}

TEST(DeviceErrors, OutOfMemory) {
  DeviceOptions options;
  options.memory_limit = 1 << 20;
  set_device("", options);
  std::string message = message_of(BALLAST_OUT_OF_DEVICE_MEMORY, [] { Tensor::zeros({1 << 20}); });
  EXPECT_THAT(message, HasSubstr("4194304"));
  EXPECT_EQ(Tensor::ones({16}).to_host<float>()[15], 1);  // the device still works
  set_device("");
}

TEST(OpErrors, ShapeMismatchNamesOpShapesAndLine) {
  Tensor a = Tensor::zeros({3, 4}), b = Tensor::zeros({5, 4});
  int line = __LINE__ + 1;
  std::string eager = message_of(BALLAST_INVALID_ARGUMENT, [&] { a + b; });
  EXPECT_THAT(eager, AllOf(HasSubstr("[add]"), HasSubstr("[3, 4]"), HasSubstr("[5, 4]"),
                           HasSubstr(here(line))));
  line = __LINE__ + 1;
  auto f = jit([&](Tensor x) { return ops::matmul(x, b); });
  std::string traced = message_of(BALLAST_INVALID_ARGUMENT, [&] { f(a); });
  EXPECT_THAT(traced, AllOf(HasSubstr("[matmul]"), HasSubstr("[3, 4]"), HasSubstr("[5, 4]"),
                            HasSubstr(here(line))));
}

TEST(OpErrors, LayersReportTheCallersLine) {
  nn::Dense net(7, 2);
  int line = __LINE__ + 1;
  std::string message = message_of(BALLAST_INVALID_ARGUMENT, [&] { net(Tensor::zeros({3, 4})); });
  EXPECT_THAT(message, AllOf(HasSubstr("[matmul]"), HasSubstr(here(line))));
}

TEST(OpErrors, DtypeMismatch) {
  Tensor a = Tensor::zeros({2}), b = Tensor::zeros({2}, DType::kI32);
  std::string message = message_of(BALLAST_INVALID_ARGUMENT, [&] { a* b; });
  EXPECT_THAT(message, AllOf(HasSubstr("[mul]"), HasSubstr("f32[2]"), HasSubstr("i32[2]")));
  EXPECT_THAT(message_of(BALLAST_INVALID_ARGUMENT, [&] { b * 0.5f; }), HasSubstr("i32"));
  EXPECT_THAT(message_of(BALLAST_INVALID_ARGUMENT, [&] { a.to_host<int32_t>(); }),
              AllOf(HasSubstr("f32[2]"), HasSubstr("i32")));
}

TEST(OpErrors, UnknownOp) {
  std::string message =
      message_of(BALLAST_NOT_FOUND, [] { ops::call("frobnicate", {Tensor::zeros({2})}); });
  EXPECT_THAT(message, AllOf(HasSubstr("frobnicate"), HasSubstr("errors_test.cpp")));
}

TEST(OpErrors, UndefinedTensor) {
  message_of(BALLAST_INVALID_ARGUMENT, [] { ops::exp(Tensor()); });
}

TEST(TraceErrors, LeakedTracer) {
  Tensor leaked;
  jit([&](Tensor x) { return leaked = ops::exp(x); })(Tensor::zeros({2}));
  int line = __LINE__ + 1;
  std::string eager = message_of(BALLAST_FAILED_PRECONDITION, [&] { ops::neg(leaked); });
  EXPECT_THAT(eager, AllOf(HasSubstr("[neg]"), HasSubstr("leaked"), HasSubstr(here(line))));
  auto other = jit([&](Tensor x) { return x + leaked; });
  EXPECT_THAT(message_of(BALLAST_FAILED_PRECONDITION, [&] { other(Tensor::zeros({2})); }),
              HasSubstr("leaked"));
  message_of(BALLAST_FAILED_PRECONDITION, [&] { leaked.to_host<float>(); });
}

TEST(TraceErrors, ReadingATracedValue) {
  auto f = jit([](Tensor x) { return x.item<float>() > 0 ? x : -x; });
  std::string message = message_of(BALLAST_FAILED_PRECONDITION, [&] { f(Tensor::scalar(1)); });
  EXPECT_THAT(message, HasSubstr("traced"));
}

TEST(GradErrors, LossMustBeAScalar) {
  int line = __LINE__ + 1;
  auto f = [](Tensor x) { return ops::exp(x); };
  std::string message = message_of(BALLAST_INVALID_ARGUMENT, [&] {
    grad(f)(Tensor::zeros({2, 3}));
  });
  EXPECT_THAT(message, AllOf(HasSubstr("[grad]"), HasSubstr("f32[2, 3]"), HasSubstr(here(line))));
}

TEST(GradErrors, ArgumentsAndAux) {
  auto f = [](Tensor x) { return ops::sum(x); };
  auto two = [](Tensor x) { return std::pair(ops::sum(x), x); };
  Tensor x = Tensor::zeros({2});
  EXPECT_THAT(message_of(BALLAST_INVALID_ARGUMENT, [&] { grad(f, 3)(x); }),
              HasSubstr("argument 3"));
  EXPECT_THAT(message_of(BALLAST_INVALID_ARGUMENT, [&] { value_and_grad(two)(x); }),
              HasSubstr("has_aux"));
  Tensor whole = Tensor::zeros({2}, DType::kI32);
  EXPECT_THAT(message_of(BALLAST_INVALID_ARGUMENT, [&] { grad(f)(whole); }), HasSubstr("i32[2]"));
}

TEST(ParameterErrors, AssigningAnotherType) {
  Parameter w(Tensor::zeros({2, 3}), "fc.weight");
  std::string message = message_of(BALLAST_INVALID_ARGUMENT, [&] { w.assign(Tensor::zeros({3})); });
  EXPECT_THAT(message, AllOf(HasSubstr("fc.weight"), HasSubstr("[2, 3]"), HasSubstr("[3]")));
}

TEST(SinkErrors, QueueTooShort) {
  auto loop = sink(jit([](Tensor x) { return ops::sum(x); }));
  std::string message = message_of(BALLAST_INVALID_ARGUMENT, [&] {
    loop(5, each(Tensor::zeros({4, 2})));
  });
  EXPECT_THAT(message, AllOf(HasSubstr("f32[4, 2]"), HasSubstr("5 steps")));
}

}  // namespace
}  // namespace ballast::tests
