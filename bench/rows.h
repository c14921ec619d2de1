// The shapes that are measured: those of the programs this project grew from (a dense net of
// 784-512-512-10 at batch 64, a linear regression of 32x10, a dense 1024 layer, a vision
// transformer of 256 wide with 8 heads over 196 patches), odd ones, and large ones.
//
// A row is a line in bench/rows/<family>.cpp: name, op, attributes, inputs. The rivals find out by
// themselves whether they have the op.
#pragma once

#include "bench/case.h"

namespace ballast::bench {

// Written out in ops, which compiles to one kernel; beside it the ops one by one.
Case chain(const std::string& name, std::vector<Operand> inputs, std::vector<Step> steps);

std::vector<Case> matmul_rows();
std::vector<Case> pointwise_rows();
std::vector<Case> reduce_rows();
std::vector<Case> softmax_rows();
std::vector<Case> norm_rows();
std::vector<Case> conv_rows();
std::vector<Case> attention_rows();
std::vector<Case> shape_rows();
std::vector<Case> random_rows();
std::vector<Case> optimizer_rows();

std::vector<Case> all_rows();

}  // namespace ballast::bench
