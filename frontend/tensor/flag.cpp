#include "frontend/tensor/flag.h"

#include <algorithm>
#include <atomic>

namespace ballast {

namespace {

thread_local FlagsRead* recording = nullptr;
// Counts changes of any flag: while it stands still a call need not look at single flags.
std::atomic<uint64_t> change_count{1};

}  // namespace

void Flag::set(bool is_on) const {
  if (*is_on_ == is_on) return;
  *is_on_ = is_on;
  ++change_count;
}

FlagsRead::Scope::Scope(FlagsRead& flags) : previous_(recording) { recording = &flags; }

FlagsRead::Scope::~Scope() { recording = previous_; }

FlagsRead* FlagsRead::current() { return recording; }

void FlagsRead::add(const std::shared_ptr<const bool>& flag, std::string name) {
  reads_.push_back({flag, *flag, std::move(name)});
}

bool FlagsRead::hold() const {
  const uint64_t count = change_count;
  if (checked_at_ == count) return true;
  const bool all = std::all_of(reads_.begin(), reads_.end(), [](const Read& read) {
    const std::shared_ptr<const bool> flag = read.flag.lock();
    return !flag || *flag == read.value;
  });
  if (all) checked_at_ = count;
  return all;
}

std::string FlagsRead::changes() const {
  std::vector<std::string> told;
  for (const Read& read : reads_) {
    const std::shared_ptr<const bool> flag = read.flag.lock();
    if (!flag || *flag == read.value) continue;
    std::string text = read.name + (*flag ? " is on, was off" : " is off, was on");
    if (std::find(told.begin(), told.end(), text) == told.end()) told.push_back(std::move(text));
  }
  std::string all;
  for (const std::string& text : told) all += (all.empty() ? "" : "; ") + text;
  return all;
}

}  // namespace ballast
