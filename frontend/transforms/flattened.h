// A function of trees seen as one of leaves, which is what transforms take.
#pragma once

#include "frontend/program/trace.h"
#include "frontend/tensor/tree.h"

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace ballast::internal {

// fn(arguments...) for leaves in the place of the arguments'. Remembers what the value looks like,
// so that results can be given its form. Borrows both.
template <class F, class Arguments>
class Flattened {
 public:
  using Value = std::decay_t<decltype(std::apply(std::declval<F&>(), std::declval<Arguments&>()))>;

  Flattened(F& fn, Arguments& arguments) : fn_(fn), arguments_(arguments) {}
  Flattened(const Flattened&) = delete;
  Flattened& operator=(const Flattened&) = delete;

  FlatFunction function() {
    return [this](const std::vector<Tensor>& leaves) {
      value_.emplace(std::apply(fn_, with_leaves(arguments_, leaves)));
      return leaves_of(*value_);
    };
  }

  // The value with its leaves replaced, taken from `next` onwards. Once function() has been called.
  Value value(std::vector<Tensor>::const_iterator& next) const {
    return with_leaves(*value_, next);
  }
  Value value(const std::vector<Tensor>& leaves) const { return with_leaves(*value_, leaves); }

 private:
  F& fn_;
  Arguments& arguments_;
  std::optional<Value> value_;
};

}  // namespace ballast::internal
