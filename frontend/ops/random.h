// Random numbers and dropout. What takes a key (i64[2]: seed, offset) is a pure function of it;
// what takes a generator advances it. docs/ops.md says which numbers come out.
#pragma once

#include "frontend/tensor/generator.h"
#include "frontend/tensor/operand.h"

#include <vector>

namespace ballast::ops {

Tensor random_bits(const Operand& key, const Shape& shape);  // i32: all 32 bits
// In [low, high).
Tensor random_uniform(const Operand& key, const Shape& shape, double low = 0, double high = 1);
Tensor random_uniform(const Shape& shape, double low = 0, double high = 1,
                      Generator generator = default_generator(), Where where = Where::here());
Tensor random_normal(const Operand& key, const Shape& shape, double mean = 0, double stddev = 1);
Tensor random_normal(const Shape& shape, double mean = 0, double stddev = 1,
                     Generator generator = default_generator(), Where where = Where::here());
// Within two standard deviations of the mean.
Tensor truncated_normal(const Operand& key, const Shape& shape, double mean = 0, double stddev = 1);
Tensor truncated_normal(const Shape& shape, double mean = 0, double stddev = 1,
                        Generator generator = default_generator(), Where where = Where::here());
// i32 in [low, high).
Tensor randint(const Operand& key, const Shape& shape, int64_t low, int64_t high);
Tensor randint(const Shape& shape, int64_t low, int64_t high,
               Generator generator = default_generator(), Where where = Where::here());
// bool: true with probability p.
Tensor bernoulli(const Operand& key, const Shape& shape, double p = 0.5);
Tensor bernoulli(const Shape& shape, double p = 0.5, Generator generator = default_generator(),
                 Where where = Where::here());
// Of each element of p (f32).
Tensor bernoulli_of(const Operand& key, const Operand& p);
// i32: the numbers 0..n-1 in random order.
Tensor random_permutation(const Operand& key, int64_t n);
Tensor random_permutation(int64_t n, Generator generator = default_generator(),
                          Where where = Where::here());
// The key after `blocks` blocks of four numbers.
Tensor random_advance(const Operand& key, int64_t blocks);

// x / keep_prob with probability keep_prob, else 0. The gradient makes the mask anew from the key.
Tensor dropout_with(const Operand& x, const Operand& key, double keep_prob);
// {y, mask (bool)}: MindSpore's Dropout.
std::vector<Tensor> dropout_with_mask(const Operand& x, const Operand& key, double keep_prob);
// Zeroes with probability p, as MindSpore's functional dropout; for 0 and 1 nothing is drawn.
Tensor dropout(const Operand& x, double p = 0.5, Generator generator = default_generator());

}  // namespace ballast::ops
