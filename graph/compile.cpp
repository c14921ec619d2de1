#include "graph/compile.h"

#include "graph/passes.h"
#include "graph/prepared_op.h"
#include "graph/text.h"

#include <cstdio>
#include <cstdlib>

namespace ballast::graph {

Graph optimize(const Graph& graph, Level level, const device::DevicePtr& device) {
  const Evaluate evaluate = [&](const OpCall& call, const auto& inputs) {
    return evaluate_on(device, call, inputs);
  };
  struct Pass {
    const char* name;
    Level from;
    std::function<Graph(const Graph&)> run;
  };
  const Pass passes[] = {
      {"remove_dead_code", Level::kO0, remove_dead_code},
      {"simplify", Level::kO1, simplify},
      {"remove_dead_code", Level::kO1, remove_dead_code},
      {"merge_common_subexpressions", Level::kO1, merge_common_subexpressions},
      {"fold_constants", Level::kO1, [&](const Graph& g) { return fold_constants(g, evaluate); }},
      {"fuse_matmul_epilogues", Level::kO1, fuse_matmul_epilogues},
      {"fuse_rows", Level::kO1, fuse_rows},
      {"fuse_pointwise", Level::kO1, fuse_pointwise},
      {"fuse_products", Level::kO1, fuse_products},
      {"fuse_reductions", Level::kO1, fuse_reductions},
      {"remove_dead_code", Level::kO1, remove_dead_code},
      {"separate_results", Level::kO0, separate_results},
  };

  const bool dumps = std::getenv("BALLAST_DUMP_GRAPH") != nullptr;
  Graph current = graph;
  std::string before = dumps ? print(current, 64) : "";
  if (dumps) std::fprintf(stderr, "as given\n%s\n", before.c_str());
  for (const Pass& pass : passes) {
    if (level < pass.from) continue;
    current = pass.run(current);
    verify(current);
    if (!dumps) continue;
    std::string after = print(current, 64);
    if (after != before) std::fprintf(stderr, "after %s\n%s\n", pass.name, after.c_str());
    before = std::move(after);
  }
  return current;
}

}  // namespace ballast::graph
