#include "frontend/transforms/jacobian.h"

#include "frontend/ops/ops.h"

#include <numeric>

namespace ballast::internal {

namespace {

// [n, shape...]: for each of the n elements of a tensor, one that is 1 there and 0 elsewhere.
Tensor basis(const TensorType& type) {
  const int64_t count = type.elements();
  const Tensor numbers = ops::arange(0, static_cast<double>(count), 1, DType::kI32);
  Shape shape = type.shape;
  shape.insert(shape.begin(), count);
  return ops::reshape(ops::one_hot(numbers, count, 1, 0, -1, type.dtype), shape);
}

Shape joined(Shape front, const Shape& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

size_t checked_leaf(const std::vector<Tensor>& leaves, const std::vector<size_t>& leaf_counts,
                    int position) {
  if (position < 0 || static_cast<size_t>(position) >= leaf_counts.size()) {
    fail(BALLAST_INVALID_ARGUMENT, "[jacobian] there is no argument {}: the function was given {}",
         position, leaf_counts.size());
  }
  const auto at = leaf_counts.begin() + position;
  const size_t leaf = std::accumulate(leaf_counts.begin(), at, size_t{0});
  if (*at != 1 || !is_float(leaves[leaf].dtype())) {
    fail(BALLAST_INVALID_ARGUMENT, "[jacobian] argument {} is {}, expected one float tensor",
         position, *at == 1 ? to_string(leaves[leaf].type()) : std::to_string(*at) + " tensors");
  }
  return leaf;
}

void check_outputs(const std::vector<TensorType>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (is_float(outputs[i].dtype)) continue;
    fail(BALLAST_INVALID_ARGUMENT, "[jacobian] result {} is {}, expected a float", i,
         to_string(outputs[i]));
  }
}

std::vector<Tensor> columns(const FlatFunction& fn, const std::vector<Tensor>& leaves,
                            size_t leaf) {
  auto column = [&](const std::vector<Tensor>& direction) -> std::vector<Tensor> {
    std::vector<Tensor> tangents(leaves.size());
    tangents[leaf] = direction[0];
    std::vector<Tensor> results = run_jvp(fn, leaves, tangents);
    const auto middle = results.begin() + static_cast<std::ptrdiff_t>(results.size() / 2);
    check_outputs(types_of({results.begin(), middle}));
    return {middle, results.end()};
  };
  std::vector<Tensor> results = run_vmap(column, {basis(leaves[leaf].type())}, {1}, 0, -1);
  for (Tensor& result : results) {
    const Shape own(result.shape().begin(), result.shape().end() - 1);
    result = ops::reshape(result, joined(own, leaves[leaf].shape()));
  }
  return results;
}

std::vector<Tensor> rows(const FlatFunction& fn, const std::vector<Tensor>& leaves, size_t leaf) {
  const Linearized linearized(trace(fn, types_of(leaves)), leaves);
  const std::vector<TensorType> types = types_of(linearized.outputs());
  check_outputs(types);
  std::vector<Tensor> results;
  for (size_t i = 0; i < types.size(); ++i) {
    auto row = [&](const std::vector<Tensor>& direction) -> std::vector<Tensor> {
      std::vector<Tensor> cotangents(types.size());
      cotangents[i] = direction[0];
      return {linearized.pull(cotangents)[leaf]};
    };
    const Tensor stacked = run_vmap(row, {basis(types[i])}, {1}, 0, 0)[0];
    results.push_back(ops::reshape(stacked, joined(types[i].shape, leaves[leaf].shape())));
  }
  return results;
}

}  // namespace

std::vector<Tensor> run_jacobian(const FlatFunction& fn, const std::vector<Tensor>& leaves,
                                 const std::vector<size_t>& leaf_counts, int position,
                                 Direction direction) {
  const size_t leaf = checked_leaf(leaves, leaf_counts, position);
  return direction == Direction::kForward ? columns(fn, leaves, leaf) : rows(fn, leaves, leaf);
}

}  // namespace ballast::internal
