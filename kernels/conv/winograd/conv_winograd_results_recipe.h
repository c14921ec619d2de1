// What is common to the kernels that compute results by Winograd's algorithm: how results are cut
// into blocks, and the way from products to results. Needs Halide; stateless.
#pragma once

#include "kernels/conv/planes/conv_plane_channels_recipe.h"
#include "kernels/conv/winograd/conv_winograd.h"
#include "kernels/conv/winograd/conv_winograd_recipe.h"

#include <Halide.h>

#include <string>
#include <vector>

namespace ballast::kernels {

// Out is (place in a plane, sample, channel, group, 1). The kernel defines `product`(lane, vector,
// tile, element, o, p, g, n) of a block's tiles.
template <class Derived>
class WinogradGenerator : public PlaneChannelsGenerator<Derived> {
  using Base = PlaneChannelsGenerator<Derived>;

 protected:
  using Base::f, Base::g, Base::l, Base::n, Base::o, Base::out, Base::p, Base::parts, Base::rows,
      Base::v, Base::vectors;
  using typename Base::Expr;
  using Func = Halide::Func;
  using Var = Halide::Var;
  template <class T>
  using Input = typename Base::template Input<T>;

 public:
  Halide::GeneratorParam<std::string> form_name{"form", "dense"};
  // Of results; a block's samples; channels whose sums join the sum of all.
  Input<int> width{"width"}, height{"height"}, samples{"samples"}, chunk{"chunk"};

 protected:
  const WinogradForm& form() const { return winograd_form(form_name.value()); }
  int results() const { return form().results; }  // of a tile, along a side
  // A row's tiles, and a sample's rows of them.
  Expr columns() const { return (width + results() - 1) / results(); }
  Expr all_rows() const { return (height + results() - 1) / results(); }

  // Part `which` is one of a block, and blocks of a sample's rows lie one after the other.
  Expr row_blocks() const { return (all_rows() + rows - 1) / rows; }
  Expr first_row_of_tiles(const Expr& which) const {
    return min((which / parts) % row_blocks() * rows, all_rows() - rows);
  }
  Expr first_sample(const Expr& which) const {
    return min((which / parts) / row_blocks() * samples, out.dim(1).extent() - samples);
  }

  // Results as they lie in rows of whole tiles.
  void gather_results() {
    const int side = form().side();
    windows = Halide::RDom({{0, results()}, {0, results()}, {0, columns()}, {0, rows * samples}},
                           "windows");
    const Expr across = windows[0], down = windows[1], column = windows[2], row = windows[3];
    const auto element = [&](int y, int x) {
      return product(l, v, row * columns() + column, y * side + x, o, p, g, n);
    };
    const Expr at = ((row * results() + down) * columns() + column) * results() + across;
    gathered(l, v, f, o, p, g, n) = Halide::undef<float>();
    gathered(l, v, at, o, p, g, n) =
        mux(down * results() + across,
            winograd::transformed(winograd::gather(form()), results(), side, element));
  }

  // A block has at most `most_tiles`. A sample's rows of results lie one after the other: element x
  // may be of any of them.
  void store_rows(int most_tiles) {
    const Expr tile_row = results() * columns(), longest = rows * results() * width;
    place(t) = t / width * tile_row + t % width;
    const auto first = [=](const Expr& which) {
      return first_row_of_tiles(which) * results() * width;
    };
    const Expr sample_blocks = (out.dim(1).extent() + samples - 1) / samples;
    this->store(
        gathered,
        {row_blocks() * sample_blocks, longest, samples,
         [=](const Expr& which) { return min(longest, out.dim(0).extent() - first(which)); },
         [=](const Expr& x, const Expr& j, const Expr& sample) {
           return std::vector<Expr>{Halide::unsafe_promise_clamped(
               sample * rows * results() * tile_row + place(x + j), 0, results_of(most_tiles) - 1)};
         },
         [=](const Expr& which, const Expr& x, const Expr& sample) {
           return std::vector<Expr>{first(which) + x, first_sample(which) + sample};
         }});
  }

  void schedule_results(int most_tiles) {
    using Halide::MemoryType;
    this->schedule_store();
    product.compute_at(out, this->tile()).store_in(MemoryType::Stack);
    product.bound_storage(q, most_tiles).bound(e, 0, form().elements());
    place.compute_at(out, this->part()).store_in(MemoryType::Stack);
    place.bound(t, 0, rows * results() * width).bound_storage(t, results_of(most_tiles));
    place.never_partition_all();
    gathered.compute_at(out, this->tile()).store_in(MemoryType::Stack);
    gathered.bound_storage(f, results_of(most_tiles)).never_partition_all();
    gathered.update()
        .allow_race_conditions()
        .never_partition_all()
        .reorder({l, windows[0], windows[1], v, windows[2], windows[3], o, p, g, n})
        .vectorize(l)
        .unroll(windows[0])
        .unroll(windows[1]);
    for (Func func : {product, gathered}) {
      func.bound_extent(l, kLanes).bound_extent(v, vectors);
      for (const Var& one : {o, p, g, n}) func.bound_extent(one, 1);
    }
  }

  Var q{"q"}, e{"e"};
  Func product{"product"};

 private:
  int results_of(int tiles) const { return tiles * results() * results(); }

  Var t{"t"};
  Func place{"place"}, gathered{"gathered"};
  Halide::RDom windows;
};

}  // namespace ballast::kernels
