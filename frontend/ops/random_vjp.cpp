// The gradients of random ops. Names: g is the output's cotangent, y the output, x the first input.
#include "frontend/ops/ops.h"
#include "frontend/transforms/jvp_rules.h"
#include "frontend/transforms/vjp_rules.h"
#include "frontend/transforms/vmap_rules.h"

namespace ballast {

using namespace vjp_rules;

namespace {

// Linear in x: the same op, which draws the same mask from the same key.
std::vector<Tensor> dropout(const VjpArgs& args) {
  return {ops::call("dropout", {g(args), args.inputs[1]}, args.attrs)[0], {}};
}

}  // namespace

std::vector<Primitive> random_primitives() {
  std::vector<Primitive> rows = {
      {"dropout", dropout, jvp_rules::multilinear, vmap_rules::dropout},
      {"random_advance", zero, nullptr, vmap_rules::random_advance},
  };
  for (const char* op : {"random_bits", "random_uniform", "random_normal", "truncated_normal",
                         "randint", "bernoulli", "random_permutation"}) {
    rows.push_back({op, zero});
  }
  return rows;
}

}  // namespace ballast
