#include "kernels/optimizer/merge_launches.h"

#include "device/error.h"
#include "device/stitch_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

namespace ballast::kernels {
namespace {

using device::Arg;
using device::Launch;

// Arguments that all launches have in common are passed once; what a launch has of its own,
// kMergedLaunches times.
using IsShared = std::vector<bool>;

// An expression that is `items[_t]` for the tensor number _t.
std::string selected(const std::vector<std::string>& items, size_t first = 0) {
  if (items.size() == 1) return items[0];
  const size_t half = items.size() / 2;
  return fmt::format("(_t < {} ? {} : {})", first + half,
                     selected({items.begin(), items.begin() + half}, first),
                     selected({items.begin() + half, items.end()}, first + half));
}

// The text of the functions, without the types by which stitching lets pointers alias: here they
// all come from one kernel.
std::string function_text(const device::StitchUnit& unit, const std::string& name,
                          const std::string& new_name) {
  std::string text = unit.text();
  while (text.find("__attribute__((may_alias)) _ba_") < text.find('\n')) {
    text.erase(0, text.find('\n') + 1);
  }
  const auto replace_all = [&](const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  };
  replace_all("_ba_", "");
  replace_all(name + "(", new_name + "(");
  return text;
}

device::SourcePtr make_merged(const Launch& launch, const IsShared& is_shared,
                              const std::string& entry) {
  device::StitchUnit unit;
  unit.add(*launch.source);
  const device::KernelFunction& function = unit.kernel(*launch.source, launch.kernel);
  // Stitching tells functions apart by name: the source's id makes it unique.
  const std::string body = "_one_" + launch.source->id;
  std::string parameters, arguments;
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const device::KernelParameter& parameter = function.parameters[i];
    if (launch.args[i].kind == Arg::Kind::kLocal) {
      parameters += "__local ulong16* _shared, ";
      arguments += ", (__local void*)_shared";
      continue;
    }
    const std::string type =
        parameter.is_pointer ? fmt::format("__global {}*", parameter.type) : parameter.type;
    std::vector<std::string> names;
    for (size_t k = 0; k < (is_shared[i] ? 1 : kMergedLaunches); ++k) {
      names.push_back(fmt::format("_a{}_{}", i, k));
      parameters += fmt::format("{} {}, ", type, names.back());
    }
    arguments += ", " + selected(names);
  }
  std::string number = "0";
  std::vector<std::string> starts = {"0"};
  for (size_t k = 1; k < kMergedLaunches; ++k) {
    starts.push_back(fmt::format("_start{}", k));
    parameters += fmt::format("uint {}{}", starts.back(), k + 1 < kMergedLaunches ? ", " : "");
    number += fmt::format(" + (_g >= {})", starts.back());
  }
  return device::make_source(
      function_text(unit, function.name, body) +
          fmt::format("__kernel void {}({}) {{\n  const uint _g = get_group_id(0);\n"
                      "  const int _t = {};\n  {}(_g - {}, 0, 0, get_local_id(0), 0, 0, "
                      "get_local_size(0), 1, 1, get_num_groups(0), 1, 1{});\n}}\n",
                      entry, parameters, number, body, selected(starts), arguments),
      launch.source->options, /*packs_scalars=*/true);
}

device::SourcePtr merged_source(const Launch& launch, const IsShared& is_shared,
                                const std::string& entry) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, IsShared>, device::SourcePtr> sources;
  std::lock_guard<std::mutex> lock(mutex);
  device::SourcePtr& source = sources[{launch.source->id + entry, is_shared}];
  if (!source) source = make_merged(launch, is_shared, entry);
  return source;
}

Arg scalar(uint64_t value) {
  Arg arg;
  arg.size = sizeof(uint32_t);
  arg.bits = value;
  return arg;
}

// `parts`: 2 to kMergedLaunches launches of one kernel.
Launch merge(const std::vector<const Launch*>& parts) {
  const Launch& first = *parts[0];
  IsShared is_shared(first.args.size());
  for (size_t i = 0; i < first.args.size(); ++i) {
    // Scalars that happen to be equal must not multiply the sources.
    is_shared[i] = first.args[i].kind != Arg::Kind::kScalar &&
                   std::all_of(parts.begin(), parts.end(), [&](const Launch* part) {
                     return part->args[i].slot == first.args[i].slot;
                   });
  }
  Launch merged;
  merged.kernel = "merged" + first.kernel;
  merged.source = merged_source(first, is_shared, merged.kernel);
  merged.label = fmt::format("{} x{}", first.label, parts.size());
  merged.local = first.local;
  // Launches that are not there have no groups; they are given the last one's arguments.
  const auto part = [&](size_t k) -> const Launch& {
    return *parts[std::min(k, parts.size() - 1)];
  };
  for (size_t i = 0; i < first.args.size(); ++i) {
    const bool is_single = is_shared[i] || first.args[i].kind == Arg::Kind::kLocal;
    for (size_t k = 0; k < (is_single ? 1 : kMergedLaunches); ++k) {
      merged.args.push_back(part(k).args[i]);
    }
  }
  uint64_t groups = 0;
  for (size_t k = 0; k < kMergedLaunches; ++k) {
    if (k > 0) merged.args.push_back(scalar(groups));
    if (k < parts.size()) groups += parts[k]->global[0] / parts[k]->local[0];
  }
  merged.global[0] = groups * merged.local[0];
  return merged;
}

}  // namespace

std::vector<Launch> merge_launches(const std::vector<Launch>& launches) {
  std::vector<std::vector<const Launch*>> batches;
  std::map<std::pair<std::string, std::string>, size_t> open;  // by source and kernel
  for (const Launch& launch : launches) {
    const bool is_line = launch.global[1] == 1 && launch.global[2] == 1;
    const auto key = std::pair(launch.source->id, launch.kernel);
    const auto found = open.find(key);
    if (is_line && found != open.end() && batches[found->second].size() < kMergedLaunches) {
      batches[found->second].push_back(&launch);
      continue;
    }
    if (is_line) open[key] = batches.size();
    batches.push_back({&launch});
  }
  std::vector<Launch> result;
  for (const auto& batch : batches) {
    result.push_back(batch.size() == 1 ? *batch[0] : merge(batch));
  }
  return result;
}

}  // namespace ballast::kernels
