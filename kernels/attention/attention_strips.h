// Plans attention on GPUs by strips of queries: products of blocks (matmul_blocks.h) around passes
// over the scores of a strip, which are the largest part of the workspace: a constant, or as many
// rows as a block has. Plain functions; any thread.
#pragma once

#include "kernels/attention/attention.h"

namespace ballast::kernels {

// No extent is 0, and there is enough to share out.
bool suits_strips(const AttentionConfig& config);

// Scores that are in memory at a time, where a strip needs no more: 64 MiB.
constexpr int64_t kStripScores = int64_t{1} << 24;

// As plan_attention and plan_attention_grad. What strips give is added up in their order.
Plan plan_attention_strips(DeviceClass device_class, const AttentionConfig& config,
                           int64_t most_scores = kStripScores);
Plan plan_attention_grad_strips(const AttentionConfig& config, int64_t most_scores = kStripScores);

}  // namespace ballast::kernels
