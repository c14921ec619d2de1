// Random numbers as Halide expressions: Philox4x32-10 (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011) and the maps from its 32-bit words to distributions. Plain integer and
// IEEE arithmetic with every fma spelled out, so that all devices give the same bits. Stateless.
#pragma once

#include <Halide.h>

#include <array>
#include <string>
#include <vector>

namespace ballast::kernels {

using PhiloxWords = std::array<Halide::Expr, 4>;  // u32

// The counter (u32s) of block `block` (i32, not negative) of the state {seed, offset} (i64s) and
// the stream given in two halves (i32): {offset + block, stream}, each 64 bits with the low word
// first.
PhiloxWords philox_counter(const Halide::Expr& offset, const Halide::Expr& stream_low,
                           const Halide::Expr& stream_high, const Halide::Expr& block);

// The words of counters that are functions of `vars`; the key is `seed` (i64). A round's two
// products are a stage of their own, for the user to schedule: written into the four words of the
// last round, each would be there many times.
class Philox {
 public:
  Philox(const std::string& name, const std::vector<Halide::Var>& vars, const PhiloxWords& counter,
         const Halide::Expr& seed);
  const PhiloxWords& words() const { return words_; }  // at `vars`
  std::vector<Halide::Func>& products() { return products_; }

 private:
  std::vector<Halide::Func> products_;
  PhiloxWords words_;
};

// The upper 24 bits as an i32; times 2^-24 it is uniform in [0, 1).
Halide::Expr upper_24(const Halide::Expr& word);
// Two independent standard normals from two words: Box and Muller's method.
std::array<Halide::Expr, 2> normal_pair(const Halide::Expr& a, const Halide::Expr& b);
// A standard normal under the condition of lying in [-2, 2]: its inverse distribution function,
// with the inverse erf of Giles (2010).
Halide::Expr truncated_normal(const Halide::Expr& word);
// floor(word * count / 2^32) for a u32 count.
Halide::Expr below(const Halide::Expr& count, const Halide::Expr& word);

}  // namespace ballast::kernels
