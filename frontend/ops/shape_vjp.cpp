// The gradients of shape ops. Names: g is the output's cotangent, y the output, x the first input.
#include "frontend/ops.h"
#include "frontend/vjp_rules.h"

namespace ballast {

using namespace vjp_rules;

namespace {

std::vector<Tensor> broadcast_to(const VjpArgs& args) {
  return {unbroadcast(g(args), x(args).shape())};
}

std::vector<Tensor> reshape(const VjpArgs& args) {
  return {ops::reshape(g(args), x(args).shape())};
}

std::vector<Tensor> transpose(const VjpArgs& args) {
  const std::vector<int64_t>& perm = ints_attr(args.attrs, "perm");
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  return {ops::transpose(g(args), inverse)};
}

}  // namespace

std::vector<Primitive> shape_primitives() {
  return {
      {"broadcast_to", broadcast_to},
      {"reshape", reshape, /*is_identity=*/false, /*is_view=*/true},
      {"transpose", transpose},
  };
}

}  // namespace ballast
