// What is common to the kernels over padded planes whose lanes are channels: their sums are
// transposed in blocks of 16 x 16 and written in vectors along the rows. Needs Halide; stateless.
#pragma once

#include "kernels/conv/planes/conv_planes_recipe.h"
#include "kernels/recipe/shuffle.h"

#include <Halide.h>

#include <functional>
#include <vector>

namespace ballast::kernels {

template <class Derived>
class PlaneChannelsGenerator : public PlanesGenerator<Derived> {
  using Base = PlanesGenerator<Derived>;

 public:
  Halide::GeneratorParam<int> vectors{"vectors", 4};  // of channels, in a tile

 protected:
  using Base::channel_of, Base::g, Base::j, Base::l, Base::n, Base::o, Base::out, Base::p,
      Base::tile_of, Base::v;
  using typename Base::Expr;
  using Func = Halide::Func;

  int tile_channels() const { return vectors * kLanes; }

  // The stage's sums of pixels `q` by tiles of so many, all in registers; `tile` is the loop over
  // tiles, `around` are those around it.
  void go_by_tiles(Halide::Stage stage, const Halide::Var& q, const Halide::Var& tile, int pixels,
                   std::vector<Halide::VarOrRVar> around) {
    Halide::Var qi("qi");
    around.insert(around.begin(), {l, v, qi, tile});
    stage.split(q, tile, qi, pixels).reorder(around).vectorize(l).unroll(v).unroll(qi);
    stage.never_partition_all();
  }

  // Results that lie one after the other in memory: of each of `blocks`, `count` runs of up to
  // `longest`.
  struct Runs {
    Expr blocks, longest, count;
    std::function<Expr(Expr part)> length;                           // at least a vector
    std::function<std::vector<Expr>(Expr x, Expr j, Expr y)> place;  // of element x + j of run y
    std::function<std::vector<Expr>(Expr part, Expr x, Expr y)> result;  // its place in out: x, y
  };

  // sums(lane, vector, place..., o, p, g, n).
  void store(const Func& sums, const Runs& runs) {
    const Expr channels = out.dim(2).extent(),
               all_tiles = (channels + tile_channels() - 1) / tile_channels();
    results = Halide::RDom({{0, kLanes},
                            {0, kLanes},
                            {0, (runs.longest + kLanes - 1) / kLanes},
                            {0, runs.count},
                            {0, vectors},
                            {0, this->tiles_per_part},
                            {0, runs.blocks * this->parts}},
                           "results");
    const Expr run = results[3], vector = results[4], tile = results[5], part = results[6];
    results.where(tile_of(part, tile) < all_tiles);
    const auto first_of = [&](const Expr& number, const Expr& which) {
      return Halide::min(number * kLanes, runs.length(which) - kLanes);
    };

    // Vectors are numbered: where they begin depends on the part, and Halide would not see that it
    // is one place.
    Func block("block"), ended("ended");
    std::vector<Expr> from = runs.place(first_of(x, p), j, y);
    from.insert(from.begin(), {l, v});
    from.insert(from.end(), {o, p, g, n});
    block(l, j, v, x, y, o, p, g, n) = sums(from);
    turned = transpose_block(block, kLanes, sizeof(float), l, j, {v, x, y, o, p, g, n});
    const std::vector<Expr> at = runs.result(p, first_of(x, p) + l, y);
    ended(l, j, v, x, y, o, p, g, n) =
        this->with_epilogue(turned.back()(l, j, v, x, y, o, p, g, n), at[0], at[1],
                            channel_of(tile_of(p, o), v * kLanes + j, tile_channels()));
    turned.push_back(ended);

    const std::vector<Expr> to = runs.result(part, first_of(results[2], part) + results[0], run);
    out(x, y, c, g, n) = Halide::undef<float>();
    out(to[0], to[1],
        channel_of(tile_of(part, tile), vector * kLanes + results[1], tile_channels()), g, n) =
        ended(results[0], results[1], vector, results[2], run, tile, part, g, n);
  }

  void schedule_store() {
    const Halide::RVar channel = results[1], column = results[2];
    Halide::Stage write = Func(out).update();
    write.allow_race_conditions();
    write.reorder({results[0], channel, column, results[3], results[4], tile(), part(), g, n});
    write.vectorize(results[0]).unroll(channel);
    write.gpu_blocks(part(), g, n).never_partition_all();
    for (Func func : turned) {
      func.compute_at(out, column).store_in(Halide::MemoryType::Register);
      func.bound_extent(l, kLanes).bound_extent(j, kLanes);
      for (const Halide::Var& one : {v, x, y, o, p, g, n}) func.bound_extent(one, 1);
      func.vectorize(l).unroll(j);
    }
    turned.back().specialize(this->epilogue.is_plain());
    turned.back().specialize(this->epilogue.has_residual == 0);
  }

  // The loops over a work-group's tiles, and over work-groups.
  Halide::RVar tile() const { return results[5]; }
  Halide::RVar part() const { return results[6]; }

  Halide::Var x{"x"}, y{"y"}, c{"c"};

 private:
  std::vector<Func> turned;  // (lane, channel, vector of channels, column, row, o, p, g, n) at last
  Halide::RDom results;
};

}  // namespace ballast::kernels
