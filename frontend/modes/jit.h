// jit: compiles a function of tensors, once per signature: the types of the arguments, how they
// are nested, the level, the device, and the training flags of the cells it calls. A call after
// that is one ABI call. Copies of a Jit share their cache. Inside another trace a jitted function
// is simply inlined. Parameters that the function reads are state; other tensors and numbers it
// closes over are bound as they were when it was traced. Why it was traced again is told by
// retrace_reason(), and on stderr where $BALLAST_VERBOSE is set. All that was compiled is kept for
// as long as the jitted function lives, and found by looking through it from what was used last:
// pad arguments whose shapes vary without bound. The driver takes seconds for the one kernel that
// Replay::kAuto makes of many launches, so a function's signatures after the first few are lists
// of launches, compiled in milliseconds, until they are called often or sunk. Thread-safe: one
// thread compiles while others wait, and calls of one signature take turns.
#pragma once

#include "frontend/modes/compiled.h"
#include "frontend/program/trace.h"
#include "frontend/tensor/flag.h"
#include "frontend/tensor/tree.h"

#include <any>
#include <array>
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
    JitLevel level = JitLevel::kO1;
    std::shared_ptr<Device> device;
    std::vector<size_t> leaf_counts;  // by argument
    TreeForm form;                    // of all arguments
    std::vector<TensorType> types;    // of the leaves
    FlagsRead flags;
    bool is_list = false;  // instead of what Replay::kAuto chooses
    size_t calls = 0;      // as a list
  };
  // Signatures that are compiled as Replay::kAuto chooses at once, and calls after which another
  // is.
  static constexpr size_t kSignaturesAtOnce = 4, kCallsOfList = 256;
  enum class Use { kCall, kSink };
  using Make = std::function<std::vector<Tensor>(const std::vector<Tensor>&, std::any*)>;
  // What a call is given: leaves or their types, how many each argument has, and, where these can
  // be nested in several ways, the form. Borrows all of it.
  class Signature {
   public:
    Signature(const std::vector<Tensor>& leaves, const size_t* leaf_counts, size_t argument_count)
        : leaves_(leaves.data()),
          size_(leaves.size()),
          leaf_counts_(leaf_counts),
          argument_count_(argument_count) {}
    Signature(const std::vector<TensorType>& types, const std::vector<size_t>& leaf_counts)
        : types_(types.data()),
          size_(types.size()),
          leaf_counts_(leaf_counts.data()),
          argument_count_(leaf_counts.size()) {}

    size_t size() const { return size_; }
    const TensorType& type(size_t leaf) const {
      return leaves_ ? leaves_[leaf].type() : types_[leaf];
    }
    std::vector<size_t> leaf_counts() const {
      return {leaf_counts_, leaf_counts_ + argument_count_};
    }
    TreeForm form() const { return form_ ? *form_ : TreeForm(); }
    Signature with(const TreeForm& form) const {
      Signature nested = *this;
      nested.form_ = &form;
      return nested;
    }
    bool fits(const Entry& entry) const;

   private:
    const Tensor* leaves_ = nullptr;
    const TensorType* types_ = nullptr;
    size_t size_;
    const size_t* leaf_counts_;
    size_t argument_count_;
    const TreeForm* form_ = nullptr;
  };

  // `name` says in messages what is compiled: "function (at train.cpp:12)".
  JitCache(JitOptions options, std::string name)
      : options_(std::move(options)), name_(std::move(name)) {}
  // The entry of a signature, compiled now if it is new.
  std::shared_ptr<Entry> find(const Signature& signature, const Make& make, Use use);
  // Runs the entry; errors name the line of the call.
  std::vector<Tensor> run(const Entry& entry, const std::vector<Tensor>& leaves,
                          const Where& where) const;
  // Throws if the argument `number`, which is a parameter, is to be donated.
  void check_donates_no_parameter(size_t number) const;
  Cancellation& cancellation() { return cancellation_; }
  size_t compile_count() const;
  std::shared_ptr<Entry> last() const;  // the entry used last; throws if there is none
  // Why find() compiled last: what differs from the call before that. "it is the first call",
  // "argument 0 is f32[3], was f32[2]"; empty if it never did.
  std::string retrace_reason() const;

 private:
  std::shared_ptr<Entry> add(Entry entry, const Make& make, Use use);
  void compile(Entry& entry, const Make& make) const;
  void lower(Entry& entry, const Program& program) const;
  bool is_list_enough(Entry& entry, Use use) const;
  bool is_donated(size_t argument) const;
  std::vector<Donated> donated_leaves(const Entry& entry) const;
  void check_donated(const Entry& entry, const std::vector<Tensor>& leaves) const;

  JitOptions options_;
  std::string name_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Entry>> entries_;  // the one used last in front
  size_t compile_count_ = 0;
  std::string reason_;
  Cancellation cancellation_;
};

// Whether a call of a cell, a gradient function or an optimizer is compiled by itself: the
// outermost one in GRAPH_MODE.
inline bool compiles_calls() { return execution_mode() == Mode::kGraph && !Trace::current(); }

namespace internal {

// The arguments as the function gets them, where parameters are tensors.
template <class... Args>
auto as_arguments(const std::tuple<const Args&...>& given) {
  return std::apply([](const Args&... args) { return std::make_tuple(as_argument(args)...); },
                    given);
}

// The cache's entry for fn at arguments of these types; those given say the form only.
template <class F, class... Args>
std::shared_ptr<JitCache::Entry> compiled_entry(JitCache& cache, F& fn,
                                                const JitCache::Signature& signature,
                                                const std::tuple<const Args&...>& given,
                                                JitCache::Use use) {
  TreeForm form{typeid(decltype(as_arguments(given))), {}};
  append_sizes(given, form.sizes);
  auto make = [&](const std::vector<Tensor>& traced, std::any* prototype) {
    auto value = std::apply(fn, with_leaves(as_arguments(given), traced));
    std::vector<Tensor> flat = leaves_of(value);
    visit_leaves(value, [](Tensor& leaf) { leaf = Tensor(); });
    *prototype = std::move(value);
    return flat;
  };
  return cache.find(signature.with(form), make, use);
}

// fn(args...), compiled; errors name the line of the call.
template <class F, class... Args>
auto call_compiled(JitCache& cache, F& fn, const Where& where, const Args&... args) {
  size_t number = 0;
  auto check_donation = [&](bool holds_parameters) {
    if (holds_parameters) cache.check_donates_no_parameter(number);
    ++number;
  };
  const std::tuple<const Args&...> given(args...);
  using Value = std::decay_t<decltype(std::apply(fn, as_arguments(given)))>;
  static_assert(kIsTree<Value>,
                "a jitted function returns a Tensor, or a vector, tuple, pair or array of them");
  return at_line(where, [&] {
    (check_donation(kHoldsParameters<Args>), ...);
    const std::vector<Tensor> leaves = leaves_of(given);
    const std::array<size_t, sizeof...(Args)> counts{leaf_count(args)...};
    auto entry = compiled_entry(cache, fn, {leaves, counts.data(), counts.size()}, given,
                                JitCache::Use::kCall);
    return with_leaves(std::any_cast<const Value&>(entry->prototype),
                       cache.run(*entry, leaves, where));
  });
}

}  // namespace internal

template <class F>
class Jit {
 public:
  Jit(F fn, const JitOptions& options, const Where& where)
      : fn_(std::move(fn)),
        where_(where),
        cache_(std::make_shared<JitCache>(options,
                                          "function jitted at " + ballast::to_string(where))) {}

  // fn(args...). Its errors name the line of the call; with more than eight arguments, that of jit.
  auto operator()(Where where = Where::here()) { return call(where); }
  template <class A>
  auto operator()(const A& a, Where where = Where::here()) {
    return call(where, a);
  }
  template <class A, class B>
  auto operator()(const A& a, const B& b, Where where = Where::here()) {
    return call(where, a, b);
  }
  template <class A, class B, class C>
  auto operator()(const A& a, const B& b, const C& c, Where where = Where::here()) {
    return call(where, a, b, c);
  }
  template <class A, class B, class C, class D>
  auto operator()(const A& a, const B& b, const C& c, const D& d, Where where = Where::here()) {
    return call(where, a, b, c, d);
  }
  template <class A, class B, class C, class D, class E>
  auto operator()(const A& a, const B& b, const C& c, const D& d, const E& e,
                  Where where = Where::here()) {
    return call(where, a, b, c, d, e);
  }
  template <class A, class B, class C, class D, class E, class G>
  auto operator()(const A& a, const B& b, const C& c, const D& d, const E& e, const G& g,
                  Where where = Where::here()) {
    return call(where, a, b, c, d, e, g);
  }
  template <class A, class B, class C, class D, class E, class G, class H>
  auto operator()(const A& a, const B& b, const C& c, const D& d, const E& e, const G& g,
                  const H& h, Where where = Where::here()) {
    return call(where, a, b, c, d, e, g, h);
  }
  template <class A, class B, class C, class D, class E, class G, class H, class I>
  auto operator()(const A& a, const B& b, const C& c, const D& d, const E& e, const G& g,
                  const H& h, const I& i, Where where = Where::here()) {
    return call(where, a, b, c, d, e, g, h, i);
  }
  template <class A, class B, class C, class D, class E, class G, class H, class I, class J,
            class... More>
  auto operator()(const A& a, const B& b, const C& c, const D& d, const E& e, const G& g,
                  const H& h, const I& i, const J& j, const More&... more) {
    return call(where_, a, b, c, d, e, g, h, i, j, more...);
  }

  // Compiles for sunk runs with arguments of these types; `arguments` gives the form only.
  template <class Arguments>
  std::shared_ptr<JitCache::Entry> compile(const std::vector<TensorType>& types,
                                           const std::vector<size_t>& leaf_counts,
                                           const Arguments& arguments) {
    return std::apply(
        [&](const auto&... given) {
          return internal::compiled_entry(*cache_, fn_, {types, leaf_counts}, std::tie(given...),
                                          JitCache::Use::kSink);
        },
        arguments);
  }

  Cancellation& cancellation() const { return cache_->cancellation(); }  // of sunk runs: see Sink
  size_t compile_count() const { return cache_->compile_count(); }
  std::string retrace_reason() const { return cache_->retrace_reason(); }  // see JitCache
  // Of the signature used last.
  CompiledInfo info() const { return cache_->last()->compiled->info(); }
  const Program& program() const { return cache_->last()->compiled->program(); }

 private:
  template <class... Args>
  auto call(const Where& where, const Args&... args) {
    using Value = std::decay_t<decltype(fn_(as_argument(args)...))>;
    if (Trace::current()) return Value(fn_(as_argument(args)...));
    return internal::call_compiled(*cache_, fn_, where, args...);
  }

  F fn_;
  Where where_;
  std::shared_ptr<JitCache> cache_;
};

// What jit compiles of an F: itself, but see nn/cell.h.
template <class F, class = void>
struct JitForm {
  static F of(F fn, const Where&) { return fn; }
};

template <class F>
auto jit(F fn, const JitOptions& options = {}, Where where = Where::here()) {
  auto form = JitForm<F>::of(std::move(fn), where);
  return Jit<decltype(form)>(std::move(form), options, where);
}

// A method of an object, which must outlive what is returned:
//   auto forward = jit(&Net::features, net);
template <class Object, class Value, class... Args>
auto jit(Value (Object::*method)(Args...), Object& object, const JitOptions& options = {},
         Where where = Where::here()) {
  return jit([method, &object](
                 const std::decay_t<Args>&... args) -> Value { return (object.*method)(args...); },
             options, where);
}
template <class Object, class Value, class... Args>
auto jit(Value (Object::*method)(Args...) const, const Object& object,
         const JitOptions& options = {}, Where where = Where::here()) {
  return jit([method, &object](
                 const std::decay_t<Args>&... args) -> Value { return (object.*method)(args...); },
             options, where);
}

}  // namespace ballast
