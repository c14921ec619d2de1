#include "frontend/jit.h"

#include <fmt/ranges.h>

#include <cstdio>
#include <cstdlib>

namespace ballast {

namespace {

using Entry = JitCache::Entry;

// Where leaf `leaf` lies: "argument 1", or "leaf 2 of argument 1".
std::string place_of(size_t leaf, const std::vector<size_t>& leaf_counts) {
  size_t argument = 0;
  for (; leaf >= leaf_counts[argument]; ++argument) leaf -= leaf_counts[argument];
  if (leaf_counts[argument] == 1) return fmt::format("argument {}", argument);
  return fmt::format("leaf {} of argument {}", leaf, argument);
}

void append_differences(const Entry& now, const Entry& before, std::vector<std::string>& found) {
  if (now.leaf_counts.size() != before.leaf_counts.size()) {
    found.push_back(fmt::format("it is given {} arguments, was given {}", now.leaf_counts.size(),
                                before.leaf_counts.size()));
    return;
  }
  for (size_t i = 0; i < now.leaf_counts.size(); ++i) {
    if (now.leaf_counts[i] == before.leaf_counts[i]) continue;
    found.push_back(fmt::format("argument {} is {} tensors, was {}", i, now.leaf_counts[i],
                                before.leaf_counts[i]));
  }
  if (now.leaf_counts != before.leaf_counts) return;
  for (size_t i = 0; i < now.types.size(); ++i) {
    if (now.types[i] == before.types[i]) continue;
    found.push_back(fmt::format("{} is {}, was {}", place_of(i, now.leaf_counts),
                                to_string(now.types[i]), to_string(before.types[i])));
  }
}

const char* name_of(JitLevel level) { return level == JitLevel::kO0 ? "O0" : "O1"; }

std::string reason_for(const Entry& now, const Entry* before) {
  if (!before) return "it is the first call";
  std::vector<std::string> found;
  append_differences(now, *before, found);
  if (now.level != before->level) {
    found.push_back(
        fmt::format("the level is {}, was {}", name_of(now.level), name_of(before->level)));
  }
  if (now.device != before->device) found.push_back("the device is another");
  if (std::string flags = before->flags.changes(); !flags.empty()) found.push_back(flags);
  return fmt::format("{}", fmt::join(found, "; "));
}

}  // namespace

std::shared_ptr<Entry> JitCache::find(const std::vector<TensorType>& types,
                                      const std::vector<size_t>& leaf_counts, const Make& make) {
  const JitLevel level = options_.level.value_or(default_jit_level());
  const std::shared_ptr<Device> target = device();
  std::string key(1, static_cast<char>(level));
  key += std::to_string(reinterpret_cast<uintptr_t>(target.get()));
  for (size_t count : leaf_counts) key += "," + std::to_string(count);
  for (const TensorType& type : types) append_key(key, type);

  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Entry>>& entries = entries_[key];
  for (const std::shared_ptr<Entry>& entry : entries) {
    if (entry->flags.hold()) return last_ = entry;
  }
  auto made = std::make_shared<Entry>(Entry{{}, {}, level, target, leaf_counts, types, {}});
  reason_ = reason_for(*made, last_.get());
  if (std::getenv("BALLAST_VERBOSE")) {
    std::fprintf(stderr, "ballast: tracing the %s: %s\n", name_.c_str(), reason_.c_str());
  }
  compile(*made, make);
  entries.push_back(made);
  ++compile_count_;
  return last_ = made;
}

void JitCache::compile(Entry& entry, const Make& make) const {
  JitOptions options = options_;
  options.level = entry.level;
  FlagsRead::Scope scope(entry.flags);
  const Program program =
      trace([&](const std::vector<Tensor>& traced) { return make(traced, &entry.prototype); },
            entry.types);
  entry.compiled = std::make_shared<Compiled>(eliminate_dead_code(program), options);
}

size_t JitCache::compile_count() const {
  std::lock_guard lock(mutex_);
  return compile_count_;
}

std::shared_ptr<Entry> JitCache::last() const {
  std::lock_guard lock(mutex_);
  if (!last_) fail(BALLAST_FAILED_PRECONDITION, "[jit] the function has not been called yet");
  return last_;
}

std::string JitCache::retrace_reason() const {
  std::lock_guard lock(mutex_);
  return reason_;
}

}  // namespace ballast
