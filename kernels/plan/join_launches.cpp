#include "kernels/plan/join_launches.h"

#include "device/error.h"
#include "kernels/source/launch_source.h"
#include "kernels/source/replace_text.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <mutex>
#include <string>

namespace ballast::kernels {
namespace {

using device::Arg;
using device::Launch;

// How the groups of launches of different kernels become groups of one.
enum class Joining { kBeside, kAfter };

// A part's group, given its number along the first dimension and how many there are.
std::string part_call(const std::string& body, const char* number, const char* count,
                      const std::string& arguments) {
  return call_of(body, {number, "get_group_id(1)", "get_group_id(2)"},
                 {count, "get_num_groups(1)", "get_num_groups(2)"}, arguments);
}

// Whether `part`, the last, takes its argument i from a later element on.
bool begins_later(const Launch& part, size_t i, const std::vector<int64_t>& begins) {
  const Arg& arg = part.args[i];
  return arg.kind == Arg::Kind::kBuffer && arg.slot < begins.size() && begins[arg.slot] != 0;
}

device::SourcePtr make_joined(const std::vector<Launch>& parts, Joining joining,
                              const std::string& entry, const std::vector<int64_t>& begins) {
  device::StitchUnit unit;
  for (const Launch& part : parts) unit.add(*part.source);
  const bool is_beside = joining == Joining::kBeside;
  std::string text = function_text(unit), parameters, calls, starts;
  for (size_t k = 0; k < parts.size(); ++k) {
    const Launch& part = parts[k];
    const device::KernelFunction& function = unit.kernel(*part.source, part.kernel);
    const std::string body = body_name(*part.source);
    replace_all(text, function.name + "(", body + "(");
    std::string arguments;
    for (size_t i = 0; i < part.args.size(); ++i) {
      const device::KernelParameter& parameter = function.parameters[i];
      if (part.args[i].kind == Arg::Kind::kLocal) {
        arguments += ", (__local void*)_shared";
        continue;
      }
      const std::string name = fmt::format("_a{}_{}", k, i);
      parameters += parameter.is_pointer ? fmt::format("__global {}* {}, ", parameter.type, name)
                                         : fmt::format("{} {}, ", parameter.type, name);
      arguments += ", " + name;
      if (k + 1 == parts.size() && begins_later(part, i, begins)) {
        starts += fmt::format("uint _begin{}, ", i);
        arguments += fmt::format(" + _begin{}", i);
      }
    }
    if (!is_beside) {
      calls += "  " + part_call(body, "get_group_id(0)", "get_num_groups(0)", arguments);
    } else if (k == 0) {
      calls += "  if (get_group_id(0) < _first)\n    " +
               part_call(body, "get_group_id(0)", "_first", arguments) + "  else\n";
    } else {
      calls += "    " +
               part_call(body, "get_group_id(0) - _first", "get_num_groups(0) - _first", arguments);
    }
  }
  if (is_beside) parameters += "uint _first, " + starts;
  return device::make_source(
      text + fmt::format("__kernel void {}({}__local ulong16* _shared) {{\n{}}}\n", entry,
                         parameters, calls),
      parts[0].source->options, /*packs_scalars=*/true);
}

Launch join(const std::vector<Launch>& parts, Joining joining,
            const std::vector<int64_t>& begins = {}) {
  static std::mutex mutex;
  static std::map<std::string, device::SourcePtr> sources;
  Launch joined = parts[0];
  joined.kernel = (joining == Joining::kBeside ? "beside" : "after") + parts[0].kernel;
  joined.args.clear();
  joined.bytes = 0;
  Arg shared;
  std::string key = joined.kernel;
  for (const Launch& part : parts) {
    key += part.source->id;
    joined.bytes += part.bytes;
    if (part.label != parts[0].label) joined.label += " + " + part.label;
    for (const Arg& arg : part.args) {
      if (arg.kind != Arg::Kind::kLocal) {
        joined.args.push_back(arg);
      } else if (arg.bits >= shared.bits) {
        shared = arg;
      }
    }
  }
  if (joining == Joining::kBeside) joined.args.push_back(scalar(groups_of(parts[0], 0)));
  for (size_t i = 0; i < parts.back().args.size(); ++i) {
    if (!begins_later(parts.back(), i, begins)) continue;
    key += fmt::format(",{}", i);
    joined.args.push_back(scalar(begins[parts.back().args[i].slot]));
  }
  joined.args.push_back(shared);
  std::lock_guard<std::mutex> lock(mutex);
  device::SourcePtr& source = sources[key];
  if (!source) source = make_joined(parts, joining, joined.kernel, begins);
  joined.source = source;
  return joined;
}

}  // namespace

Launch join_beside(const Launch& first, const Launch& second, const std::vector<int64_t>& begins) {
  Launch joined = join({first, second}, Joining::kBeside, begins);
  joined.global[0] += second.global[0];
  return joined;
}

Launch join_after(const std::vector<Launch>& launches) {
  for (const Launch& launch : launches) {
    if (launch.global != launches[0].global || launch.local != std::array<uint64_t, 3>{1, 1, 1}) {
      device::fail(device::Code::kInternal, "[{}] has other groups than {}", launch.label,
                   launches[0].label);
    }
  }
  return join(launches, Joining::kAfter);
}

}  // namespace ballast::kernels
