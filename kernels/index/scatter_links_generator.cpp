// Scatter-add on a GPU where numbers pick whole rows: numbers that pick the same row are linked,
// in their order, and whoever has the first of a row walks along the links. So nothing is atomic
// and sums repeat bit for bit.
#include "kernels/index/row_numbers.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/layout.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

// links(0, i): the next number after i that picks the same row, or any where there is none.
// links(1, i): how many pick it from i on where none does before i, else 0.
class ScatterLinks : public Generator<ScatterLinks> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "gpu"};

  Input<Buffer<int, 4>> numbers{"numbers"};
  Input<int> rows{"rows"};
  Output<Buffer<int, 2>> links{"links"};

  void generate() {
    // Algorithm. Lanes look at every 32nd of all numbers each.
    constexpr int kLanesOfItem = 32, kItems = 8;
    const Expr count = links.dim(1).extent();
    const auto row_of = [&](const Expr& at) {
      const PickedRow picked = picked_row(numbers, 0, at, 0, rows);
      return select(picked.is_valid, picked.value, -1);
    };
    Func scan("scan"), part("part"), whole("whole");
    RDom k(0, (count + kLanesOfItem - 1) / kLanesOfItem, "k");
    const Expr here = min(i, count - 1), other = k * kLanesOfItem + lane;
    const Expr row = row_of(here);
    const Expr is_same = other < count && row >= 0 && row_of(min(other, count - 1)) == row;
    scan(lane, i) = {count, 0, 0};
    scan(lane, i) = {
        select(is_same && other > here, min(scan(lane, i)[0], other), scan(lane, i)[0]),
        scan(lane, i)[1] + select(is_same && other >= here, 1, 0),
        scan(lane, i)[2] + select(is_same && other < here, 1, 0)};
    part(lane, i) = {scan(lane, i)[0], scan(lane, i)[1], scan(lane, i)[2]};
    RDom l(0, kLanesOfItem, "l");
    whole(i) = {count, 0, 0};
    whole(i) = {min(whole(i)[0], part(l, i)[0]), whole(i)[1] + part(l, i)[1],
                whole(i)[2] + part(l, i)[2]};
    links(word, i) =
        select(word == 0, min(whole(i)[0], count - 1), whole(i)[2] == 0, whole(i)[1], 0);
    set_any_layout(numbers);
    set_mins(links);

    // Schedule.
    links.dim(0).set_bounds(0, 2);
    const Var group("group"), item("item");
    links.split(i, group, item, kItems, TailStrategy::GuardWithIf)
        .gpu_blocks(group)
        .gpu_threads(word, item)
        .never_partition_all();
    whole.compute_at(links, word).store_in(MemoryType::Stack).bound_extent(i, 1);
    part.compute_at(links, group).bound_extent(lane, kLanesOfItem).gpu_threads(lane, i);
    scan.compute_at(part, lane).store_in(MemoryType::Stack).bound_extent(lane, 1);
    scan.bound_extent(i, 1);
  }

 private:
  Var lane{"lane"}, i{"i"}, word{"word"};
};

// result[o][number(i)][x] += updates[o][i][x].
class ScatterAddLinked : public Generator<ScatterAddLinked> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "gpu"};
  GeneratorParam<Type> type{"type", Float(32)};

  void configure() {
    numbers_ = add_input<Buffer<>>("numbers", Int(32), 4);
    links_ = add_input<Buffer<>>("links", Int(32), 2);
    updates_ = add_input<Buffer<>>("updates", type, 3);
    base_ = add_input<Buffer<>>("base", type, 3);  // what is added to: the result's own buffer
    items_x_ = add_input<int>("items_x");
    items_i_ = add_input<int>("items_i");
    result_ = add_output<Buffer<>>("result", type, 3);
  }

  void generate() {
    // Algorithm.
    Func result = *result_, walk("walk");
    const Expr count = updates_->dim(1).extent(), width = result_->dim(0).extent();
    const auto update_at = [&](const Expr& at) {
      return (*updates_)(x, unsafe_promise_clamped(at, 0, count - 1), z);
    };
    RDom r(0, count, "r");
    const Expr is_linked = r < (*links_)(1, i);
    r.where(is_linked);
    const Expr row = picked_row(*numbers_, 0, i, 0, result_->dim(1).extent()).value;
    walk(x, i, z) = {(*base_)(x, row, z), i};
    const FuncRef now = walk(x, i, z);
    // The condition stands here as well, or the sum would not be one over r.
    const Expr next = select(is_linked, now[1], i);
    walk(x, i, z) = {strict_float(wrapped_add(Expr(now[0]), update_at(next))),
                     (*links_)(0, unsafe_promise_clamped(next, 0, count - 1))};

    const auto blocks = [](const Expr& extent, const Expr& items) {
      return (extent + items - 1) / items;
    };
    RDom all({{0, *items_x_},
              {0, *items_i_},
              {0, blocks(count, *items_i_)},
              {0, blocks(width, *items_x_)}},
             "all");
    const Expr at_x = all[3] * *items_x_ + all[0], at_i = all[2] * *items_i_ + all[1];
    all.where(at_x < width);
    all.where(at_i < count);
    all.where((*links_)(1, min(at_i, count - 1)) > 0);
    const Expr at_row =
        picked_row(*numbers_, 0, min(at_i, count - 1), 0, result_->dim(1).extent()).value;
    result(x, y, z) = undef(type.value());
    result(at_x, at_row, z) = walk(at_x, at_i, z)[0];
    set_any_layout(*numbers_);
    set_mins(*links_, *updates_, *base_, *result_);

    // Schedule.
    result.update()
        .allow_race_conditions()
        .gpu_blocks(all[2], all[3], z)
        .gpu_threads(all[0], all[1])
        .never_partition_all();
    walk.compute_at(result, all[0]).store_in(MemoryType::Stack);
    for (const Var& one : {x, i, z}) walk.bound_extent(one, 1);
  }

 private:
  Var x{"x"}, y{"y"}, z{"z"}, i{"i"};
  GeneratorInput<Buffer<>>*numbers_ = nullptr, *links_ = nullptr, *updates_ = nullptr,
  *base_ = nullptr;
  GeneratorInput<int>*items_x_ = nullptr, *items_i_ = nullptr;
  GeneratorOutput<Buffer<>>* result_ = nullptr;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ScatterLinks, scatter_links)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ScatterAddLinked, scatter_add_linked)
