// Random numbers as pure functions of a state tensor key = i64[2] {seed, offset} and a stream.
//
// Element i (in row-major order) comes from word i % 4 of counter block i / 4, on every device and
// for every way of splitting the work. Block j of (key, stream) is Philox4x32-10 (Salmon et al.,
// SC 2011) of the key {low, high word of seed} and the counter {low, high word of offset + j, low,
// high word of stream}. A call over n elements uses the blocks [offset, offset + ceil(n / 4)); who
// draws again advances the offset by as many (plan_random_advance). Streams are independent.
//
// With b a word and u = (b >> 8) 2^-24 in [0, 1), all results follow from +, *, fma, sqrt and
// integers alone, in a fixed order, so they too are the same bits everywhere.
#pragma once

#include "kernels/plan/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// input key; output i32[n]: the words.
Plan plan_random_bits(DeviceClass device_class, int64_t n, int64_t stream);
// input key; output i32[n] in [low, high), low < high: low + floor(b (high - low) / 2^32), whose
// probabilities differ from equal ones by less than 2^-32.
Plan plan_random_integers(DeviceClass device_class, int64_t n, int64_t stream, int32_t low,
                          int32_t high);
// input key; output f32[n] in [low, high): fma(u, high - low, low), where that rounds to high the
// float before it.
Plan plan_random_uniform(DeviceClass device_class, int64_t n, int64_t stream, float low,
                         float high);
// input key; output f32[n]: mean + stddev z. Words 2k and 2k + 1 of a block give two z by Box and
// Muller's method, with an absolute error below 1e-6; |z| < 6.8.
Plan plan_random_normal(DeviceClass device_class, int64_t n, int64_t stream, float mean,
                        float stddev);
// The same under the condition |z| <= 2, by the inverse of the distribution function (Giles 2010),
// with an absolute error below 2e-6.
Plan plan_truncated_normal(DeviceClass device_class, int64_t n, int64_t stream, float mean,
                           float stddev);
// input key; output bool[n]: u < p.
Plan plan_bernoulli(DeviceClass device_class, int64_t n, int64_t stream, double p);
// inputs key, p f32[n]; output bool[n]: u < p_i (false for NaN).
Plan plan_bernoulli_tensor(DeviceClass device_class, int64_t n, int64_t stream);
// inputs x f32[n], key; output x / keep_prob where u < keep_prob, else 0 whatever x is.
Plan plan_dropout(DeviceClass device_class, int64_t n, int64_t stream, double keep_prob);
// input key; output i32[n]: a permutation of 0..n-1, all equally likely but for the words' 32 bits.
// Uses one block of the state, O(n) work and memory: with {k0, k1} its first words as a key,
// element i draws word (i % 64) / 16 of block {i / 64 * 16 + i % 16, 0, step, 0}. In step 0 number
// i goes to bucket floor(word * permutation_buckets(n) / 2^32), behind those before it; buckets lie
// one after the other. In step 1, for each place i of a bucket that begins at s, in order: what
// lies at s + floor(word * (i - s + 1) / 2^32) goes to i, and the number that was at i goes there.
Plan plan_random_permutation(DeviceClass device_class, int64_t n, int64_t stream);
// input key; output key with `blocks` added to its offset.
Plan plan_random_advance(DeviceClass device_class, int64_t blocks);

// The buckets of plan_random_permutation.
int64_t permutation_buckets(int64_t n);

}  // namespace ballast::kernels
