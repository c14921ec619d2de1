#include "bench/rows.h"

namespace ballast::bench {

Case chain(const std::string& name, std::vector<Operand> inputs, std::vector<Step> steps) {
  Case c{"chain_" + name, "chain_" + name, {}, std::move(inputs), steps};
  c.unfused = std::move(steps);
  return c;
}

std::vector<Case> all_rows() {
  std::vector<Case> all;
  for (const auto& family : {matmul_rows, pointwise_rows, reduce_rows, softmax_rows, norm_rows,
                             conv_rows, attention_rows, shape_rows, random_rows, optimizer_rows}) {
    for (Case& row : family()) all.push_back(std::move(row));
  }
  return all;
}

}  // namespace ballast::bench
