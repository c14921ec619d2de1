// Control flow that depends on tensors. Arguments, carries and results are trees of tensors
// (frontend/tensor/tree.h); the functions may close over tensors, and read and assign parameters.
// On concrete tensors these run at once; inside a trace each becomes one equation, and a jitted
// function with any of them is still one call of the plugin. All of them can be differentiated.
//   Tensor y = cond(ops::less(x, 0), [](Tensor a) { return -a; }, [](Tensor a) { return a; }, x);
//   auto [h, ys] = scan([&](Tensor h, Tensor x) { return cell(h, x); }, h0, xs);
#pragma once

#include "frontend/program/trace.h"
#include "frontend/tensor/operand.h"
#include "frontend/tensor/tree.h"

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace ballast {

namespace internal {

// The same over flat lists of leaves. `on_true` and `on_false` take `operands`.
std::vector<Tensor> flat_cond(const Operand& predicate, const FlatFunction& on_true,
                              const FlatFunction& on_false, const std::vector<Tensor>& operands);
// `condition` and `body` take the carry.
std::vector<Tensor> flat_while(const FlatFunction& condition, const FlatFunction& body,
                               const std::vector<Tensor>& init, const Where& where);

// Throw where the trees of two branches, or of the carry before and after a body, have leaves of
// the same types and are nested differently.
void check_branch_forms(const std::vector<TreeForm>& forms, const Operand& predicate);
void check_carry_form(const char* name, const TreeForm& before, const TreeForm& after,
                      const Where& where);
template <class Carry>
void check_carry_form(const char* name, const Carry& before, const Carry& after,
                      const Where& where) {
  if (leaf_count(before) != leaf_count(after)) return;  // flat_while and flat_scan say so
  check_carry_form(name, form_of(before), form_of(after), where);
}

struct ScanRange {
  std::optional<int64_t> length;
  bool is_reverse = false;
};
// `body` takes the carry, then a slice of each of `xs`; gives the new carry, then what is stacked.
std::vector<Tensor> flat_scan(const FlatFunction& body, const std::vector<Tensor>& init,
                              const std::vector<Tensor>& xs, const ScanRange& range,
                              const Where& where);

// The integers [lower, upper) as i32[n], and a counter's comparison and step.
Tensor integers(const Operand& lower, const Operand& upper);
Tensor as_counter(const Operand& bound);
Tensor is_below(const Tensor& counter, const Tensor& bound);
Tensor next_of(const Tensor& counter);

// What `fn` gives; an empty tree if that is nothing.
template <class F, class Arguments>
auto apply_tree(F& fn, Arguments&& arguments) {
  if constexpr (std::is_void_v<decltype(std::apply(fn, arguments))>) {
    std::apply(fn, arguments);
    return std::tuple<>();
  } else {
    return std::apply(fn, arguments);
  }
}

}  // namespace internal

// on_true(args...) where the bool scalar `predicate` is true, else on_false(args...).
template <class OnTrue, class OnFalse, class... Args>
auto cond(const Operand& predicate, OnTrue on_true, OnFalse on_false, const Args&... args) {
  auto arguments = std::make_tuple(as_argument(args)...);
  using Value = std::decay_t<decltype(internal::apply_tree(on_true, arguments))>;
  using Other = std::decay_t<decltype(internal::apply_tree(on_false, arguments))>;
  static_assert(std::is_same_v<Value, Other>, "the branches of a cond return the same type");
  std::optional<Value> prototype;
  std::vector<TreeForm> forms;  // of the branches traced
  auto flat = [&](auto& branch) -> FlatFunction {
    return [&](const std::vector<Tensor>& leaves) {
      prototype.emplace(internal::apply_tree(branch, with_leaves(arguments, leaves)));
      forms.push_back(form_of(*prototype));
      return leaves_of(*prototype);
    };
  };
  std::vector<Tensor> results =
      internal::flat_cond(predicate, flat(on_true), flat(on_false), leaves_of(arguments));
  internal::check_branch_forms(forms, predicate);
  return with_leaves(*std::move(prototype), results);
}

// carry = body(carry) for as long as the bool scalar condition(carry) is true.
template <class Condition, class Body, class Carry>
auto while_loop(Condition condition, Body body, const Carry& init, Where where = Where::here()) {
  auto carry = as_argument(init);
  static_assert(std::is_same_v<std::decay_t<decltype(body(carry))>, decltype(carry)>,
                "the body of a while_loop returns the type of the carry");
  std::vector<Tensor> results = internal::flat_while(
      [&](const std::vector<Tensor>& leaves) {
        return leaves_of(condition(with_leaves(carry, leaves)));
      },
      [&](const std::vector<Tensor>& leaves) {
        auto next = body(with_leaves(carry, leaves));
        internal::check_carry_form("while_loop", carry, next, where);
        return leaves_of(next);
      },
      leaves_of(carry), where);
  return with_leaves(carry, results);
}

// std::pair(carry, y) = body(carry, x) for every x along the leading axis of xs, from the last one
// on if `reverse`. Returns the last carry and the stacked ys. `length` may be left out unless xs is
// empty: std::tuple<>().
template <class Body, class Carry, class Xs>
auto scan(Body body, const Carry& init, const Xs& xs, std::optional<int64_t> length = std::nullopt,
          bool reverse = false, Where where = Where::here()) {
  auto carry = as_argument(init);
  auto stacked = as_argument(xs);
  using Result = std::decay_t<decltype(body(carry, stacked))>;
  static_assert(
      std::is_same_v<std::decay_t<decltype(std::declval<Result>().first)>, decltype(carry)>,
      "the body of a scan returns a pair of the carry and what is stacked");
  std::optional<decltype(std::declval<Result>().second)> prototype;
  auto flat = [&](const std::vector<Tensor>& leaves) {
    auto next = leaves.cbegin();
    auto before = with_leaves(carry, next);
    Result result = body(std::move(before), with_leaves(stacked, next));
    internal::check_carry_form("scan", carry, result.first, where);
    std::vector<Tensor> flat_result = leaves_of(result.first);
    append_leaves(result.second, flat_result);
    prototype.emplace(std::move(result.second));
    return flat_result;
  };
  std::vector<Tensor> results =
      internal::flat_scan(flat, leaves_of(carry), leaves_of(stacked), {length, reverse}, where);
  auto next = results.cbegin();
  carry = with_leaves(std::move(carry), next);
  auto ys = with_leaves(*std::move(prototype), next);
  return std::pair(std::move(carry), std::move(ys));
}

// carry = body(i, carry) for the i32 scalars i in [lower, upper). With numbers as bounds this is a
// scan (memory for its gradient grows with the number of steps), else a while_loop.
template <class Body, class Carry>
auto fori_loop(const Operand& lower, const Operand& upper, Body body, const Carry& init,
               Where where = Where::here()) {
  auto carry = as_argument(init);
  if (lower.is_number() && upper.is_number()) {
    auto step = [&](decltype(carry) before, Tensor i) {
      return std::pair(body(std::move(i), std::move(before)), std::tuple<>());
    };
    return scan(step, carry, internal::integers(lower, upper), {}, false, where).first;
  } else {
    auto bound = internal::as_counter(upper);
    auto init_pair = std::pair(internal::as_counter(lower), carry);
    auto below = [&](auto state) { return internal::is_below(state.first, bound); };
    auto step = [&](auto state) {
      return std::pair(internal::next_of(state.first), body(state.first, state.second));
    };
    return while_loop(below, step, init_pair, where).second;
  }
}

}  // namespace ballast
