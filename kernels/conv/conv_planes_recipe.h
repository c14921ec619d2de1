// Padded planes on a work-group's stack, which conv_planes and conv_plane_channels multiply from.
// Needs Halide; stateless.
#pragma once

#include "kernels/conv/conv_planes.h"
#include "kernels/conv/conv_recipe.h"
#include "kernels/hints.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/shuffle.h"

#include <Halide.h>

#include <string>
#include <vector>

namespace ballast::kernels {

// A work-group copies the rows it reads, of all channels, between zeros on its stack. The pixels of
// a tile are neighbours in the padded planes, across the ends of rows: what falls into the gap
// between rows is computed and not stored. A window is a table of places, so strides (whose phases
// are planes of their own), dilations and flipped windows cost nothing.
template <class Derived>
class PlanesGenerator : public Halide::Generator<Derived> {
 protected:
  using Expr = Halide::Expr;
  template <class T>
  using Input = Halide::GeneratorInput<T>;
  template <class T>
  using Output = Halide::GeneratorOutput<T>;
  template <class T, int D>
  using Buffer = Halide::Buffer<T, D>;

 public:
  Halide::GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<int> stride_h{"stride_h"}, stride_w{"stride_w"}, dilation_h{"dilation_h"},
      dilation_w{"dilation_w"}, top{"top"}, left{"left"}, kernel_h{"kernel_h"},
      kernel_w{"kernel_w"};
  // A padded plane of one phase: rows `pitch` apart, `plane` elements; a block of results has
  // `rows` rows and takes `elements` padded ones (whole vectors) and `tiles` tiles of pixels.
  Input<int> pitch{"pitch"}, plane{"plane"}, rows{"rows"}, elements{"elements"}, tiles{"tiles"};
  Input<int> last_lane{"last_lane"};  // of the vectors of a row of results
  // Channels are shared out among `parts` work-groups per block.
  Input<int> parts{"parts"}, tiles_per_part{"tiles_per_part"};
  Input<int> chunk_taps{"chunk_taps"};  // whose sums join the sum of all; conv_winograd's channels
  Input<Buffer<float, 5>> in{"in"};     // (x, y, channel, group, n)
  Input<Buffer<float, 4>> weights{"weights"};  // (row, tap, tile, group)
  EpilogueInputs<2, 5> epilogue;               // its channel: (channel, group)
  Input<Buffer<float, 4>> same{"same"};        // as out: (pixel, channel, group, n)
  Output<Buffer<float, 5>> out{"out"};         // (x, y, channel, group, n)

 protected:
  // Of windows, as are `rows`; results are `results_per_window` times as many.
  Expr first_row(const Expr& which) const { return min((which / parts) * rows, all_rows() - rows); }
  Expr all_rows() const {
    return (out.dim(1).extent() + results_per_window - 1) / results_per_window;
  }
  // Of all channels; o counts the tiles of a work-group.
  Expr tile_of(const Expr& which, const Expr& tile) const {
    return (which % parts) * tiles_per_part + tile;
  }
  // A tile of channels that would pass the last one moves inwards.
  Expr channel_of(const Expr& tile, const Expr& row, int tile_rows) const {
    return min(tile * tile_rows, out.dim(2).extent() - tile_rows) + row;
  }

  // The padded planes, and where a window's taps lie in them.
  void make_planes() {
    pad(stride_h, stride_w);
    find_places();
  }

  // Element (x, y) of a padded channel lies at row y / step_h, column x / step_w of the plane of
  // its phase, the steps being those between windows.
  void pad(const Expr& step_down, const Expr& step_across) {
    step_h = step_down, step_w = step_across;
    const Expr width = in.dim(0).extent(), channels = in.dim(2).extent();
    const Expr columns = (width + step_w - 1) / step_w;  // of a phase, at most
    const Expr is_wide = width / step_w >= kLanes && !is_patched(), plane_rows = plane / pitch;
    padded(f, p, g, n) = 0.0f;
    wide = Halide::RDom({{0, kLanes},
                         {0, select(is_wide, (columns + kLanes - 1) / kLanes, 0)},
                         {0, plane_rows},
                         {0, step_w},
                         {0, step_h},
                         {0, channels}},
                        "wide");
    copy(wide, wide[0], wide[2], wide[3], wide[4], wide[5],
         [&](const Expr& first, const Expr& last) {
           return first + min(wide[1] * kLanes, last + 1 - kLanes - first) + wide[0];
         });
    turn_patches(plane_rows);
    narrow = Halide::RDom({{0, select(is_wide || is_patched(), 0, columns)},
                           {0, plane_rows},
                           {0, step_w},
                           {0, step_h},
                           {0, channels}},
                          "narrow");
    copy(narrow, 0, narrow[1], narrow[2], narrow[3], narrow[4],
         [&](const Expr& first, const Expr& last) {
           narrow.where(first + narrow[0] <= last);
           return first + narrow[0];
         });
  }

  // Whether rows are whole patches of whole vectors of phases.
  Expr is_patched() const {
    const Expr width = in.dim(0).extent();
    return step_w % kPatch == 0 && width % step_w == 0 && width / step_w >= kPatch && left == 0;
  }

  // Such rows are transposed in blocks: as many phases of as many columns.
  void turn_patches(const Expr& plane_rows) {
    const Expr columns = in.dim(0).extent() / step_w;
    patches = Halide::RDom({{0, kPatch},
                            {0, kPatch},
                            {0, (columns + kPatch - 1) / kPatch},
                            {0, select(is_patched(), step_w / kPatch, 0)},
                            {0, plane_rows},
                            {0, step_h},
                            {0, in.dim(2).extent()}},
                           "patches");
    const Expr phase = patches[3] * kPatch, row = patches[4], phase_h = patches[5],
               channel = patches[6];
    const Expr y = (first_row(p) + row) * step_h + phase_h - top;
    patches.where(y >= 0 && y < in.dim(1).extent());
    Halide::Func block("block");
    block(l, j, column, phase_w, v, o, g, n) = in((column + j) * step_w + phase_w + l, v, o, g, n);
    turned_patches =
        transpose_block(block, kPatch, sizeof(float), l, j, {column, phase_w, v, o, g, n});
    const Expr first = Halide::min(patches[2] * kPatch, columns - kPatch);
    const Expr plane_of = (channel * step_h + phase_h) * step_w + phase + patches[1];
    padded(Halide::unsafe_promise_clamped(plane_of * plane + row * pitch + first + patches[0], 0,
                                          elements - 1),
           p, g, n) = turned_patches.back()(patches[0], patches[1], first, phase, y, channel, g, n);
  }

  template <class Column>
  void copy(Halide::RDom& domain, const Expr& lane, const Expr& row, const Expr& phase_w,
            const Expr& phase_h, const Expr& channel, const Column& column_in) {
    const Expr width = in.dim(0).extent(), height = in.dim(1).extent();
    const Expr y = (first_row(p) + row) * step_h + phase_h - top;
    domain.where(y >= 0 && y < height);
    const Expr first = max(left - phase_w + step_w - 1, 0) / step_w,
               last = (width - 1 + left - phase_w) / step_w;
    const Expr column = column_in(first, last);
    const Expr at = ((channel * step_h + phase_h) * step_w + phase_w) * plane + row * pitch;
    // A channel lies in pages of its own, so the CPU does not see what comes next. Vectors of two
    // phases ask for half each of what both read.
    const Expr x = column * step_w + phase_w - left, value = in(x, y, channel, g, n),
               asked = x - lane * (step_w - 1) + phase_w * kLanes,
               ahead = in(asked, y, min(channel + 2, in.dim(2).extent() - 1), g, n);
    padded(Halide::unsafe_promise_clamped(at + column, 0, elements - 1), p, g, n) =
        select(step_w <= 2, with_prefetch(value, ahead), value);
  }

  // Where the taps of a window lie in the padded planes, from the place of its first one.
  void find_places() {
    const Expr taps = kernel_w * kernel_h, channel_elements = stride_h * stride_w * plane;
    const Expr down = (t / kernel_w) * dilation_h, along = (t % kernel_w) * dilation_w;
    window(t) = ((down % stride_h) * stride_w + along % stride_w) * plane +
                (down / stride_h) * pitch + along / stride_w;
    const Halide::RDom r(0, taps, 0, in.dim(2).extent(), "r");
    place(t) = 0;
    place(r.x + taps * r.y) = window(r.x) + channel_elements * r.y;
  }

  void schedule_planes(const Halide::LoopLevel& level) {
    padded.compute_at(level).store_in(Halide::MemoryType::Stack);
    padded.bound(f, 0, elements).bound_storage(f, kPlaneElements).never_partition_all();
    for (const Halide::Var& one : {p, g, n}) padded.bound_extent(one, 1);
    padded.vectorize(f, kLanes, Halide::TailStrategy::RoundUp);
    padded.update(0).allow_race_conditions().never_partition_all();
    if (Halide::Internal::is_const(step_w)) {
      padded.update(0).vectorize(wide[0]);
    } else {
      for (int step : {1, 2}) padded.update(0).specialize(step_w == step).vectorize(wide[0]);
    }
    padded.update(1).allow_race_conditions().never_partition_all();
    padded.update(1).vectorize(patches[0]).unroll(patches[1]);
    for (Halide::Func func : turned_patches) {
      func.compute_at(padded, patches[2]).store_in(Halide::MemoryType::Register);
      func.bound_extent(l, kPatch).bound_extent(j, kPatch).vectorize(l).unroll(j);
      for (const Halide::Var& one : {column, phase_w, v, o, g, n}) func.bound_extent(one, 1);
    }
    padded.update(2).never_partition_all();
    if (!window.defined()) return;
    for (Halide::Func table : {window, place}) {
      table.compute_at(level).store_in(Halide::MemoryType::Stack).bound_storage(t, kPlaneTaps);
      table.never_partition_all();
    }
    place.update().never_partition_all();
  }

  void set_layouts(int tile_rows) {
    set_mins(in, out, same);
    weights.dim(0).set_bounds(0, tile_rows).set_stride(1);
    weights.dim(1).set_min(0).set_stride(tile_rows);
    for (int d = 2; d < 4; ++d) weights.dim(d).set_min(0);
    epilogue.set_layouts();
  }

  // A sum of products through the epilogue, for out(column, y, channel, g, n).
  Expr with_epilogue(const Expr& sum, const Expr& column, const Expr& y, const Expr& channel) {
    return epilogue.with_relu(epilogue.with_terms(sum, {channel, g}, {column, y, channel, g, n}));
  }

  static constexpr int kPatch = 8;

  int results_per_window = 1;  // down, and across
  Expr step_h, step_w;

  Halide::Var column{"column"}, phase_w{"phase_w"};
  Halide::Var f{"f"}, t{"t"}, l{"l"}, v{"v"}, j{"j"}, o{"o"}, p{"p"}, g{"g"}, n{"n"};
  Halide::Func padded{"padded"}, window{"window"}, place{"place"};
  std::vector<Halide::Func> turned_patches;
  Halide::RDom wide, patches, narrow;
};

}  // namespace ballast::kernels
