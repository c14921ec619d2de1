#include "frontend/transforms/grad_cache.h"

#include "frontend/program/alike.h"
#include "frontend/transforms/vjp.h"

#include <algorithm>

namespace ballast::internal {

namespace {

constexpr size_t kMostEntries = 4;

// The capture of `program` that holds this very tensor.
std::optional<size_t> capture_of(const Program& program, const Tensor& value) {
  for (size_t i = 0; i < program.captured.size(); ++i) {
    if (program.captured[i].value.is_same(value)) return i;
  }
  return std::nullopt;
}

std::shared_ptr<const GradCache::Entry> make_entry(const Program& program,
                                                   const std::vector<size_t>& inputs,
                                                   const std::vector<Parameter>& weights) {
  auto entry = std::make_shared<GradCache::Entry>();
  entry->inputs = inputs;
  entry->traced = program;
  entry->reversed = reverse(program, inputs, weights);
  // A function kept for later must not keep what it was once given.
  for (auto& captured : entry->traced.captured) captured.value = {};
  for (auto& captured : entry->reversed.captured) {
    entry->sources.push_back(capture_of(program, captured.value));
    if (entry->sources.back()) captured.value = {};
  }
  return entry;
}

}  // namespace

std::shared_ptr<const GradCache::Entry> GradCache::find(const Program& program,
                                                        const std::vector<size_t>& inputs,
                                                        const std::vector<Parameter>& weights) {
  {
    std::lock_guard lock(mutex_);
    auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
      return entry->inputs == inputs && are_alike(entry->traced, program);
    });
    if (found != entries_.end()) {
      std::rotate(entries_.begin(), found, found + 1);
      return entries_.front();
    }
  }
  std::shared_ptr<const Entry> entry = make_entry(program, inputs, weights);
  std::lock_guard lock(mutex_);
  entries_.insert(entries_.begin(), entry);
  if (entries_.size() > kMostEntries) entries_.pop_back();
  return entry;
}

std::vector<Tensor> eval(const GradCache::Entry& entry, const Program& program,
                         const std::vector<Tensor>& inputs) {
  std::vector<Tensor> captured;
  for (size_t i = 0; i < entry.sources.size(); ++i) {
    const auto& source = entry.sources[i];
    captured.push_back(source ? program.captured[*source].value : entry.reversed.captured[i].value);
  }
  return ballast::eval(entry.reversed, inputs, captured);
}

}  // namespace ballast::internal
