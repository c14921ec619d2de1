// Blocks of rows x columns, as many of both, that work-groups of a GPU compute (blocked_sums.h):
// which one suits a product. Stateless.
#pragma once

#include "kernels/plan/plan.h"

#include <array>

namespace ballast::kernels {

struct Block {
  int64_t rows;
  double cost;  // of a multiply-add on a unit that has enough groups, relative
};
constexpr std::array<Block, 3> kBlocks = {{{128, 1}, {64, 1.25}, {32, 1.7}}};

// Steps that a group has in local memory at a time where it reads operands one by one.
constexpr int kBlockSteps = 16;

// Groups that a GPU computes at a time without one waiting for another, more or less.
constexpr int64_t kBlockUnits = 132;

struct BlockedProduct {
  int64_t rows, columns, products, steps;
  int64_t groups(const Block& block) const {
    return ceil_div(rows, block.rows) * ceil_div(columns, block.rows) * products;
  }
};

// A rough estimate; the figures are of an H100.
double block_ns(const BlockedProduct& product, const Block& block);
// That which is estimated to take least.
const Block& choose_block(const BlockedProduct& product);

}  // namespace ballast::kernels
