#include "device/packed_scalars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace ballast::device {
namespace {

constexpr size_t kFewest = 2;  // scalars that are worth a vector

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// "const int _extent": the type without const, and the name; a type of none for pointers.
struct Parameter {
  std::string text, type, name;

  explicit Parameter(std::string given) : text(std::move(given)) {
    if (text.find('*') != std::string::npos) return;
    std::vector<std::string> words;
    for (size_t i = 0; i < text.size();) {
      const size_t start = i;
      while (i < text.size() && is_word(text[i])) ++i;
      if (i == start) {
        ++i;
      } else if (text.compare(start, i - start, "const") != 0) {
        words.push_back(text.substr(start, i - start));
      }
    }
    if (words.size() != 2) return;
    type = words[0];
    name = words[1];
  }

  bool is_packed() const { return type == "int" || type == "uint" || type == "float"; }
};

std::vector<Parameter> parse_parameters(const std::string& list) {
  std::vector<Parameter> parameters;
  for (size_t from = 0; from <= list.size();) {
    const size_t comma = std::min(list.find(',', from), list.size());
    parameters.emplace_back(list.substr(from, comma - from));
    from = comma + 1;
  }
  return parameters;
}

// "const float _a = as_float(_packed0.s3);"
std::string unpacked(const Parameter& parameter, size_t number) {
  const std::string lane =
      fmt::format("_packed{}.s{:x}", number / kPackedLanes, number % kPackedLanes);
  return fmt::format(" const {} {} = as_{}({});\n", parameter.type, parameter.name, parameter.type,
                     lane);
}

// Rewrites the kernel whose parameters begin at `open`.
void pack_kernel(std::string& text, size_t open) {
  const size_t close = text.find(')', open), body = text.find('{', close);
  if (close == std::string::npos || body == std::string::npos) return;
  std::string kept, declarations;
  size_t count = 0;
  for (const Parameter& parameter : parse_parameters(text.substr(open + 1, close - open - 1))) {
    if (parameter.is_packed()) {
      declarations += unpacked(parameter, count++);
    } else {
      kept += (kept.empty() ? "" : ",") + parameter.text;
    }
  }
  if (count < kFewest) return;
  for (size_t i = 0; i * kPackedLanes < count; ++i) {
    kept += fmt::format("{} const int16 _packed{}", kept.empty() ? "" : ",", i);
  }
  text.insert(body + 1, "\n" + declarations);
  text.replace(open + 1, close - open - 1, kept);
}

}  // namespace

std::string pack_scalars(const std::string& text) {
  constexpr std::string_view kKernel = "__kernel void ";
  std::string packed = text;
  for (size_t at = 0; (at = packed.find(kKernel, at)) != std::string::npos;) {
    at = packed.find('(', at);
    if (at == std::string::npos) break;
    pack_kernel(packed, at);
  }
  return packed;
}

PackedArguments::PackedArguments(const Launch& launch) {
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const Arg& arg = launch.args[i];
    if (arg.kind == Arg::Kind::kScalar && arg.size == sizeof(uint32_t)) packed.push_back(i);
  }
  if (!launch.source->packs_scalars || packed.size() < kFewest) packed.clear();
  first_vector = static_cast<uint32_t>(launch.args.size() - packed.size());
  size_t lane = 0, kept = 0;
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const bool is_packed = lane < packed.size() && packed[lane] == i;
    const size_t index = is_packed ? first_vector + lane++ / kPackedLanes : kept++;
    indices.push_back(static_cast<uint32_t>(index));
  }
}

}  // namespace ballast::device
