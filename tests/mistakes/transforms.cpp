#include "tests/mistakes/table.h"

namespace ballast::tests {
namespace {

const Tensor& vector() {
  static const auto* value = new Tensor(Tensor::on_host<float>({1, 2, 3}, {3}));
  return *value;
}

// ---- tracing

MISTAKE(FAILED_PRECONDITION, "a C++ if on a tensor inside of jit",
        "[tensor] a traced bool[] has no value: it stands for a variable while a function is "
        "traced (at {line})\n  hint: where its value decides what is computed, use cond, "
        "while_loop or ops::select; to see it, ops::print",
        auto f = jit([](Tensor x) { return ops::less(ops::sum(x), 0).item<bool>() ? -x : x; });
        f(vector()););

MISTAKE(FAILED_PRECONDITION, "a value read inside of jit",
        "[tensor] a traced f32[] has no value: it stands for a variable while a function is traced "
        "(at {line})\n  hint: where its value decides what is computed, use cond, while_loop or "
        "ops::select; to see it, ops::print",
        jit([](Tensor x) { return x * ops::sum(x).item<float>(); })(vector()););

MISTAKE(FAILED_PRECONDITION, "a tensor that leaked out of jit",
        "[neg] input 0 is a traced f32[3] whose trace has ended: it leaked out of a traced "
        "function (at {line})\n  hint: return it from the traced function, or assign it to a "
        "Parameter to keep it",
        Tensor kept;
        jit([&](Tensor x) { return kept = ops::exp(x); })(vector()); ops::neg(kept););

MISTAKE(
    FAILED_PRECONDITION, "a tensor that leaked from one jitted function into another",
    "[add] given a traced f32[3] whose trace has ended: it leaked out of a traced function (at "
    "{line})\n  hint: return it from the traced function, or assign it to a Parameter to keep it",
    Tensor kept;
    jit([&](Tensor x) { return kept = ops::exp(x); })(vector());
    jit([&](Tensor x) { return x + kept; })(vector()););

MISTAKE(FAILED_PRECONDITION, "the value of a tensor that leaked out of jit",
        "[tensor] a traced f32[3] has no value: it stands for a variable while a function is "
        "traced (at {line})\n  hint: where its value decides what is computed, use cond, "
        "while_loop or ops::select; to see it, ops::print",
        Tensor kept;
        jit([&](Tensor x) { return kept = ops::exp(x); })(vector()); kept.to_host<float>(););

MISTAKE(INVALID_ARGUMENT, "a jitted function that returns an undefined tensor",
        "[return] given an undefined tensor (at {line})\n  hint: a Tensor declared without a "
        "value is undefined: assign it first",
        jit([](Tensor) { return Tensor(); })(vector()););

MISTAKE(INVALID_ARGUMENT, "a jitted function called with an undefined tensor",
        "[tensor] the tensor is undefined (at {line})\n  hint: a Tensor declared without a "
        "value is undefined: assign it first",
        jit([](Tensor x) { return -x; })(Tensor()););

MISTAKE(FAILED_PRECONDITION, "a question about a jitted function that never ran",
        "[jit] the function has not been called yet", jit([](Tensor x) { return -x; }).info(););

MISTAKE(INVALID_ARGUMENT, "a mistake in what is traced, found at the call",
        "[matmul] inner extents differ: 3 of input 0 (plain), 4 of input 1 (plain); inputs are "
        "f32[5, 3], f32[4, 2] (at {line})\n  hint: the last axis of input 0 meets the last but one "
        "of input 1; transpose_a and transpose_b, or ops::transpose, turn one round",
        auto f = jit([](Tensor x) {
          return ops::matmul(x, Tensor::zeros({4, 2}));
        });
        f(Tensor::zeros({5, 3})););

// ---- gradients

MISTAKE(INVALID_ARGUMENT, "the gradient of something that is no scalar",
        "[grad] the loss is f32[3], expected a float scalar (at {line})\n  hint: ops::mean or "
        "ops::sum makes it one; jacrev differentiates all elements",
        grad([](Tensor x) { return ops::exp(x); })(vector()););

MISTAKE(INVALID_ARGUMENT, "the gradient of a whole number",
        "[grad] the loss is i32[], expected a float scalar (at {line})\n  hint: ops::mean or "
        "ops::sum makes it one; jacrev differentiates all elements",
        grad([](Tensor x) { return ops::sum(ops::cast(x, DType::kI32)); })(vector()););

MISTAKE(INVALID_ARGUMENT, "the gradient by whole numbers",
        "[grad] argument 0 is i32[2], expected a float (at {line})",
        grad([](Tensor x) { return ops::sum(x); })(Tensor::zeros({2}, DType::kI32)););

MISTAKE(INVALID_ARGUMENT, "the gradient by an argument that there is not",
        "[grad] there is no argument 3: the function was given 1 (at {line})",
        grad([](Tensor x) { return ops::sum(x); }, 3)(vector()););

MISTAKE(
    INVALID_ARGUMENT, "the gradient by an argument that is a list",
    "[grad] argument 0 is 2 tensors, expected one (at {line})",
    auto loss = [](std::vector<Tensor> x) { return ops::sum(x[0] * x[1]); };
    grad(loss)(std::vector<Tensor>{vector(), vector()}););

MISTAKE(INVALID_ARGUMENT, "a loss with company, without has_aux",
        "[grad] the function returns 2 tensors, expected the loss alone; pass has_aux for more (at "
        "{line})\n  hint: value_and_grad(f, position, /*has_aux=*/true) differentiates the first "
        "of them",
        value_and_grad([](Tensor x) { return std::pair(ops::sum(x), x); })(vector()););

MISTAKE(
    UNIMPLEMENTED, "the gradient of an op that has none",
    "[apply_adagrad] the op has no gradient (at {line})\n  hint: stop_gradient around it if none "
    "is meant, custom_vjp to give one",
    auto step =
        [](Tensor p) {
          return ops::call("apply_adagrad", {p, p, p, Tensor::scalar(1)})[0];
        };
    grad([&](Tensor x) { return ops::sum(step(x)); })(vector()););

MISTAKE(INVALID_ARGUMENT, "a gradient by hand for some arguments only",
        "[custom_vjp] backward gives 1 gradients for 2 arguments (at {line})\n  hint: "
        "backward(residuals, cotangents) returns a tensor for each tensor of the arguments, of its "
        "type",
        auto f = custom_vjp([](Tensor x, Tensor y) { return ops::sum(x * y); },
                            [](Tensor x, Tensor y) { return std::pair(ops::sum(x * y), y); },
                            [](Tensor y, Tensor u) { return std::vector<Tensor>{u * y}; });
        grad(f)(vector(), vector()););

MISTAKE(INVALID_ARGUMENT, "a gradient by hand of the wrong shape",
        "[custom_vjp] backward gives f32[] for an argument f32[3] (at {line})\n  hint: "
        "backward(residuals, cotangents) returns a tensor for each tensor of the arguments, of its "
        "type",
        auto f = custom_vjp([](Tensor x) { return ops::sum(x); },
                            [](Tensor x) { return std::pair(ops::sum(x), x); },
                            [](Tensor, Tensor u) { return u; });
        grad(f)(vector()););

MISTAKE(INVALID_ARGUMENT, "a gradient by hand that prints",
        "[custom_vjp] the backward pass prints (at {line})\n  hint: it is differentiated, "
        "transposed and mapped in its turn, so it has no effects; print what the pullback or grad "
        "returns",
        auto f = custom_vjp([](Tensor x) { return ops::sum(x); },
                            [](Tensor x) { return std::pair(ops::sum(x), x); },
                            [](Tensor x, Tensor u) {
                              ops::print(u);
                              return ops::broadcast_to(u, x.shape());
                            });
        grad(f)(vector()););

MISTAKE(INVALID_ARGUMENT, "a gradient by hand that assigns",
        "[custom_vjp] the backward pass assigns parameter w (at {line})\n  hint: it is "
        "differentiated, transposed and mapped in its turn, so it has no effects; print what the "
        "pullback or grad returns",
        Parameter w(Tensor::scalar(0), "w");
        auto f = custom_vjp([](Tensor x) { return ops::sum(x); },
                            [](Tensor x) { return std::pair(ops::sum(x), x); },
                            [&](Tensor x, Tensor u) {
                              w.assign(u);
                              return ops::broadcast_to(u, x.shape());
                            });
        grad(f)(vector()););

MISTAKE(INVALID_ARGUMENT, "a cotangent of the wrong shape",
        "[vjp] cotangent 0 is f32[3], its output f32[] (at {line})",
        auto [y, pullback] = vjp([](Tensor x) { return ops::sum(x); }, vector());
        pullback(vector()););

MISTAKE(INVALID_ARGUMENT, "a tangent of the wrong shape",
        "[jvp] tangent 0 is f32[], its primal f32[3] (at {line})",
        jvp([](Tensor x) { return x * x; }, vector(), Tensor::scalar(1)););

MISTAKE(INVALID_ARGUMENT, "a tangent of whole numbers",
        "[jvp] primal 0 is i32[]: its tangent is an undefined tensor, i32[] is given (at {line})\n "
        " hint: Tensor() stands for it",
        Tensor n = Tensor::scalar(2, DType::kI32);
        jvp([](Tensor x) { return x * x; }, n, n););

MISTAKE(INVALID_ARGUMENT, "a cotangent too few",
        "[vjp] 1 cotangents are given for 2 outputs (at {line})",
        auto [y, pullback] = vjp(
            [](Tensor x) {
              return std::vector{x, x};
            },
            vector());
        pullback({vector()}););

MISTAKE(
    INVALID_ARGUMENT, "a tangent too few", "[jvp] 1 tangents are given for 2 primals (at {line})",
    auto f = [](std::vector<Tensor> x) { return x[0] * x[1]; };
    jvp(f, std::vector{vector(), vector()}, std::vector{vector()}););

MISTAKE(
    UNIMPLEMENTED, "the tangent of an op that has none",
    "[apply_adagrad] the op has no derivative (at {line})\n  hint: stop_gradient around it if none "
    "is meant, custom_vjp to give one",
    auto step =
        [](Tensor p) {
          return ops::call("apply_adagrad", {p, p, p, Tensor::scalar(1)})[0];
        };
    jvp(step, vector(), vector()););

MISTAKE(INVALID_ARGUMENT, "the Jacobian by an argument that there is not",
        "[jacobian] there is no argument 1: the function was given 1 (at {line})",
        jacrev([](Tensor x) { return x * x; }, 1)(vector()););

MISTAKE(INVALID_ARGUMENT, "the Jacobian of whole numbers",
        "[jacobian] result 0 is i32[], expected a float (at {line})",
        jacrev([](Tensor x) { return ops::argmax(x); })(vector()););

MISTAKE(INVALID_ARGUMENT, "the Jacobian by whole numbers",
        "[jacobian] argument 0 is i32[2], expected one float tensor (at {line})",
        jacrev([](Tensor x) { return x * x; })(Tensor::zeros({2}, DType::kI32)););

// ---- vmap

MISTAKE(INVALID_ARGUMENT, "vmap over an axis that there is not",
        "[vmap] axis 1 is out of range for argument 0, f32[3] (at {line})",
        vmap([](Tensor x) { return x * x; }, 1)(vector()););

MISTAKE(INVALID_ARGUMENT, "vmap over arguments of unequal lengths",
        "[vmap] argument 1 is f32[4] with 4 examples along axis 0, argument 0 has 3 (at {line})\n  "
        "hint: arguments that are the same for all examples have std::nullopt in in_axes",
        vmap([](Tensor x, Tensor y) { return x * y; })(vector(), Tensor::zeros({4})););

MISTAKE(INVALID_ARGUMENT, "vmap with an axis too many",
        "[vmap] 2 in_axes are given for 1 arguments (at {line})",
        vmap([](Tensor x) { return x * x; }, {0, 0})(vector()););

MISTAKE(INVALID_ARGUMENT, "vmap stacking along an axis that there is not",
        "[vmap] axis 2 is out of range for result 0, examples of f32[] (at {line})",
        vmap([](Tensor x) { return x * x; }, 0, 2)(vector()););

MISTAKE(INVALID_ARGUMENT, "vmap of results that differ, said to be shared",
        "[vmap] result 0 differs by example, but its out_axis is none (at {line})",
        vmap([](Tensor x) { return x * x; }, 0, {std::nullopt})(vector()););

MISTAKE(INVALID_ARGUMENT, "vmap over nothing",
        "[vmap] no argument has an axis to map over (at {line})",
        vmap([](Tensor x) { return x * x; }, {std::nullopt})(vector()););

MISTAKE(INVALID_ARGUMENT, "vmap of a function that assigns a parameter by example",
        "[vmap] parameter w is assigned a value that differs by example (at {line})\n  hint: "
        "return it instead, and assign what is made of all examples: their mean, their sum",
        Parameter w(Tensor::scalar(0), "w");
        vmap([&](Tensor x) {
          w.assign(x);
          return x;
        })(vector()););

MISTAKE(
    UNIMPLEMENTED, "vmap of a while_loop that draws random numbers",
    "[vmap] a while_loop or checkpoint draws from generator: which part of it is an example's is "
    "not known (at {line})\n  hint: draw in a fori_loop or scan and outside of checkpoints, or "
    "map over keys of the examples' own",
    auto f =
        [](Tensor x) {
          return while_loop([](Tensor c) { return ops::less(c, 1); },
                            [](Tensor c) { return c + ops::random_uniform({}); }, x);
        };
    vmap(f)(vector()););

MISTAKE(
    UNIMPLEMENTED, "vmap of a checkpoint that draws random numbers",
    "[vmap] a while_loop or checkpoint draws from generator: which part of it is an example's is "
    "not known (at {line})\n  hint: draw in a fori_loop or scan and outside of checkpoints, or "
    "map over keys of the examples' own",
    auto f = checkpoint([](Tensor x) { return ops::sum(x * ops::random_uniform({2})); });
    vmap(grad(f))(Tensor::ones({3, 2})););

// ---- control flow

MISTAKE(
    INVALID_ARGUMENT, "a cond whose predicate has many elements",
    "[cond] the predicate is bool[3], expected a bool scalar (at {line})\n  hint: ops::less and "
    "its like compare, ops::reduce_any and ops::reduce_all make one bool of many; ops::select "
    "chooses element by element",
    auto same = [] { return vector(); };
    cond(ops::less(vector(), 0), same, same););

MISTAKE(
    INVALID_ARGUMENT, "a cond whose predicate is a number",
    "[cond] the predicate is f32[], expected a bool scalar (at {line})\n  hint: ops::less and its "
    "like compare, ops::reduce_any and ops::reduce_all make one bool of many; ops::select chooses "
    "element by element",
    auto same = [] { return vector(); };
    cond(ops::sum(vector()), same, same););

MISTAKE(
    INVALID_ARGUMENT, "branches that give different types",
    "[cond] leaf 0 of the result is f32[3] where the predicate is true, else f32[] (at {line})\n  "
    "hint: both branches are compiled, so they must agree; ops::cast and ops::broadcast_to help",
    auto f = jit([](Tensor x) {
      return cond(
          ops::less(ops::sum(x), 0), [&] { return x; }, [&] { return ops::sum(x); });
    });
    f(vector()););

MISTAKE(INVALID_ARGUMENT, "branches that give different numbers of tensors",
        "[cond] one branch returns 2 tensors, the other 1 (at {line})\n  hint: both branches are "
        "compiled, so they must return trees of one form",
        using List = std::vector<Tensor>;
        auto f = jit([](Tensor x) {
          return cond(
              ops::less(ops::sum(x), 0),
              [&] {
                return List{x, x};
              },
              [&] { return List{x}; });
        });
        f(vector()););

MISTAKE(INVALID_ARGUMENT, "a loop's condition that is a number",
        "[while_loop] the condition is f32[], expected a bool scalar (at {line})\n  hint: "
        "ops::less and its like compare, ops::reduce_any and ops::reduce_all make one bool of "
        "many; ops::select chooses element by element",
        while_loop([](Tensor c) { return ops::sum(c); }, [](Tensor c) { return c; }, vector()););

MISTAKE(
    INVALID_ARGUMENT, "a carry that changes its shape",
    "[while_loop] leaf 0 of the carry is f32[3] before the body and f32[] after it (at {line})\n  "
    "hint: a loop's carry keeps its types from step to step; ops::cast and ops::reshape what the "
    "body returns",
    auto below = [](Tensor c) { return ops::less(ops::sum(c), 9); };
    while_loop(
        below, [](Tensor c) { return ops::sum(c); }, vector()););

MISTAKE(
    INVALID_ARGUMENT, "a carry that changes its dtype",
    "[scan] leaf 0 of the carry is f32[3] before the body and i32[3] after it (at {line})\n  hint: "
    "a loop's carry keeps its types from step to step; ops::cast and ops::reshape what the body "
    "returns",
    auto step = [](Tensor c, Tensor x) { return std::pair(ops::cast(c, DType::kI32), x); };
    scan(step, vector(), vector()););

MISTAKE(
    INVALID_ARGUMENT, "a scan over tensors of unequal lengths",
    "[scan] leaf 1 of xs is f32[4], expected 3 steps (at {line})",
    auto step = [](Tensor c, std::pair<Tensor, Tensor> x) { return std::pair(c, x.first); };
    scan(step, vector(), std::pair(vector(), Tensor::zeros({4}))););

MISTAKE(
    INVALID_ARGUMENT, "a scan over a scalar",
    "[scan] leaf 0 of xs is f32[]: there is no axis to step along (at {line})\n  hint: "
    "ops::broadcast_to or ops::expand_dims gives it one",
    auto step = [](Tensor c, Tensor x) { return std::pair(c, x); };
    scan(step, vector(), Tensor::scalar(1)););

MISTAKE(
    INVALID_ARGUMENT, "a scan over nothing, of no length",
    "[scan] without xs a length is needed (at {line})\n  hint: scan(body, carry, std::tuple<>(), "
    "/*length=*/n)",
    auto step = [](Tensor c, std::tuple<>) { return std::pair(c, c); };
    scan(step, vector(), std::tuple<>()););

MISTAKE(INVALID_ARGUMENT, "a loop's bound that is a float",
        "[fori_loop] a bound is f32[], expected an i32 scalar (at {line})\n  hint: "
        "ops::cast(bound, DType::kI32)",
        fori_loop(
            0, ops::sum(vector()), [](Tensor, Tensor c) { return c; }, vector()););

MISTAKE(
    INVALID_ARGUMENT, "a mistake in the body of a loop",
    "[add] shapes [3] and [7] do not broadcast; inputs are f32[3], f32[7] (at {line})\n  hint: "
    "extents are compared from the last axis on and must be equal or 1; ops::expand_dims and "
    "ops::reshape align them",
    auto step = [](Tensor c, Tensor x) { return std::pair(c + Tensor::zeros({7}), x); };
    scan(step, vector(), vector()););

}  // namespace
}  // namespace ballast::tests
