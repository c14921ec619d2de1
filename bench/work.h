// How much an op must at least compute and move, for the roofline.
#pragma once

#include "bench/case.h"

#include <cstdint>
#include <vector>

namespace ballast::bench {

struct Work {
  double flops = 0;  // of multiply-adds only; 0 where memory is the limit in any case
  uint64_t read = 0, written = 0;
};

// `outputs`: shapes of the results.
Work work_of(const Case& c, uint64_t input_bytes, uint64_t output_bytes,
             const std::vector<std::vector<int64_t>>& outputs);

}  // namespace ballast::bench
