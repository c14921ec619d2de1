// How far a program advances the state of a generator it draws from, in blocks of random numbers
// (random_advance): known from its text, but for a while loop, and a checkpoint, which draws twice.
#pragma once

#include "frontend/program/program.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace ballast {

// By variable that is the state `state` advanced: by how many blocks.
constexpr int64_t kUnknownBlocks = -1;
std::unordered_map<const Variable*, int64_t> advances_of(const Program& program,
                                                         const Variable* state);

// An equation's operand and result number that are the state before and after.
struct Advance {
  size_t input, output;
  int64_t blocks;  // 0: handed on as it is
};
std::vector<Advance> advances_of(const Equation& equation, const Variable* state);

}  // namespace ballast
