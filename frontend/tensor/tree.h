// Trees of tensors: a Tensor, or a vector, tuple, pair or array of trees. Functions that are jitted
// or differentiated take and return them; below that everything is a flat list of leaves.
#pragma once

#include "frontend/tensor/parameter.h"
#include "frontend/tensor/tensor.h"

#include <array>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

namespace ballast {

namespace internal {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

template <class T, class = void>
struct IsTuple : std::false_type {};
template <class T>
struct IsTuple<T, std::void_t<decltype(std::tuple_size<T>::value)>> : std::true_type {};

// What a type is as a tree.
template <class T>
struct TreeTraits {
  static constexpr bool kIsTree = false, kHoldsParameters = false;
};
template <>
struct TreeTraits<Tensor> {
  static constexpr bool kIsTree = true, kHoldsParameters = false;
};
template <>
struct TreeTraits<Parameter> {
  static constexpr bool kIsTree = true, kHoldsParameters = true;
};
template <class T>
struct TreeTraits<std::vector<T>> : TreeTraits<T> {};
template <class T, size_t kCount>
struct TreeTraits<std::array<T, kCount>> : TreeTraits<T> {};
template <class... Ts>
struct TreeTraits<std::tuple<Ts...>> {
  static constexpr bool kIsTree = (TreeTraits<Ts>::kIsTree && ...);
  static constexpr bool kHoldsParameters = (TreeTraits<Ts>::kHoldsParameters || ...);
};
template <class A, class B>
struct TreeTraits<std::pair<A, B>> : TreeTraits<std::tuple<A, B>> {};

}  // namespace internal

template <class T>
constexpr bool kIsTree = internal::TreeTraits<T>::kIsTree;
// Whether some of its leaves are parameters.
template <class T>
constexpr bool kHoldsParameters = internal::TreeTraits<T>::kHoldsParameters;

// Calls visit(tensor) on every leaf in order; `tree` may be const.
template <class Tree, class Visit>
void visit_leaves(Tree& tree, Visit&& visit) {
  using T = std::remove_const_t<Tree>;
  if constexpr (std::is_same_v<T, Tensor>) {
    visit(tree);
  } else if constexpr (std::is_same_v<T, Parameter>) {
    Tensor value = tree.value();
    visit(value);
  } else if constexpr (internal::IsVector<T>::value) {
    for (auto& element : tree) visit_leaves(element, visit);
  } else if constexpr (internal::IsTuple<T>::value) {
    std::apply([&](auto&... elements) { (visit_leaves(elements, visit), ...); }, tree);
  } else {
    static_assert(std::is_same_v<T, Tensor>,
                  "expected a Tensor, or a vector, tuple, pair or array of them");
  }
}

template <class Tree>
void append_leaves(const Tree& tree, std::vector<Tensor>& leaves) {
  visit_leaves(tree, [&](const Tensor& leaf) { leaves.push_back(leaf); });
}

template <class Tree>
size_t leaf_count(const Tree& tree) {
  size_t count = 0;
  visit_leaves(tree, [&](const Tensor&) { ++count; });
  return count;
}

template <class Tree>
std::vector<Tensor> leaves_of(const Tree& tree) {
  std::vector<Tensor> leaves;
  leaves.reserve(leaf_count(tree));
  append_leaves(tree, leaves);
  return leaves;
}

// The tree with its leaves replaced, taken from `next` onwards.
template <class Tree>
Tree with_leaves(Tree tree, std::vector<Tensor>::const_iterator& next) {
  visit_leaves(tree, [&](Tensor& leaf) { leaf = *next++; });
  return tree;
}

template <class Tree>
Tree with_leaves(Tree tree, const std::vector<Tensor>& leaves) {
  auto next = leaves.cbegin();
  return with_leaves(std::move(tree), next);
}

// How a tree is built, whatever its leaves are.
struct TreeForm {
  std::type_index type = typeid(void);
  std::vector<size_t> sizes;  // of all its vectors, an outer one before those within

  bool operator==(const TreeForm& o) const { return type == o.type && sizes == o.sizes; }
  bool operator!=(const TreeForm& o) const { return !(*this == o); }
};

template <class Tree>
void append_sizes(const Tree& tree, std::vector<size_t>& sizes) {
  if constexpr (internal::IsVector<Tree>::value) {
    sizes.push_back(tree.size());
    for (const auto& element : tree) append_sizes(element, sizes);
  } else if constexpr (internal::IsTuple<Tree>::value) {
    std::apply([&](const auto&... elements) { (append_sizes(elements, sizes), ...); }, tree);
  }
}

template <class Tree>
TreeForm form_of(const Tree& tree) {
  TreeForm form{typeid(Tree), {}};
  append_sizes(tree, form.sizes);
  return form;
}

// What an argument is inside a traced function: a parameter arrives as a tensor.
template <class T>
auto as_argument(const T& argument) {
  if constexpr (std::is_same_v<T, Parameter>) {
    return argument.value();
  } else {
    return argument;
  }
}

}  // namespace ballast
