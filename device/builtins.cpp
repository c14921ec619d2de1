#include "device/builtins.h"

#include "device/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace ballast::device {
namespace {

struct Type {
  const char *name, *same_size_signed, *same_size_unsigned;
};

constexpr Type kFloat = {"float", "int", "uint"}, kDouble = {"double", "long", "ulong"};
const std::vector<Type> kFloats = {kFloat, kDouble};
const std::vector<Type> kIntegers = {{"char", "char", "uchar"},     {"uchar", "char", "uchar"},
                                     {"short", "short", "ushort"},  {"int", "int", "uint"},
                                     {"ushort", "short", "ushort"}, {"uint", "int", "uint"},
                                     {"long", "long", "ulong"},     {"ulong", "long", "ulong"}};
constexpr std::array kWidths = {"", "2", "3", "4", "8", "16"};

enum class On : uint8_t { kFloats, kIntegers, kAll };

// The result, then the parameters. T: the type; I, U: signed and unsigned integers of its size; R:
// what a comparison gives, which is I for vectors and int for scalars; B: int.
struct Family {
  std::vector<std::string_view> names;
  std::vector<std::string_view> signatures;
  On on;
};

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {{"acos",  "acosh", "asin", "asinh", "atan",  "atanh", "cbrt",  "ceil",
        "cos",   "cosh",  "erf",  "erfc",  "exp",   "exp2",  "exp10", "expm1",
        "fabs",  "floor", "log",  "log2",  "log10", "log1p", "rint",  "round",
        "rsqrt", "sin",   "sinh", "sqrt",  "tan",   "tanh",  "trunc"},
       {"TT"},
       On::kFloats},
      {{"atan2", "copysign", "fmax", "fmin", "fmod", "pow"}, {"TTT"}, On::kFloats},
      {{"fma", "mad"}, {"TTTT"}, On::kFloats},
      {{"isequal", "isgreater", "isgreaterequal", "isless", "islessequal", "isnotequal"},
       {"RTT"},
       On::kFloats},
      {{"isfinite", "isinf", "isnan", "signbit"}, {"RT"}, On::kFloats},
      {{"max", "min"}, {"TTT"}, On::kAll},
      {{"clamp"}, {"TTTT"}, On::kAll},
      {{"select"}, {"TTTI", "TTTU"}, On::kAll},
      {{"abs"}, {"UT"}, On::kIntegers},
      {{"all", "any"}, {"BI"}, On::kIntegers},
      {{"clz", "popcount"}, {"TT"}, On::kIntegers},
      {{"add_sat", "mul_hi", "rotate", "sub_sat"}, {"TTT"}, On::kIntegers}};
  return all;
}

constexpr std::array kOfWorkItems = {"get_global_id", "get_global_offset", "get_global_size",
                                     "get_group_id",  "get_local_id",      "get_local_size",
                                     "get_num_groups"};
// Of 64 bits in global memory: names, and what follows the pointer.
constexpr std::array<std::pair<const char*, const char*>, 3> kAtomics = {
    {{"atom_cmpxchg", ", ulong, ulong"}, {"atom_inc", ""}, {"atom_xchg", ", ulong"}}};
constexpr const char* kOverloadable = "__attribute__((overloadable))";
constexpr const char* kPure = "__attribute__((overloadable, const))";

std::string typed(char letter, const Type& type, const char* width) {
  if (letter == 'B' || (letter == 'R' && *width == '\0')) return "int";
  if (letter == 'T') return std::string(type.name) + width;
  return std::string(letter == 'U' ? type.same_size_unsigned : type.same_size_signed) + width;
}

void declare(std::string& out, std::string_view name, std::string_view signature, const Type& type,
             const char* width) {
  out += fmt::format("{} {} {}(", typed(signature[0], type, width), kPure, name);
  for (size_t i = 1; i < signature.size(); ++i) {
    out += (i > 1 ? "," : "") + typed(signature[i], type, width);
  }
  out += ");\n";
}

void declare(std::string& out, std::string_view name, const Family& family) {
  // abs(x) of a char and of an uchar differ, select(a, b, c) of signed and unsigned ones too.
  for (const std::vector<Type>* types : {&kFloats, &kIntegers}) {
    if (family.on != On::kAll && (family.on == On::kFloats) != (types == &kFloats)) continue;
    for (const Type& type : *types) {
      for (const char* width : kWidths) {
        for (const std::string_view signature : family.signatures) {
          declare(out, name, signature, type, width);
        }
      }
    }
  }
}

// "convert_float16_rte": from every type of as many elements.
void declare_conversion(std::string& out, const std::string& name) {
  constexpr size_t kPrefix = 8;
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const auto end = std::find(name.begin() + kPrefix, name.end(), '_');
  const auto digits = std::find_if(name.begin() + kPrefix, end, is_digit);
  const std::string result(name.begin() + kPrefix, end), width(digits, end);
  for (const std::vector<Type>* types : {&kFloats, &kIntegers}) {
    for (const Type& type : *types) {
      out += fmt::format("{} {} {}({}{});\n", result, kPure, name, type.name, width);
    }
  }
}

// The names before parentheses.
std::set<std::string> called_names(const std::string& text) {
  std::set<std::string> names;
  for (size_t open = 0; (open = text.find('(', open)) != std::string::npos; ++open) {
    const std::string_view name = word_before(text, open);
    if (!name.empty()) names.emplace(name);
  }
  return names;
}

}  // namespace

std::optional<std::string> declare_builtins(const std::string& text) {
  if (text.find("half") != std::string::npos) return std::nullopt;
  const std::set<std::string> names = called_names(text);
  std::string out;
  for (const char* name : kOfWorkItems) {
    if (names.count(name)) out += fmt::format("size_t {} {}(uint);\n", kPure, name);
  }
  if (names.count("get_work_dim")) out += fmt::format("uint {} get_work_dim(void);\n", kPure);
  if (names.count("barrier")) {
    out += "void __attribute__((overloadable, convergent)) barrier(cl_mem_fence_flags);\n";
  }
  if (names.count("mem_fence")) {
    out += fmt::format("void {} mem_fence(cl_mem_fence_flags);\n", kOverloadable);
  }
  for (const auto& [name, values] : kAtomics) {
    if (names.count(name) == 0) continue;
    out += fmt::format("ulong {} {}(volatile __global ulong*{});\n", kOverloadable, name, values);
  }
  for (const Family& family : families()) {
    for (const std::string_view name : family.names) {
      if (names.count(std::string(name))) declare(out, name, family);
    }
  }
  for (const std::string& name : names) {
    if (name.rfind("convert_", 0) == 0) declare_conversion(out, name);
  }
  return out;
}

}  // namespace ballast::device
