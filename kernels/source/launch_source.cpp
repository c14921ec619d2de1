#include "kernels/source/launch_source.h"

#include "kernels/source/replace_text.h"

#include <fmt/format.h>

namespace ballast::kernels {

std::string function_text(const device::StitchUnit& unit) {
  std::string text = unit.text();
  const std::string type = fmt::format("__attribute__((may_alias)) {}", device::kAliasingPrefix);
  while (text.find(type) < text.find('\n')) {
    text.erase(0, text.find('\n') + 1);
  }
  replace_all(text, device::kAliasingPrefix, "");
  return text;
}

std::string body_name(const device::Source& source) { return "_one_" + source.id; }

std::string call_of(const std::string& body, const Ids& group, const Ids& count,
                    const std::string& arguments) {
  return fmt::format(
      "{}({}, get_local_id(0), get_local_id(1), get_local_id(2), get_local_size(0), "
      "get_local_size(1), get_local_size(2), {}{});\n",
      body, fmt::join(group, ", "), fmt::join(count, ", "), arguments);
}

device::Arg scalar(uint64_t value) {
  device::Arg arg;
  arg.size = sizeof(uint32_t);
  arg.bits = value;
  return arg;
}

uint64_t groups_of(const device::Launch& launch, size_t dimension) {
  return launch.global[dimension] / launch.local[dimension];
}

}  // namespace ballast::kernels
