#include "device/packed_scalars.h"

#include "device/kernel_parameter.h"

#include <fmt/format.h>

#include <string_view>

namespace ballast::device {
namespace {

constexpr size_t kFewest = 2;  // scalars that are worth a vector

bool is_packed(const KernelParameter& parameter) {
  const std::string& type = parameter.type;
  return !parameter.is_pointer && (type == "int" || type == "uint" || type == "float");
}

// "const float _a = as_float(_packed0.s3);"
std::string unpacked(const KernelParameter& parameter, size_t number) {
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
  for (const KernelParameter& parameter :
       parse_parameters(text.substr(open + 1, close - open - 1))) {
    if (is_packed(parameter)) {
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
