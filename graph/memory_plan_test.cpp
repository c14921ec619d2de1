#include "graph/memory_plan.h"

#include "graph/passes.h"
#include "graph/test_support.h"

#include <random>

namespace ballast::graph {
namespace {

using namespace testing;

constexpr uint64_t kAlignment = 128;

MemoryPlan plan(const Graph& g) {
  return plan_memory(g, std::vector<uint64_t>(g.nodes().size()), kAlignment);
}

ValueId unary(Graph& g, const char* op, ValueId x) { return g.add_node(op, {}, {x})[0]; }

TEST(MemoryPlan, ChainRunsInOnePlace) {
  Graph g;
  ValueId v = g.add_input("x", f32({1024}));
  for (int i = 0; i < 5; ++i) v = unary(g, "neg", v);
  g.set_outputs({unary(g, "abs", v)});
  const MemoryPlan p = plan(g);
  EXPECT_EQ(p.arena_bytes, 4096u);
  EXPECT_EQ(p.naive_bytes, 5 * 4096u);
  EXPECT_EQ(p.values[g.outputs()[0]].kind, Storage::Kind::kOutput);
}

TEST(MemoryPlan, UpdateInPlaceUnlessTheOldValueIsStillRead) {
  Graph g;
  const ValueId s = g.add_state("s", f32({8}));
  const ValueId a = unary(g, "neg", s);
  g.set_update(s, a);
  EXPECT_EQ(plan(g).values[a].kind, Storage::Kind::kState);
  EXPECT_TRUE(plan(g).copies.empty());

  Graph late = g;
  late.set_outputs({unary(late, "exp", s)});  // reads the old value afterwards
  const MemoryPlan p = plan(late);
  EXPECT_EQ(p.values[a].kind, Storage::Kind::kArena);
  ASSERT_EQ(p.copies.size(), 1u);
  EXPECT_EQ(p.copies[0].value, a);
}

TEST(MemoryPlan, MatmulDoesNotOverwriteItsInput) {
  Graph g;
  const ValueId s = g.add_state("s", f32({8, 8}));
  const ValueId m = g.add_node("matmul", {}, {s, s})[0];
  g.set_update(s, m);
  EXPECT_EQ(plan(g).values[m].kind, Storage::Kind::kArena);
  EXPECT_EQ(plan(g).copies.size(), 1u);
}

TEST(MemoryPlan, ReshapeSharesMemoryAndKeepsItAlive) {
  Graph g;
  const ValueId x = g.add_input("x", f32({4, 4}));
  const ValueId a = unary(g, "neg", x);
  const ValueId r = g.add_node("reshape", {{"shape", std::vector<int64_t>{16}}}, {a})[0];
  const ValueId b = unary(g, "exp", x);
  const ValueId c = g.add_node("add", {}, {b, x})[0];
  const ValueId d = g.add_node("reshape", {{"shape", std::vector<int64_t>{16}}}, {c})[0];
  g.set_outputs({g.add_node("mul", {}, {r, d})[0]});
  const MemoryPlan p = plan(g);
  EXPECT_EQ(p.values[r].index, p.values[a].index);
  EXPECT_NE(p.values[a].index, p.values[c].index);
}

// Values alive at the same time never overlap, whatever the graph.
TEST(MemoryPlan, RandomGraphsNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Graph g;
    std::vector<ValueId> values{g.add_input("x", f32({16, 16}))};
    for (int i = 0; i < 20; ++i) {
      auto pick = [&] { return values[random() % values.size()]; };
      const uint32_t kind = random() % 3;
      if (kind == 0) values.push_back(unary(g, "neg", pick()));
      if (kind == 1) values.push_back(g.add_node("add", {}, {pick(), pick()})[0]);
      if (kind == 2) values.push_back(g.add_node("matmul", {}, {pick(), pick()})[0]);
    }
    g.set_outputs({values.back()});
    Graph clean = separate_results(remove_dead_code(g));
    const MemoryPlan p = plan(clean);
    EXPECT_GE(p.naive_bytes, p.arena_bytes);
    EXPECT_GE(p.arena_bytes, p.lower_bound_bytes);

    // Replays the nodes on a map from arena offset to the value it holds.
    std::map<uint64_t, ValueId> holds;
    for (const Node& node : clean.nodes()) {
      for (ValueId id : node.inputs) {
        if (p.values[id].kind == Storage::Kind::kArena) {
          ASSERT_EQ(holds[p.values[id].index], id) << "round " << round;
        }
      }
      for (ValueId id : node.outputs) {
        if (p.values[id].kind != Storage::Kind::kArena) continue;
        const bool reads_it =
            node.op->name == "matmul" && (p.values[node.inputs[0]].index == p.values[id].index ||
                                          p.values[node.inputs[1]].index == p.values[id].index);
        const bool inputs_in_arena =
            p.values[node.inputs[0]].kind == Storage::Kind::kArena &&
            p.values[node.inputs[1 % node.inputs.size()]].kind == Storage::Kind::kArena;
        ASSERT_FALSE(reads_it && inputs_in_arena) << "matmul in place, round " << round;
        holds[p.values[id].index] = id;
      }
    }
  }
}

}  // namespace
}  // namespace ballast::graph
