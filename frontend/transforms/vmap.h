// vmap: a function of one example becomes a function of many at once. Primitives have rules
// for operands with one axis more (frontend/transforms/vmap_rules.h); one without a rule runs
// example by example. Works eagerly and inside jit, grad and every other transform.
//
// Random numbers: one key for all examples gives each the same numbers; keys may be mapped like
// other arguments. A generator that the function draws from gives each example numbers of its own,
// and is advanced past all of them. Parameters are the same for all examples, and may be assigned
// only what is.
#pragma once

#include "frontend/transforms/flattened.h"

#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

namespace ballast {

// Which axis counts the examples: one number for all, or one for each argument (all tensors of it)
// or tensor of the result. Negative numbers count from the end; nullopt: none, it is shared.
class MapAxes {
 public:
  using Axis = std::optional<int64_t>;

  MapAxes(int64_t axis) : axes_{axis}, is_one_for_all_(true) {}
  MapAxes(std::initializer_list<Axis> axes) : axes_(axes) {}
  // Throws unless there is one for each of `count`; `name` says what these axes are.
  std::vector<Axis> spread(const char* name, size_t count, const char* of_what) const;

 private:
  std::vector<Axis> axes_;
  bool is_one_for_all_ = false;
};

namespace internal {

std::vector<Tensor> run_vmap(const FlatFunction& fn, const std::vector<Tensor>& leaves,
                             const std::vector<size_t>& leaf_counts, const MapAxes& in_axes,
                             const MapAxes& out_axes);

template <class F>
class Vmap {
 public:
  Vmap(F fn, MapAxes in_axes, MapAxes out_axes, const Where& where)
      : fn_(std::move(fn)),
        in_axes_(std::move(in_axes)),
        out_axes_(std::move(out_axes)),
        where_(where) {}

  template <class... Args>
  auto operator()(const Args&... args) {
    auto arguments = std::make_tuple(as_argument(args)...);
    Flattened flat(fn_, arguments);
    return at_line(where_, [&] {
      return flat.value(run_vmap(flat.function(), leaves_of(arguments), {leaf_count(args)...},
                                 in_axes_, out_axes_));
    });
  }

 private:
  F fn_;
  MapAxes in_axes_, out_axes_;
  Where where_;  // the user's line, for errors that name none
};

}  // namespace internal

// The function that maps `fn` over axes of its arguments and stacks the results along axes of
// theirs.
//   auto per_example = vmap(grad(loss), {std::nullopt, 0, 0});   // of (weights, x, label)
template <class F>
auto vmap(F fn, MapAxes in_axes = 0, MapAxes out_axes = 0, Where where = Where::here()) {
  return internal::Vmap<F>(std::move(fn), std::move(in_axes), std::move(out_axes), where);
}

// `program` on `inputs`, of which the mapped ones have the examples along axis 0: its outputs, and
// which of them are mapped (the others are the same for all examples).
struct Mapped {
  std::vector<Tensor> outputs;
  std::vector<bool> is_mapped;
};
Mapped run_mapped(const Program& program, const std::vector<Tensor>& inputs,
                  const std::vector<bool>& is_mapped, int64_t size);

}  // namespace ballast
