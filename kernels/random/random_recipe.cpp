#include "kernels/random/random_recipe.h"

#include "kernels/pointwise/pointwise_math.h"

namespace ballast::kernels {

using Halide::cast;
using Halide::Expr;
using Halide::Float;
using Halide::Func;
using Halide::Int;
using Halide::reinterpret;
using Halide::select;
using Halide::Tuple;
using Halide::UInt;
using Halide::Var;

namespace {

Expr u32(uint32_t value) { return Halide::Internal::make_const(UInt(32), value); }

Expr low_word(const Expr& wide) { return cast(UInt(32), wide); }
Expr high_word(const Expr& wide) { return cast(UInt(32), wide >> 32); }
Expr product(const Expr& a, const Expr& b) { return cast(UInt(64), a) * cast(UInt(64), b); }

// log(2^e (1 + m)) by the polynomial of Cephes' logf. Not log_f32, whose bits may change: what a
// state gives may not.
Expr log_of_parts(const Expr& exponent, const Expr& m) {
  const Expr z = m * m;
  const Expr p = polynomial(m, {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f,
                                -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                                2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f});
  const Expr tail = fma_f32(-0.5f, z, fma_f32(p * m, z, exponent * -2.12194440e-4f));
  return fma_f32(exponent, 0.693359375f, m + tail);
}

// log(1 - below) for 1 - below in [2^-126, 1], `value` being 1 - below rounded. Near 1 that has
// lost what `below` still knows.
Expr log_below_one(const Expr& value, const Expr& below) {
  const Expr bits = reinterpret(Int(32), value);
  const Expr fraction = reinterpret(Float(32), (bits & 0x007fffff) | 0x3f000000);
  const Expr is_low = lt(fraction, 0.707106781186547524f);
  const Expr exponent = cast<float>((bits >> 23) - select(is_low, 127, 126));
  const Expr m = select(is_low, fraction + fraction, fraction) - 1.0f;
  return log_of_parts(exponent, select(lt(below, 0.25f), below * -1.0f, m));
}

// `value` with its sign bit flipped where bit 1 of `quadrant` is set.
Expr flipped(const Expr& value, const Expr& quadrant) {
  return reinterpret(Float(32), reinterpret(UInt(32), value) ^ ((quadrant & u32(2)) << 30));
}

}  // namespace

// The words stay in the low halves of 64 bits, whatever is in the upper ones, from the first round
// to the last: a product then is one instruction and its upper half a shift, and vectors are
// neither widened nor narrowed in between.
Philox::Philox(const std::string& name, const std::vector<Var>& vars, const PhiloxWords& counter,
               const Expr& seed) {
  constexpr uint32_t kMultiplier[2] = {0xd2511f53u, 0xcd9e8d57u};
  constexpr uint32_t kWeyl[2] = {0x9e3779b9u, 0xbb67ae85u};
  constexpr uint32_t kRounds = 10;
  const auto wide = [](const Expr& word) { return cast(UInt(64), word); };
  const auto times = [&](const Expr& a, uint32_t b) { return (a & wide(u32(~0u))) * wide(u32(b)); };
  const std::vector<Expr> here(vars.begin(), vars.end());
  const std::array<Expr, 2> key = {low_word(seed), high_word(seed)};
  PhiloxWords c;
  for (size_t n = 0; n < c.size(); ++n) c[n] = wide(counter[n]);
  for (uint32_t round = 0; round < kRounds; ++round) {
    Func products(name + "_round" + std::to_string(round));
    products(vars) = Tuple(times(c[0], kMultiplier[0]), times(c[2], kMultiplier[1]));
    products_.push_back(products);
    const Expr first = products(here)[0], second = products(here)[1];
    c = {(second >> 32) ^ c[1] ^ wide(key[0] + u32(round * kWeyl[0])), second,
         (first >> 32) ^ c[3] ^ wide(key[1] + u32(round * kWeyl[1])), first};
  }
  for (size_t n = 0; n < c.size(); ++n) words_[n] = low_word(c[n]);
}

PhiloxWords philox_counter(const Expr& offset, const Expr& stream_low, const Expr& stream_high,
                           const Expr& block) {
  const Expr step = cast(UInt(32), block);
  const Expr sum = low_word(offset) + step;
  const Expr carried = high_word(offset) + select(sum < step, u32(1), u32(0));
  return {sum, carried, cast(UInt(32), stream_low), cast(UInt(32), stream_high)};
}

Expr upper_24(const Expr& word) { return cast<int32_t>(word >> 8); }

std::array<Expr, 2> normal_pair(const Expr& a, const Expr& b) {
  // u in (0, 1]: the smallest, 2^-33, gives the largest radius, 6.77.
  const auto unit = [](const Expr& word) { return fma_f32(cast<float>(word), 0x1p-32f, 0x1p-33f); };
  const Expr radius = sqrt(-2.0f * log_below_one(unit(a), unit(~a)));
  // The angle b / 2^32 of a turn: the nearest quarter and the rest, at most 1/8 of a turn.
  const Expr quarter = (b + u32(1u << 29)) >> 30;
  const Expr rest = reinterpret(Int(32), b - (quarter << 30));
  const Expr x = cast<float>(rest) * 1.46291807926715968e-9f;  // pi / 2^31
  const Expr z = x * x;
  // Cephes' polynomials.
  const Expr sine =
      fma_f32(polynomial(z, {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f}) * z, x, x);
  const Expr cosine = fma_f32(
      polynomial(z, {2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f}) * z, z,
      fma_f32(-0.5f, z, 1.0f));
  const Expr is_odd = (quarter & u32(1)) != u32(0);
  return {radius * flipped(select(is_odd, sine, cosine), quarter + u32(1)),
          radius * flipped(select(is_odd, cosine, sine), quarter)};
}

Expr truncated_normal(const Expr& word) {
  // Odd multiples of 2^-24 in (-1, 1), times the probability of [-2, 2].
  const Expr symmetric = cast<float>(upper_24(word) * 2 + (1 - (1 << 24))) * 0x1p-24f;
  const Expr x = symmetric * 0.954499736104f;
  // Here 1 - x^2 > 0.088, so that only the inner one of Giles' two polynomials is needed.
  const Expr w = -1.0f * log_below_one((1.0f - x) * (1.0f + x), x * x) - 2.5f;
  const Expr p =
      polynomial(w, {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f,
                     0.00021858087f, -0.00125372503f, -0.00417768164f, 0.246640727f, 1.50140941f});
  const Expr value = p * x * 1.41421356237f;
  return select(lt(2.0f, value), 2.0f, lt(value, -2.0f), -2.0f, value);
}

Expr below(const Expr& count, const Expr& word) { return high_word(product(count, word)); }

}  // namespace ballast::kernels
