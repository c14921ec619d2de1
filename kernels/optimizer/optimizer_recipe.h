// The optimizer steps as Halide expressions. A step has a parameter, states of its shape, a
// gradient and scalars; it gives the new parameter and states. Stateless.
#pragma once

#include <Halide.h>

#include <string>
#include <vector>

namespace ballast::kernels {

// What an element's step needs of the scalars, so that it is computed once per work-group. The
// scalars are in the order of optimizer.h.
std::vector<Halide::Expr> prepare_scalars(const std::string& rule,
                                          const std::vector<Halide::Expr>& scalars);

// {new parameter, new states...}; `p` is what prepare_scalars gave.
std::vector<Halide::Expr> step_values(const std::string& rule, const Halide::Expr& param,
                                      const std::vector<Halide::Expr>& states,
                                      const Halide::Expr& gradient,
                                      const std::vector<Halide::Expr>& p);

}  // namespace ballast::kernels
