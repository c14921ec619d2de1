#include "frontend/jit.h"

namespace ballast {

std::shared_ptr<JitCache::Entry> JitCache::find(const std::vector<TensorType>& types,
                                                const std::vector<size_t>& leaf_counts,
                                                const Make& make) {
  JitOptions options = options_;
  if (!options.level) options.level = default_jit_level();
  std::shared_ptr<Device> target = device();
  std::string key(1, static_cast<char>(*options.level));
  key += std::to_string(reinterpret_cast<uintptr_t>(target.get()));
  for (size_t count : leaf_counts) key += "," + std::to_string(count);
  for (const TensorType& type : types) append_key(key, type);

  std::lock_guard lock(mutex_);
  std::shared_ptr<Entry>& entry = entries_[key];
  if (!entry) {
    auto made = std::make_shared<Entry>();
    Program program = trace(
        [&](const std::vector<Tensor>& traced) { return make(traced, &made->prototype); }, types);
    made->compiled = std::make_shared<Compiled>(eliminate_dead_code(program), options);
    entry = std::move(made);
    ++compile_count_;
  }
  last_ = entry;
  return entry;
}

size_t JitCache::compile_count() const {
  std::lock_guard lock(mutex_);
  return compile_count_;
}

std::shared_ptr<JitCache::Entry> JitCache::last() const {
  std::lock_guard lock(mutex_);
  if (!last_) fail(BALLAST_FAILED_PRECONDITION, "[jit] the function has not been called yet");
  return last_;
}

}  // namespace ballast
