// What plans of poolings have in common: a question, and parameters.
#pragma once

#include "kernels/plan/halide_runtime.h"
#include "kernels/pool/pool.h"

#include <vector>

namespace ballast::kernels {

inline bool is_padded(const PoolConfig& c) { return c.top + c.bottom + c.left + c.right != 0; }

inline std::vector<HostArg> pool_numbers(const std::vector<int64_t>& values) {
  std::vector<HostArg> args;
  for (const int64_t value : values) args.emplace_back(checked_int32(value));
  return args;
}

// What an average's count depends on beside the geometry.
inline void add_ends(std::vector<HostArg>& args, const PoolConfig& c) {
  args.insert(args.end(),
              {checked_int32(c.bottom), checked_int32(c.right), int32_t{c.counts_padding}});
}

// The same, and one over the count where all windows have one, else 0: what AveragingGenerator
// takes (pool_recipe.h).
inline void add_counts(std::vector<HostArg>& args, const PoolConfig& c) {
  // Windows do not reach beyond what is padded, so counting the padding makes all counts equal.
  const bool is_uniform = c.counts_padding || !is_padded(c);
  add_ends(args, c);
  args.emplace_back(is_uniform ? 1.0f / static_cast<float>(c.kernel_h * c.kernel_w) : 0.0f);
}

}  // namespace ballast::kernels
