#include "kernels/plan/blocks.h"

#include <algorithm>

namespace ballast::kernels {

double block_ns(const BlockedProduct& product, const Block& block) {
  constexpr double kLaunchNs = 4000;
  constexpr double kMultiplyAddNs = 1 / 200.0;  // of a unit
  // A group waits for memory and for its items whenever it brings steps, which others fill.
  constexpr double kWaitNs = 400.0 / kBlockSteps;
  const auto turns = static_cast<double>(ceil_div(product.groups(block), kBlockUnits));
  const double sums = static_cast<double>(block.rows) * static_cast<double>(block.rows);
  const double step_ns = std::max(turns * sums * kMultiplyAddNs * block.cost, kWaitNs);
  return kLaunchNs + static_cast<double>(product.steps) * step_ns;
}

const Block& choose_block(const BlockedProduct& product) {
  return *std::min_element(kBlocks.begin(), kBlocks.end(), [&](const Block& a, const Block& b) {
    return block_ns(product, a) < block_ns(product, b);
  });
}

}  // namespace ballast::kernels
