#include "graph/test_support.h"

#include "graph/text.h"

namespace ballast::graph::testing {

std::string ops(const Graph& g) {
  std::string text;
  for (const Node& node : g.nodes()) text += (text.empty() ? "" : " ") + node.op->name;
  return text;
}

Graph parse_nodes(const std::string& lines) { return parse("ballast.graph 1\n" + lines); }

Graph linear_regression(int64_t batch, int64_t features) {
  Graph g;
  const ValueId x = g.add_input("x", f32({batch, features}));
  const ValueId t = g.add_input("t", f32({batch, 1}));
  const ValueId w = g.add_state("w", f32({1, features}));
  const ValueId b = g.add_state("b", f32({1}));
  const ValueId vw = g.add_state("w.accum", f32({1, features}));
  const ValueId vb = g.add_state("b.accum", f32({1}));
  const ValueId lr = g.add_constant(f32({}), bytes_of<float>({0.01f}));
  const ValueId momentum = g.add_constant(f32({}), bytes_of<float>({0.9f}));
  const ValueId scale =
      g.add_constant(f32({}), bytes_of<float>({2.0f / static_cast<float>(batch)}));
  auto one = [&](const std::string& op, Attrs attrs, std::vector<ValueId> inputs) {
    return g.add_node(op, std::move(attrs), std::move(inputs), "test.cpp:1").at(0);
  };
  const ValueId z = one("matmul", {{"transpose_b", int64_t{1}}}, {x, w});
  const ValueId y = one("add", {}, {z, b});
  const ValueId e = one("sub", {}, {y, t});
  const ValueId sq = one("mul", {}, {e, e});
  const ValueId loss = one("reduce_mean", {}, {sq});
  const ValueId dy = one("mul", {}, {e, scale});
  const ValueId dw = one("matmul", {{"transpose_a", int64_t{1}}}, {dy, x});
  const ValueId db = one("reduce_sum", {{"axes", std::vector<int64_t>{0}}}, {dy});
  const auto new_w = g.add_node("apply_momentum", {}, {w, vw, dw, lr, momentum});
  g.set_update(w, new_w[0]);
  g.set_update(vw, new_w[1]);
  const auto new_b = g.add_node("apply_momentum", {}, {b, vb, db, lr, momentum});
  g.set_update(b, new_b[0]);
  g.set_update(vb, new_b[1]);
  g.set_outputs({loss});
  return g;
}

}  // namespace ballast::graph::testing
