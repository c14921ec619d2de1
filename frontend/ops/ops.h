// Every public op. Called on concrete tensors they run now, inside a trace they are recorded.
#pragma once

#include "frontend/ops/attention.h"
#include "frontend/ops/conv.h"
#include "frontend/ops/distance.h"
#include "frontend/ops/index.h"
#include "frontend/ops/interpolate.h"
#include "frontend/ops/loss.h"
#include "frontend/ops/matmul.h"
#include "frontend/ops/norm.h"
#include "frontend/ops/optimizer.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/pool.h"
#include "frontend/ops/random.h"
#include "frontend/ops/reduce.h"
#include "frontend/ops/shape.h"
#include "frontend/ops/softmax.h"
#include "frontend/tensor/tree.h"

#include <string>
#include <vector>

namespace ballast {

// x, after everything in `deps` (tensors, or vectors, tuples and pairs of them) has been computed.
template <class... Deps>
Tensor depend(const Operand& x, const Deps&... deps);
// x, through which no gradient flows.
Tensor stop_gradient(const Operand& x);

namespace ops {

// Any op of the plugin by name.
std::vector<Tensor> call(const std::string& name, const std::vector<Tensor>& inputs,
                         const Attrs& attrs = {}, Where where = Where::here());

}  // namespace ops

Tensor depend_on(const Operand& x, const std::vector<Tensor>& deps);

template <class... Deps>
Tensor depend(const Operand& x, const Deps&... deps) {
  std::vector<Tensor> leaves;
  (append_leaves(deps, leaves), ...);
  return depend_on(x, leaves);
}

}  // namespace ballast
