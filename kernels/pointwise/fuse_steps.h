// The steps of a chain as Halide functions; for whoever compiles chains at run time. Needs Halide.
#pragma once

#include "kernels/pointwise/pointwise.h"

#include <Halide.h>

#include <functional>
#include <vector>

namespace ballast::kernels {

// A Func of `vars` per step, to be inlined: expressions that use a step twice stay small.
// input(i): input i at `vars`, as loaded. The steps round as the ops do.
std::vector<Halide::Func> make_steps(const FusedPointwise& fused,
                                     const std::vector<Halide::Var>& vars,
                                     const std::function<Halide::Expr(uint32_t)>& input);

}  // namespace ballast::kernels
