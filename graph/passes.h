// The passes: free functions from graph to graph. compile.cpp lists them in order.
#pragma once

#include "graph/graph.h"

#include <functional>

namespace ballast::graph {

// Drops nodes that neither an output nor an update needs and that have no effect.
[[nodiscard]] Graph remove_dead_code(const Graph& graph);

// One node for equal (op, attributes, inputs), and one constant for equal bytes.
[[nodiscard]] Graph merge_common_subexpressions(const Graph& graph);

// Replaces nodes of constants by their value. `evaluate` runs one call on the device, so that
// folding gives the bits that running would. Results above 64 KiB are left to run.
using Evaluate = std::function<std::vector<std::vector<uint8_t>>(
    const OpCall&, const std::vector<const std::vector<uint8_t>*>& inputs)>;
[[nodiscard]] Graph fold_constants(const Graph& graph, const Evaluate& evaluate);

// Removes what does nothing (reshape, broadcast_to, transpose, cast to the same type; chains of
// reshapes), lets a matmul read a transposed matrix in place, and has it give the shape that its
// result is reshaped to. Leaves dead nodes. What only moves keeps its bits; a product may get
// another kernel, which sums in another order, so its bits may differ from those of before.
[[nodiscard]] Graph simplify(const Graph& graph);

// matmul, then bias, activation, residual (each where it is), or matmul + relu_grad, become one
// node with an epilogue.
[[nodiscard]] Graph fuse_matmul_epilogues(const Graph& graph);

// Chains of pointwise nodes over one shape, each read by the chain only, become one "fused" node.
[[nodiscard]] Graph fuse_pointwise(const Graph& graph);

// A "fused" or pointwise node of f32 that alone reads a matmul becomes one node with it, a
// "fused_matmul", where its other operands have the product's shape, or one value per column or for
// all. The matmul's own epilogue becomes the first steps. For what fuse_matmul_epilogues left: what
// that pass made needs no kernel compiled.
[[nodiscard]] Graph fuse_products(const Graph& graph);

// A "fused" or pointwise node that is read by a reduction alone becomes one node with it, a
// "fused_reduce", where its inputs lie along the reduced axes, before and behind them as single
// dimensions would. For what fuse_rows left: other axes than the last, all of them, other lengths.
[[nodiscard]] Graph fuse_reductions(const Graph& graph);

// Reductions and softmax along the last axis with the pointwise nodes around them, over rows of 16
// to 4096 elements, become one "fused_rows" node: what a row needs of itself (a maximum, a mean)
// stays in one kernel. A softmax or normalisation written out in ops is one such node.
[[nodiscard]] Graph fuse_rows(const Graph& graph);

// Gives every output and update a node result of its own, so that each can live in the memory it
// belongs to: inserts identity copies where an output or update is an input, state, constant,
// reshape, or serves twice.
[[nodiscard]] Graph separate_results(const Graph& graph);

}  // namespace ballast::graph
