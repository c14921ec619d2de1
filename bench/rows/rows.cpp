#include "bench/rows.h"

namespace ballast::bench {

std::vector<Case> all_rows() {
  std::vector<Case> all;
  for (const auto& family : {matmul_rows, pointwise_rows, reduce_rows, softmax_rows, norm_rows,
                             conv_rows, attention_rows, shape_rows, random_rows, optimizer_rows}) {
    for (Case& row : family()) all.push_back(std::move(row));
  }
  return all;
}

}  // namespace ballast::bench
