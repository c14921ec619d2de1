#include "bench/rows.h"

namespace ballast::bench {

// No rival draws the same numbers; numpy's fastest generator stands beside ours.
std::vector<Case> random_rows() {
  const Operand key = of("i64", {2}), large = f32({4096, 1024});
  const Attrs shape = {{"shape", std::vector<int64_t>{4096, 1024}}};
  std::vector<Case> rows;
  for (const char* op : {"random_bits", "random_uniform", "random_normal", "truncated_normal"}) {
    rows.push_back({std::string(op) + "_4096x1024", op, shape, {key}});
  }
  rows.push_back(
      {"randint_1024x1024",
       "randint",
       {{"shape", std::vector<int64_t>{1024, 1024}}, {"low", int64_t{0}}, {"high", int64_t{1000}}},
       {key}});
  rows.push_back({"bernoulli_4096x1024", "bernoulli", shape, {key}});
  rows.push_back({"dropout_4096x1024", "dropout", {{"keep_prob", 0.9}}, {large, key}});
  rows.push_back(
      {"random_permutation_65536", "random_permutation", {{"n", int64_t{65536}}}, {key}});
  for (Case& row : rows) row.is_compared = false;
  return rows;
}

}  // namespace ballast::bench
