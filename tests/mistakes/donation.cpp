#include "tests/mistakes/table.h"

namespace ballast::tests {
namespace {

Tensor vector() { return Tensor::from_host<float>({1, 2, 3}, {3}); }

MISTAKE(
    FAILED_PRECONDITION, "a tensor used after it was donated",
    "[tensor] the f32[3] was donated at {line}, as argument 0 of the function jitted at {line} (at "
    "{line})\n  hint: use what that call returned, or leave the argument out of donate()",
    auto f = jit([](Tensor x) { return x * 2; }, donate({0}));
    Tensor x = vector(); f(x); ops::exp(x););

MISTAKE(
    FAILED_PRECONDITION, "a donated tensor given to the next call",
    "[tensor] the f32[3] was donated at {line}, as argument 0 of the function jitted at {line} (at "
    "{line})\n  hint: use what that call returned, or leave the argument out of donate()",
    auto f = jit([](Tensor x) { return x * 2; }, donate({0}));
    Tensor x = vector(); f(x); f(x););

MISTAKE(
    FAILED_PRECONDITION, "a donated tensor in a list, read through a copy",
    "[tensor] the f32[3] was donated at {line}, as leaf 1 of argument 0 of the function jitted at "
    "{line} (at {line})\n  hint: use what that call returned, or leave the argument out of "
    "donate()",
    auto f = jit([](std::vector<Tensor> x) { return x[0] * x[1]; }, donate({0}));
    Tensor x = vector(), copy = x; f(std::vector{vector(), x}); copy.to_host<float>(););

MISTAKE(
    FAILED_PRECONDITION, "a parameter assigned a donated tensor",
    "[tensor] the f32[3] was donated at {line}, as argument 0 of the function jitted at {line} (at "
    "{line})\n  hint: use what that call returned, or leave the argument out of donate()",
    Parameter w(vector(), "w");
    Tensor x = vector(); jit([](Tensor z) { return z * 2; }, donate({0}))(x); w.assign(x););

MISTAKE(INVALID_ARGUMENT, "a parameter in a list that is donated",
        "[jit] argument 0 of the function jitted at {line} is a parameter, which cannot be donated "
        "(at {line})\n  hint: a parameter that the function assigns is updated in place without it",
        Parameter w(vector(), "w");
        jit([](auto list) { return list[0] * 2; }, donate({0}))(std::vector{w}););

MISTAKE(
    FAILED_PRECONDITION, "a pullback whose argument was donated",
    "[tensor] the f32[3] was donated at {line}, as argument 0 of the function jitted at {line} (at "
    "{line})\n  hint: use what that call returned, or leave the argument out of donate()",
    Tensor x = vector();
    auto [y, pullback] = vjp([](Tensor z) { return ops::sum(z * z); }, x);
    jit([](Tensor z) { return z * 2; }, donate({0}))(x); pullback(y););

MISTAKE(INVALID_ARGUMENT, "a tensor donated twice in one call",
        "[jit] argument 0 of the function jitted at {line} is donated, and argument 1 is the same "
        "tensor (at {line})\n  hint: leave it out of donate(), or give a copy: x + 0",
        auto f = jit([](Tensor x, Tensor y) { return std::pair(x + y, x - y); }, donate({0, 1}));
        Tensor x = vector(); f(x, x););

MISTAKE(INVALID_ARGUMENT, "a donated tensor that the call also reads",
        "[jit] argument 1 of the function jitted at {line} is donated, and argument 0 is the same "
        "tensor (at {line})\n  hint: leave it out of donate(), or give a copy: x + 0",
        auto f = jit([](Tensor x, Tensor y) { return x + y; }, donate({1}));
        Tensor x = vector(); f(x, x););

MISTAKE(
    INVALID_ARGUMENT, "a donated tensor that the function closes over",
    "[jit] argument 0 of the function jitted at {line} is donated, and the function closes over it "
    "(at {line})\n  hint: pass it as an argument, or leave it out of donate()",
    Tensor x = vector();
    auto f = jit([=](Tensor y) { return x + y; }, donate({0})); f(x););

MISTAKE(
    INVALID_ARGUMENT, "a parameter that is donated",
    "[jit] argument 0 of the function jitted at {line} is a parameter, which cannot be donated (at "
    "{line})\n  hint: a parameter that the function assigns is updated in place without it",
    Parameter w(vector(), "w");
    jit([](Tensor x) { return x * 2; }, donate({0}))(w););

MISTAKE(
    INVALID_ARGUMENT, "donating an argument that there is not",
    "[jit] the function jitted at {line} is to donate argument 1, but is given 1 (at {line})\n  "
    "hint: arguments count from 0",
    jit([](Tensor x) { return x * 2; }, donate({1}))(vector()););

MISTAKE(
    INVALID_ARGUMENT, "a sink of a function that donates",
    "[sink] argument 0 of the function jitted at {line} is donated, but a queue keeps its values "
    "(at {line})\n  hint: jit it without donate(); what goes from step to step is a Parameter",
    auto loop = sink(jit([](Tensor x) { return x * 2; }, donate({0})));
    loop(10, repeat(vector())););

}  // namespace
}  // namespace ballast::tests
