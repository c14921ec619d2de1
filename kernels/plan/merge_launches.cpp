#include "kernels/plan/merge_launches.h"

#include "kernels/source/launch_source.h"
#include "kernels/source/replace_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

namespace ballast::kernels {
namespace {

using device::Arg;
using device::Launch;

// How launches become one.
struct Form {
  size_t width;  // launches, at most
  GroupOrder order;
  // Arguments that all launches have in common are passed once; what a launch has of its own,
  // `width` times.
  std::vector<bool> is_shared;

  bool operator<(const Form& other) const {
    return std::tie(width, order, is_shared) < std::tie(other.width, other.order, other.is_shared);
  }
};

struct Numbers {
  std::string parameters;           // with a comma each
  std::vector<std::string> values;  // by launch
};

Numbers numbers_named(const std::string& name, size_t first, size_t width) {
  Numbers numbers{"", std::vector<std::string>(first, "0")};
  for (size_t k = first; k < width; ++k) {
    numbers.values.push_back(fmt::format("_{}{}", name, k));
    numbers.parameters += fmt::format("uint {}, ", numbers.values.back());
  }
  return numbers;
}

// An expression that is `items[_t]` for the tensor number _t.
std::string selected(const std::vector<std::string>& items, size_t first = 0) {
  if (items.size() == 1) return items[0];
  const size_t half = items.size() / 2;
  return fmt::format("(_t < {} ? {} : {})", first + half,
                     selected({items.begin(), items.begin() + half}, first),
                     selected({items.begin() + half, items.end()}, first + half));
}

// The call of `body` for group _g of all; appends what it needs to the parameters.
std::string group_call(const Form& form, const std::string& body, const std::string& arguments,
                       std::string& parameters) {
  std::string text = "  const uint _g = get_group_id(0);\n";
  if (form.order == GroupOrder::kOneByOne) {
    const Numbers starts = numbers_named("start", 1, form.width);
    parameters += starts.parameters;
    std::string number = "0";
    for (size_t k = 1; k < form.width; ++k)
      number += fmt::format(" + (_g >= {})", starts.values[k]);
    return text + fmt::format("  const int _t = {};\n  ", number) +
           call_of(body, {fmt::format("_g - {}", selected(starts.values)), "0", "0"},
                   {"get_num_groups(0)", "1", "1"}, arguments);
  }
  const Numbers x = numbers_named("x", 0, form.width), y = numbers_named("y", 0, form.width),
                z = numbers_named("z", 0, form.width);
  parameters += "uint _launches, " + x.parameters + y.parameters + z.parameters;
  text +=
      fmt::format("  const uint _t = _g % _launches, _own = _g / _launches, _x = {}, _y = {};\n",
                  selected(x.values), selected(y.values));
  const std::string depth = selected(z.values);
  return text + fmt::format("  if (_own / _x / _y < {}) ", depth) +
         call_of(body, {"_own % _x", "_own / _x % _y", "_own / _x / _y"}, {"_x", "_y", depth},
                 arguments);
}

device::SourcePtr make_merged(const Launch& launch, const Form& form, const std::string& entry) {
  device::StitchUnit unit;
  unit.add(*launch.source);
  const device::KernelFunction& function = unit.kernel(*launch.source, launch.kernel);
  const std::string body = body_name(*launch.source);
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
    for (size_t k = 0; k < (form.is_shared[i] ? 1 : form.width); ++k) {
      names.push_back(fmt::format("_a{}_{}", i, k));
      parameters += fmt::format("{} {}, ", type, names.back());
    }
    arguments += ", " + selected(names);
  }
  const std::string call = group_call(form, body, arguments, parameters);
  parameters.resize(parameters.size() - 2);  // the last comma
  std::string text = function_text(unit);
  replace_all(text, function.name + "(", body + "(");
  return device::make_source(
      text + fmt::format("__kernel void {}({}) {{\n{}}}\n", entry, parameters, call),
      launch.source->options, /*packs_scalars=*/true);
}

device::SourcePtr merged_source(const Launch& launch, const Form& form, const std::string& entry) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, Form>, device::SourcePtr> sources;
  std::lock_guard<std::mutex> lock(mutex);
  device::SourcePtr& source = sources[{launch.source->id + entry, form}];
  if (!source) source = make_merged(launch, form, entry);
  return source;
}

// Where launch k's groups begin or, in turn, what dimensions they have; the number of all.
uint64_t add_groups(const Form& form, const std::vector<const Launch*>& parts,
                    std::vector<Arg>& args) {
  uint64_t groups = 0;
  if (form.order == GroupOrder::kOneByOne) {
    for (size_t k = 0; k < form.width; ++k) {
      if (k > 0) args.push_back(scalar(groups));
      if (k < parts.size()) groups += groups_of(*parts[k], 0);
    }
    return groups;
  }
  args.push_back(scalar(parts.size()));
  for (size_t d = 0; d < 3; ++d) {
    for (size_t k = 0; k < form.width; ++k) {
      args.push_back(scalar(groups_of(*parts[std::min(k, parts.size() - 1)], d)));
    }
  }
  for (const Launch* part : parts) {
    groups = std::max(groups, groups_of(*part, 0) * groups_of(*part, 1) * groups_of(*part, 2));
  }
  return groups * parts.size();
}

// `parts`: 2 to `width` launches of one kernel.
Launch merge(const std::vector<const Launch*>& parts, GroupOrder order, size_t width) {
  const Launch& first = *parts[0];
  Form form{width, order, std::vector<bool>(first.args.size())};
  for (size_t i = 0; i < first.args.size(); ++i) {
    // Scalars that happen to be equal must not multiply the sources.
    form.is_shared[i] = first.args[i].kind != Arg::Kind::kScalar &&
                        std::all_of(parts.begin(), parts.end(), [&](const Launch* part) {
                          return part->args[i].slot == first.args[i].slot;
                        });
  }
  Launch merged;
  for (const Launch* part : parts) merged.bytes += part->bytes;
  merged.kernel = "merged" + first.kernel;
  merged.source = merged_source(first, form, merged.kernel);
  merged.label = fmt::format("{} x{}", first.label, parts.size());
  merged.local = first.local;
  merged.global = first.local;
  // Launches that are not there have no groups; they are given the last one's arguments.
  for (size_t i = 0; i < first.args.size(); ++i) {
    const bool is_single = form.is_shared[i] || first.args[i].kind == Arg::Kind::kLocal;
    for (size_t k = 0; k < (is_single ? 1 : width); ++k) {
      merged.args.push_back(parts[std::min(k, parts.size() - 1)]->args[i]);
    }
  }
  merged.global[0] = add_groups(form, parts, merged.args) * merged.local[0];
  return merged;
}

}  // namespace

std::vector<Launch> merge_launches(const std::vector<Launch>& launches, GroupOrder order,
                                   size_t width) {
  std::vector<std::vector<const Launch*>> batches;
  // By source, kernel and the work-items of a group.
  std::map<std::tuple<std::string, std::string, std::array<uint64_t, 3>>, size_t> open;
  for (const Launch& launch : launches) {
    const bool is_line = launch.global[1] == 1 && launch.global[2] == 1;
    const auto key = std::tuple(launch.source->id, launch.kernel, launch.local);
    const auto found = open.find(key);
    const bool fits = is_line || order == GroupOrder::kInTurn;
    if (fits && found != open.end() && batches[found->second].size() < width) {
      batches[found->second].push_back(&launch);
      continue;
    }
    if (fits) open[key] = batches.size();
    batches.push_back({&launch});
  }
  std::vector<Launch> result;
  for (const auto& batch : batches) {
    result.push_back(batch.size() == 1 ? *batch[0] : merge(batch, order, width));
  }
  return result;
}

}  // namespace ballast::kernels
