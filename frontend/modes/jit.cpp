#include "frontend/modes/jit.h"

#include <fmt/ranges.h>

#include <algorithm>
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
  if (now.form != before.form) found.push_back("the arguments are nested otherwise");
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

bool JitCache::Signature::fits(const Entry& entry) const {
  if (entry.types.size() != size_ || !std::equal(entry.leaf_counts.begin(), entry.leaf_counts.end(),
                                                 leaf_counts_, leaf_counts_ + argument_count_)) {
    return false;
  }
  if (form_ && *form_ != entry.form) return false;
  for (size_t i = 0; i < size_; ++i) {
    if (entry.types[i] != type(i)) return false;
  }
  return true;
}

// On the way of every call: compares, and allocates nothing.
std::shared_ptr<Entry> JitCache::find(const Signature& signature, const Make& make, Use use) {
  const JitLevel level = options_.level.value_or(default_jit_level());
  std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const Entry& known = **entry;
    if (known.level != level || !is_current(*known.device) || !signature.fits(known) ||
        !known.flags.hold()) {
      continue;
    }
    std::rotate(entries_.begin(), entry, entry + 1);
    if (is_list_enough(*entries_.front(), use)) return entries_.front();
    // Another entry: a call in another thread may be running this one.
    auto again = std::make_shared<Entry>(*entries_.front());
    again->is_list = false;
    lower(*again, entries_.front()->compiled->program());
    entries_.front() = again;
    return again;
  }
  Entry made{{}, {}, level, device(), signature.leaf_counts(), signature.form(), {}, {}};
  for (size_t i = 0; i < signature.size(); ++i) made.types.push_back(signature.type(i));
  return add(std::move(made), make, use);
}

bool JitCache::is_list_enough(Entry& entry, Use use) const {
  return !entry.is_list || (use == Use::kCall && ++entry.calls < kCallsOfList);
}

std::shared_ptr<Entry> JitCache::add(Entry entry, const Make& make, Use use) {
  reason_ = reason_for(entry, entries_.empty() ? nullptr : entries_.front().get());
  if (std::getenv("BALLAST_VERBOSE")) {
    std::fprintf(stderr, "ballast: tracing the %s: %s\n", name_.c_str(), reason_.c_str());
  }
  auto made = std::make_shared<Entry>(std::move(entry));
  made->is_list = use == Use::kCall && options_.replay == Replay::kAuto &&
                  made->level != JitLevel::kO0 && compile_count_ >= kSignaturesAtOnce;
  compile(*made, make);
  entries_.insert(entries_.begin(), made);
  ++compile_count_;
  return made;
}

void JitCache::compile(Entry& entry, const Make& make) const {
  for (size_t argument : options_.donate) {
    if (argument < entry.leaf_counts.size()) continue;
    fail(BALLAST_INVALID_ARGUMENT, "[jit] the {} is to donate argument {}, but is given {}", name_,
         argument, entry.leaf_counts.size());
  }
  FlagsRead::Scope scope(entry.flags);
  const Program program =
      trace([&](const std::vector<Tensor>& traced) { return make(traced, &entry.prototype); },
            entry.types);
  lower(entry, eliminate_dead_code(program));
}

void JitCache::lower(Entry& entry, const Program& program) const {
  JitOptions options = options_;
  options.level = entry.level;
  if (entry.is_list) options.replay = Replay::kList;
  entry.compiled = std::make_shared<Compiled>(program, options, donated_leaves(entry));
}

std::vector<Donated> JitCache::donated_leaves(const Entry& entry) const {
  std::vector<Donated> donated;
  size_t first = 0;
  for (size_t argument = 0; argument < entry.leaf_counts.size(); ++argument) {
    const size_t end = first + entry.leaf_counts[argument];
    if (is_donated(argument)) {
      for (size_t leaf = first; leaf < end; ++leaf) {
        const std::string name =
            fmt::format("{} of the {}", place_of(leaf, entry.leaf_counts), name_);
        donated.push_back({leaf, std::make_shared<const std::string>(name), {}});
      }
    }
    first = end;
  }
  return donated;
}

bool JitCache::is_donated(size_t argument) const {
  return std::find(options_.donate.begin(), options_.donate.end(), argument) !=
         options_.donate.end();
}

void JitCache::check_donates_no_parameter(size_t number) const {
  if (!is_donated(number)) return;
  fail(BALLAST_INVALID_ARGUMENT,
       "[jit] argument {} of the {} is a parameter, which cannot be donated", number, name_);
}

void JitCache::check_donated(const Entry& entry, const std::vector<Tensor>& leaves) const {
  for (const Donated& donated : entry.compiled->donated()) {
    const Tensor& given = leaves[donated.leaf];
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (i == donated.leaf || !given.is_same(leaves[i])) continue;
      fail(BALLAST_INVALID_ARGUMENT, "[jit] {} is donated, and {} is the same tensor",
           *donated.name, place_of(i, entry.leaf_counts));
    }
    for (const auto& captured : entry.compiled->program().captured) {
      if (!given.is_same(captured.value)) continue;
      fail(BALLAST_INVALID_ARGUMENT, "[jit] {} is donated, and the function closes over it",
           *donated.name);
    }
  }
}

std::vector<Tensor> JitCache::run(const Entry& entry, const std::vector<Tensor>& leaves,
                                  const Where& where) const {
  if (!options_.donate.empty()) check_donated(entry, leaves);
  return entry.compiled->run(leaves, where);
}

size_t JitCache::compile_count() const {
  std::lock_guard lock(mutex_);
  return compile_count_;
}

std::shared_ptr<Entry> JitCache::last() const {
  std::lock_guard lock(mutex_);
  if (entries_.empty()) {
    fail(BALLAST_FAILED_PRECONDITION, "[jit] the function has not been called yet");
  }
  return entries_.front();
}

std::string JitCache::retrace_reason() const {
  std::lock_guard lock(mutex_);
  return reason_;
}

}  // namespace ballast
