// jit: compiles a function of tensors, once per signature (shapes and dtypes of the arguments); a
// call after that is one ABI call. Copies of a Jit share their cache. Inside another trace a jitted
// function is simply inlined. Parameters that the function reads are state; other tensors it closes
// over are bound as they were when it was traced.
#pragma once

#include "frontend/compiled.h"
#include "frontend/trace.h"
#include "frontend/tree.h"

#include <any>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ballast {

class JitCache {
 public:
  struct Entry {
    std::shared_ptr<Compiled> compiled;
    std::any prototype;  // the function's result during tracing: gives results their form
  };
  using Make = std::function<std::vector<Tensor>(const std::vector<Tensor>&, std::any*)>;

  explicit JitCache(JitOptions options) : options_(options) {}
  // The entry of a signature, compiled now if it is new.
  std::shared_ptr<Entry> find(const std::vector<TensorType>& types,
                              const std::vector<size_t>& leaf_counts, const Make& make);
  size_t compile_count() const;
  std::shared_ptr<Entry> last() const;  // the entry used last; throws if there is none

 private:
  JitOptions options_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  std::shared_ptr<Entry> last_;
  size_t compile_count_ = 0;
};

template <class F>
class Jit {
 public:
  explicit Jit(F fn, const JitOptions& options = {})
      : fn_(std::move(fn)), cache_(std::make_shared<JitCache>(options)) {}

  template <class... Args>
  auto operator()(const Args&... args) {
    auto arguments = std::make_tuple(as_argument(args)...);
    using Value = std::decay_t<decltype(std::apply(fn_, arguments))>;
    if (Trace::current()) return Value(std::apply(fn_, arguments));
    std::vector<Tensor> leaves = leaves_of(arguments);
    auto entry = compile(types_of(leaves), {leaves_of(as_argument(args)).size()...}, arguments);
    return with_leaves(std::any_cast<const Value&>(entry->prototype), entry->compiled->run(leaves));
  }

  // Compiles for arguments of these types without running; `arguments` gives the form only.
  template <class Arguments>
  std::shared_ptr<JitCache::Entry> compile(const std::vector<TensorType>& types,
                                           const std::vector<size_t>& leaf_counts,
                                           const Arguments& arguments) {
    return cache_->find(types, leaf_counts,
                        [&](const std::vector<Tensor>& traced, std::any* prototype) {
                          auto value = std::apply(fn_, with_leaves(arguments, traced));
                          std::vector<Tensor> flat = leaves_of(value);
                          visit_leaves(value, [](Tensor& leaf) { leaf = Tensor(); });
                          *prototype = std::move(value);
                          return flat;
                        });
  }

  size_t compile_count() const { return cache_->compile_count(); }
  // Of the signature used last.
  CompiledInfo info() const { return cache_->last()->compiled->info(); }
  const Program& program() const { return cache_->last()->compiled->program(); }

 private:
  F fn_;
  std::shared_ptr<JitCache> cache_;
};

template <class F>
Jit<F> jit(F fn, const JitOptions& options = {}) {
  return Jit<F>(std::move(fn), options);
}

}  // namespace ballast
