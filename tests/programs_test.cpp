// Random programs with branches, loops, scans and closures: their values, gradients, tangents,
// batches, and compositions of these are what JAX makes of the same text
// (tests/fixtures/make_programs.py says how it is read).
#include "frontend/ballast_frontend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

namespace ballast {
namespace {

using Json = nlohmann::json;
using Tensors = std::vector<Tensor>;

constexpr double kTolerance = 1e-4;  // of the largest element

Tensor apply_op(const std::string& op, const Tensors& v) {
  const Tensor& a = v[0];
  static const std::map<std::string, std::function<Tensor(const Tensor&)>> unary{
      {"sin", [](const Tensor& x) { return ops::sin(x); }},
      {"tanh", [](const Tensor& x) { return ops::tanh(x); }},
      {"exp", [](const Tensor& x) { return ops::exp(ops::tanh(x)); }},
      {"log", [](const Tensor& x) { return ops::log(x * x + 1); }},
      {"sqrt", [](const Tensor& x) { return ops::sqrt(x * x + 1); }},
      {"sigmoid", [](const Tensor& x) { return ops::sigmoid(x); }},
      {"softmax", [](const Tensor& x) { return ops::softmax(x); }},
      {"neg", [](const Tensor& x) { return -x; }},
      {"transpose",
       [](const Tensor& x) {
         return ops::transpose(x, {1, 0});
       }},
      {"sum", [](const Tensor& x) { return ops::sum(x); }},
      {"mean_last", [](const Tensor& x) { return ops::mean(x, {-1}); }},
      {"row", [](const Tensor& x) { return ops::gather(x, Tensor::scalar(0, DType::kI32)); }},
      {"stop", [](const Tensor& x) { return stop_gradient(x); }}};
  auto found = unary.find(op);
  if (found != unary.end()) return found->second(a);
  const Tensor& b = v.at(1);
  if (op == "add") return a + b;
  if (op == "sub") return a - b;
  if (op == "mul") return a * b;
  if (op == "div") return a / (b * b + 1);
  if (op == "matmul") return ops::matmul(a, b);
  throw std::invalid_argument("no op " + op);
}

Tensors run(const Json& f, Tensors env, const Tensors& arguments);

Tensors picked(const Tensors& env, const Json& numbers) {
  Tensors values;
  for (const Json& number : numbers) values.push_back(env.at(number.get<size_t>()));
  return values;
}

// An instruction's results. `at(i)` is its i-th part after the name.
Tensors execute(const Json& instruction, const Tensors& env) {
  const auto op = instruction[0].get<std::string>();
  auto at = [&](size_t i) -> const Json& { return instruction.at(i + 1); };
  auto function = [&](size_t i) {
    return [&env, &f = at(i)](const Tensors& given) { return run(f, env, given); };
  };
  if (op == "const") return {Tensor::scalar(at(0).get<double>())};
  if (op == "call") return function(0)(picked(env, at(1)));
  if (op == "cond") {
    Tensor is_above = ops::greater(ops::sum(env.at(at(0))), at(1).get<double>());
    return cond(is_above, function(3), function(4), picked(env, at(2)));
  }
  if (op == "while") {
    const double limit = at(0), most = at(1);
    auto goes_on = [&](const std::pair<Tensor, Tensors>& state) {
      return ops::logical_and(ops::less(state.first, most),
                              ops::less(ops::sum(state.second[0]), limit));
    };
    auto step = [&, body = function(3)](const std::pair<Tensor, Tensors>& state) {
      return std::pair(state.first + 1, body(state.second));
    };
    return while_loop(goes_on, step, std::pair(Tensor::scalar(0), picked(env, at(2)))).second;
  }
  if (op == "fori") {
    auto step = [body = function(2)](const Tensor& i, Tensors state) {
      state.insert(state.begin(), ops::cast(i, DType::kF32));
      return body(state);
    };
    return fori_loop(0, at(0).get<int>(), step, picked(env, at(1)));
  }
  if (op == "scan") {
    const auto count = at(0).get<std::ptrdiff_t>();
    auto step = [&, body = function(3)](Tensors carry, const Tensors& xs) {
      carry.insert(carry.end(), xs.begin(), xs.end());
      Tensors results = body(carry);
      return std::pair(Tensors(results.begin(), results.begin() + count),
                       Tensors(results.begin() + count, results.end()));
    };
    auto [carry, ys] = scan(step, picked(env, at(1)), picked(env, at(2)), {}, at(4).get<bool>());
    carry.insert(carry.end(), ys.begin(), ys.end());
    return carry;
  }
  return {apply_op(op, picked(env, Json(instruction.begin() + 1, instruction.end())))};
}

Tensors run(const Json& f, Tensors env, const Tensors& arguments) {
  env.insert(env.end(), arguments.begin(), arguments.end());
  for (const Json& instruction : f.at("body")) {
    for (Tensor& result : execute(instruction, env)) env.push_back(std::move(result));
  }
  return picked(env, f.at("result"));
}

Tensor input(const Json& program, const char* name) {
  const Json& given = program.at("inputs").at(name);
  return Tensor::from_host(given[1].get<std::vector<float>>(), given[0].get<Shape>());
}

class BuiltProgram {
 public:
  explicit BuiltProgram(const Json& program)
      : program_(program),
        x_(input(program, "x")),
        y_(input(program, "y")),
        tx_(input(program, "tx")),
        ty_(input(program, "ty")),
        xs_(input(program, "xs")) {}

  // Every result by its name in the fixture.
  std::map<std::string, Tensors> results() const {
    auto fn = [this](const Tensor& x, const Tensor& y) {
      return run(program_.at("f"), {}, {x, y})[0];
    };
    auto of_x = [&](const Tensor& x) { return fn(x, y_); };
    auto along = [&](const Tensor& x) { return jvp(of_x, x, tx_).second; };
    auto batched = vmap(of_x);
    auto gradient_x = grad(fn, 0);
    auto both = [&](auto g) { return jvp(g, std::tuple(x_, y_), std::tuple(tx_, ty_)).second; };
    auto over_batch = [&](const Tensor& y) {
      return ops::sum(vmap([&](const Tensor& x) { return fn(x, y); })(xs_));
    };
    return {{"value", {fn(x_, y_)}},
            {"grad", grad(fn, std::vector<int>{0, 1})(x_, y_)},
            {"jvp", {both(fn)}},
            {"vmap", {batched(xs_)}},
            {"jvp of grad", {both(gradient_x)}},
            {"vmap of grad", {vmap(grad(of_x))(xs_)}},
            {"grad of vmap", {grad(over_batch)(y_)}},
            {"grad of jvp", {grad(along)(x_)}},
            {"vmap of jvp", {vmap(along)(xs_)}}};
  }

  // The gradients, compiled; kernel by kernel, since fusing so many programs takes minutes.
  Tensors compiled() const {
    auto fn = [this](const Tensor& x, const Tensor& y) {
      return run(program_.at("f"), {}, {x, y})[0];
    };
    return jit(grad(fn, std::vector<int>{0, 1}), {JitLevel::kO0})(x_, y_);
  }

 private:
  const Json& program_;
  Tensor x_, y_, tx_, ty_, xs_;
};

std::vector<float> flat(const Tensors& tensors) {
  std::vector<float> values;
  for (const Tensor& tensor : tensors) {
    for (float value : tensor.to_host<float>()) values.push_back(value);
  }
  return values;
}

void expect_near(const std::vector<float>& values, const std::vector<double>& expected,
                 const std::string& what) {
  ASSERT_EQ(values.size(), expected.size()) << what;
  double scale = 1;
  for (double value : expected) scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i], kTolerance * scale) << what << ", element " << i;
  }
}

const Json& programs() {
  static const Json all = [] {
    std::ifstream file(BALLAST_SOURCE_DIR "/tests/fixtures/programs.json");
    return Json::parse(file);
  }();
  return all;
}

// A tenth of the programs is a case, so that entries can run side by side.
class Programs : public ::testing::TestWithParam<int> {};

TEST_P(Programs, AgreeWithJax) {
  const size_t count = programs().size(), tenth = static_cast<size_t>(GetParam());
  ASSERT_GT(count, 0u);
  for (size_t i = count * tenth / 10; i < count * (tenth + 1) / 10; ++i) {
    const Json& program = programs()[i];
    const std::string name = "program of seed " + program.at("seed").dump();
    SCOPED_TRACE(name);
    try {
      const BuiltProgram built(program);
      for (const auto& [what, tensors] : built.results()) {
        expect_near(flat(tensors), program.at("results").at(what), what);
      }
      if (i % 10 == 0) expect_near(flat(built.compiled()), program.at("results").at("grad"), "jit");
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Tenth, Programs, ::testing::Range(0, 10));

}  // namespace
}  // namespace ballast
