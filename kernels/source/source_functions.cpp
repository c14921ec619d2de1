#include "kernels/source/source_functions.h"

#include "kernels/source/replace_text.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <string_view>

namespace ballast::kernels {
namespace {

// Bodies are OpenCL C. `portable` is for FLOATS, with INTS and WORDS of as many lanes; `avx512` for
// float16, where the compiler has the instructions. There other types go through a float16 too: an
// element has the same bits whatever it is in. A function of integers is portable only: of INTS,
// with WORDS unsigned, and ANY(condition).
struct Function {
  std::string_view name;
  std::array<std::string_view, 3> parameters;
  std::string_view portable, avx512;
};

constexpr std::string_view kCondition =
    "#if defined(__AVX512F__) && defined(__AVX512DQ__)\n"
    "#if __has_builtin(__builtin_ia32_rangeps512_mask) && \\\n"
    "    __has_builtin(__builtin_ia32_scalefps512_mask) && \\\n"
    "    __has_builtin(__builtin_ia32_getexpps512_mask) && \\\n"
    "    __has_builtin(__builtin_ia32_getmantps512_mask) && \\\n"
    "    __has_builtin(__builtin_ia32_permvarsf512) && \\\n"
    "    __has_builtin(__builtin_ia32_vpermi2varps512)\n"
    "#define BALLAST_AVX512\n"
    "#endif\n"
    "#endif\n";

// exp and pow are value 2^floor(whole). With AVX-512 `whole` counts in sixteenths, and a register
// holds their powers: a polynomial of degree 3 does, 11 instructions for exp where portably 14 are.
constexpr Function kFunctions[] = {
    // x, or what has the same exponential and keeps `whole` in the limits of ballast_scale.
    {"ballast_exp_limited",
     {"x"},
     "  x = x < -174.0f ? (FLOATS)(-174.0f) : x;\n"
     "  return x > 89.0f ? (FLOATS)(89.0f) : x;\n",
     "  return x;\n"},
    // x factor as a number of steps, in the low bits of 1.5 2^23 (2^19 with sixteenths); portably
    // with the 254 that ballast_scale wants.
    {"ballast_exp_sum",
     {"x", "factor"},
     "  return fma(x, factor, (FLOATS)(12583166.0f));\n",
     "  return fma(x, factor, (float16)(786432.0f));\n"},
    {"ballast_exp_whole", {"sum"}, "  return sum - 12583166.0f;\n", "  return sum - 786432.0f;\n"},
    // exp(rest), times the sixteenths of `sum`. The largest relative error of the polynomial made
    // least, 3e-9; 9e-9 that of the short one. Where x is infinite or huge, `rest` may be anything,
    // and is limited to 1/2 (of a NaN too: then `whole` is another).
    {"ballast_exp_value",
     {"rest", "sum"},
     "  FLOATS square = rest * rest;\n"
     "  FLOATS low = fma(rest, (FLOATS)(0.49999994f), (FLOATS)(1.0f));\n"
     "  FLOATS middle = fma(rest, (FLOATS)(0.0416682921f), (FLOATS)(0.166665211f));\n"
     "  FLOATS high = fma(rest, (FLOATS)(0.00138186989f), (FLOATS)(0.00836871564f));\n"
     "  low = fma(square, fma(square, high, middle), low);\n"
     "  return fma(rest, low, (FLOATS)(1.0f));\n",
     "  vector limit = (vector){} + 0.5f, near = __builtin_astype(rest, vector);\n"
     "  near = __builtin_ia32_rangeps512_mask(near, limit, 2, near, 65535, 4);\n"
     "  vector power = {1.0f, 1.0442737f, 1.0905077f, 1.1387886f,\n"
     "                  1.1892071f, 1.2418578f, 1.2968396f, 1.3542556f,\n"
     "                  1.4142135f, 1.4768262f, 1.5422108f, 1.6104903f,\n"
     "                  1.6817929f, 1.7562522f, 1.8340081f, 1.9152066f};\n"
     "  typedef int indices __attribute__((vector_size(64)));\n"
     "  power = __builtin_ia32_permvarsf512(power, __builtin_astype(sum, indices));\n"
     "  rest = __builtin_astype(near, float16);\n"
     "  float16 scale = __builtin_astype(power, float16);\n"
     "  float16 high = fma(rest, (float16)(0.166666667f), (float16)(0.5f));\n"
     "  return fma(scale, fma(rest * rest, high, rest), scale);\n"},
    // y 2^floor(whole), -252 <= whole <= 254, rounded once: overflows to infinity and underflows
    // through the denormals. Portably `whole` is whole, and `sum` carries 254 + whole in its low
    // bits.
    {"ballast_scale",
     {"y", "sum", "whole"},
     "  WORDS bits = as_WORDS(sum), first = (bits >> 1) << 23;\n"
     "  return y * as_FLOATS(first) * as_FLOATS((bits << 23) - first);\n",
     "  vector value = __builtin_astype(y, vector), power = __builtin_astype(whole, vector);\n"
     "  value = __builtin_ia32_scalefps512_mask(value, power, value, 65535, 4);\n"
     "  return __builtin_astype(value, float16);\n"},
    // 1 + y 2^floor(whole), -127 <= whole <= 128: infinite from 2^128 on.
    {"ballast_one_plus_scaled",
     {"y", "sum", "whole"},
     "  return fma(y, as_FLOATS((as_WORDS(sum) - 127u) << 23), (FLOATS)(1.0f));\n",
     "  vector value = __builtin_astype(y, vector), power = __builtin_astype(whole, vector);\n"
     "  value = __builtin_ia32_scalefps512_mask(value, power, value, 65535, 4);\n"
     "  return __builtin_astype(value, float16) + 1.0f;\n"},
    // exp(x) for x <= 0, or a little above, to 2e-7 and 2e-9 |x|; 0 below -87.7, as denormals are
    // slow. By 32 powers and degree 2, 9 instructions for 11.
    {"ballast_exp_of_negative",
     {"x"},
     "  x = x < -88.0f ? (FLOATS)(-88.0f) : x;\n"
     "  FLOATS sum = fma(x, (FLOATS)(1.44269504f), (FLOATS)(12583039.0f));\n"
     "  FLOATS rest = fma(sum - 12583039.0f, (FLOATS)(-0.693147182f), x);\n"
     "  FLOATS value = fma(rest, (FLOATS)(0.00831239858f), (FLOATS)(0.0418912819f));\n"
     "  value = fma(rest, value, (FLOATS)(0.166671194f));\n"
     "  value = fma(rest, value, (FLOATS)(0.499992238f));\n"
     "  value = fma(rest, fma(rest, value, (FLOATS)(1.0f)), (FLOATS)(1.0f));\n"
     "  return value * as_FLOATS(as_WORDS(sum) << 23);\n",
     "  float16 sum = fma(x, (float16)(1.44269504f), (float16)(393216.0f));\n"
     "  float16 whole = sum - 393216.0f;\n"
     "  float16 rest = fma(whole, (float16)(-0.693147182f), x);\n"
     "  vector low = {1.0f, 1.0218972f, 1.0442737f, 1.0671405f,\n"
     "                1.0905077f, 1.1143868f, 1.1387886f, 1.1637249f,\n"
     "                1.1892071f, 1.2152474f, 1.2418578f, 1.269051f,\n"
     "                1.2968396f, 1.3252367f, 1.3542556f, 1.38391f};\n"
     "  vector high = {1.4142135f, 1.4451808f, 1.4768262f, 1.5091645f,\n"
     "                 1.5422108f, 1.5759809f, 1.6104903f, 1.6457555f,\n"
     "                 1.6817929f, 1.7186193f, 1.7562522f, 1.7947091f,\n"
     "                 1.8340081f, 1.8741677f, 1.9152066f, 1.9571441f};\n"
     "  typedef int indices __attribute__((vector_size(64)));\n"
     "  low = __builtin_ia32_vpermi2varps512(low, __builtin_astype(sum, indices), high);\n"
     "  float16 scale = __builtin_astype(low, float16);\n"
     "  float16 slope = fma(rest, (float16)(0.5f), (float16)(1.0000147f));\n"
     "  scale = fma(scale * rest, slope, scale);\n"
     "  low = __builtin_astype(scale, vector), high = __builtin_astype(whole, vector);\n"
     "  low = __builtin_ia32_scalefps512_mask(low, high, low, 65535, 4);\n"
     "  return x < -87.7f ? (float16)(0.0f) : __builtin_astype(low, float16);\n"},
    // The fraction of x >= 0 in [sqrt(1/2), sqrt(2)), 1 of 0 and infinity. Denormals are scaled up
    // by 2^23.
    {"ballast_fraction",
     {"x"},
     "  WORDS bits = as_WORDS(x < 1.17549435e-38f ? x * 8388608.0f : x);\n"
     "  return as_FLOATS(bits - ((bits - 0x3f3504f3u) & 0xff800000u));\n",
     "  vector value = __builtin_astype(x, vector);\n"
     "  value = __builtin_ia32_getmantps512_mask(value, 4, value, 65535, 4);\n"
     "  uint16 bits = __builtin_astype(value, uint16);\n"
     "  return as_float16(bits - ((bits - 0x3f3504f3u) & 0xff800000u));\n"},
    // The exponent that goes with it: -infinity of 0; infinity and NaN are their own.
    {"ballast_exponent",
     {"x", "fraction"},
     "  WORDS bits = as_WORDS(x < 1.17549435e-38f ? x * 8388608.0f : x) - 0x3f3504f3u;\n"
     "  FLOATS whole = convert_FLOATS(as_INTS(bits) >> 23);\n"
     "  whole = x < 1.17549435e-38f ? whole - 23.0f : whole;\n"
     "  whole = x < INFINITY ? whole : x;\n"
     "  return x == 0.0f ? (FLOATS)(-INFINITY) : whole;\n",
     "  vector value = __builtin_astype(x, vector), part = __builtin_astype(fraction, vector);\n"
     "  value = __builtin_ia32_getexpps512_mask(value, value, 65535, 4);\n"
     "  part = __builtin_ia32_getexpps512_mask(part, part, 65535, 4);\n"
     "  return __builtin_astype(value - part, float16);\n"},
    // x^y of integers: by squaring, as long as a lane has bits of y left. Where y is negative its
    // parity counts, of 1 and -1; the power of others is 0.
    {"ballast_power",
     {"x", "y"},
     "  WORDS base = as_WORDS(x), left = as_WORDS(y), zero = (WORDS)(0), one = (WORDS)(1);\n"
     "  WORDS power = (y < (INTS)(0)) & ((base + one & ~(one + one)) != zero) ? zero : one;\n"
     "  left = y < (INTS)(0) ? left & one : left;\n"
     "  while (ANY(left != zero)) {\n"
     "    power = (left & one) != zero ? power * base : power;\n"
     "    base *= base;\n"
     "    left >>= one;\n"
     "  }\n"
     "  return as_INTS(power);\n",
     {}}};

bool is_of_floats(const Function& function) { return !function.avx512.empty(); }

// "type name_type(type x, type y) {\n"
std::string signature(const Function& function, const std::string& type) {
  std::string text = fmt::format("static inline {0} {1}_{0}(", type, function.name);
  for (std::string_view parameter : function.parameters) {
    if (!parameter.empty()) text += fmt::format("{} {}, ", type, parameter);
  }
  text.replace(text.size() - 2, 2, ") {\n");
  return text;
}

// The body for `type`, of 1 to 8 lanes, by that for float16.
std::string through_whole_vector(const Function& function, const std::string& lanes) {
  const int count = lanes.empty() ? 1 : std::stoi(lanes);
  std::string call = fmt::format("  return {}_float16(", function.name);
  for (std::string_view parameter : function.parameters) {
    if (parameter.empty()) continue;
    std::string copies(parameter);
    for (int i = 1; count > 1 && i < 16 / count; ++i) copies += fmt::format(", {}", parameter);
    call += fmt::format("(float16)({}), ", copies);
  }
  call.replace(call.size() - 2, 2, ")");
  return fmt::format("{}.s{};\n", call, std::string_view("01234567").substr(0, count));
}

std::string definition_of_integers(const Function& function, const std::string& type) {
  const size_t lanes = type.find_first_of("0123456789");
  std::string body(function.portable);
  replace_all(body, "INTS", type);
  replace_all(body, "WORDS", type[0] == 'u' ? type : "u" + type);
  // Of a scalar condition `any` reads the sign.
  replace_all(body, "ANY(", lanes == std::string::npos ? "(" : "any(");
  return fmt::format("{}{}}}\n", signature(function, type), body);
}

std::string definition(const Function& function, const std::string& type) {
  if (!is_of_floats(function)) return definition_of_integers(function, type);
  const std::string lanes = type.substr(std::string_view("float").size());
  std::string portable(function.portable);
  replace_all(portable, "FLOATS", type);
  replace_all(portable, "INTS", "int" + lanes);
  replace_all(portable, "WORDS", "uint" + lanes);
  const std::string avx512 =
      type == "float16"
          ? fmt::format("  typedef float vector __attribute__((vector_size(64)));\n{}",
                        function.avx512)
          : through_whole_vector(function, lanes);
  return fmt::format("{}#ifdef BALLAST_AVX512\n{}#else\n{}#endif\n}}\n", signature(function, type),
                     avx512, portable);
}

}  // namespace

void define_functions(std::string& text) {
  bool needs_condition = false;
  for (const Function& function : kFunctions) {
    const std::string call = fmt::format("{}(", function.name);
    std::set<std::string> types;
    for (size_t at = 0; (at = text.find(call, at)) != std::string::npos;) {
      const std::string type = declared_at(text, at).type;
      types.insert(type);
      at += function.name.size();
      text.insert(at, "_" + type);
    }
    if (types.empty()) continue;
    std::string definitions;
    if (is_of_floats(function)) {
      needs_condition = true;
      types.erase("float16");  // comes first, as others call it
      definitions = definition(function, "float16");
    }
    for (const std::string& type : types) definitions += definition(function, type);
    text.insert(text.find("\n// Address spaces") + 1, definitions);
  }
  if (needs_condition) text.insert(0, kCondition);
}

}  // namespace ballast::kernels
