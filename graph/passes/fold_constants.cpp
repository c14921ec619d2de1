#include "graph/effect.h"
#include "graph/passes.h"

#include <algorithm>

namespace ballast::graph {

namespace {

constexpr uint64_t kLargestFolded = 64 * 1024;  // bytes

}  // namespace

Graph fold_constants(const Graph& graph, const Evaluate& evaluate) {
  Rewrite rewrite(graph);
  Graph& folded = rewrite.graph();
  for (const Node& old : graph.nodes()) {
    const std::vector<ValueId> inputs = rewrite.map(old.inputs);
    const bool inputs_are_constant = std::all_of(inputs.begin(), inputs.end(), [&](ValueId id) {
      return folded.value(id).kind == ValueKind::kConstant;
    });
    const bool results_are_small =
        std::all_of(old.outputs.begin(), old.outputs.end(),
                    [&](ValueId id) { return graph.value(id).type.bytes() <= kLargestFolded; });
    if (!inputs_are_constant || !results_are_small || runs_on_host(old)) {
      rewrite.keep(old);
      continue;
    }
    std::vector<const std::vector<uint8_t>*> data_of_inputs;
    for (ValueId id : inputs) data_of_inputs.push_back(folded.value(id).data.get());
    auto results = evaluate({old.op, old.attrs, folded.types(inputs)}, data_of_inputs);
    for (size_t i = 0; i < results.size(); ++i) {
      auto data = std::make_shared<const std::vector<uint8_t>>(std::move(results[i]));
      rewrite.replace(old.outputs[i],
                      folded.add_constant(graph.value(old.outputs[i]).type, std::move(data)));
    }
  }
  return rewrite.finish();
}

}  // namespace ballast::graph
