// Padded planes on a work-group's stack, which conv_planes and conv_plane_channels multiply from.
// Needs Halide; stateless.
#pragma once

#include "kernels/conv/conv_recipe.h"
#include "kernels/conv/planes/conv_planes.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/hints.h"

#include <Halide.h>

#include <string>
#include <vector>

namespace ballast::kernels {

// What a kernel that has a window of any kind declares for it. It is a table of places, so strides,
// dilations and flipped windows cost nothing.
struct PlaneWindow {
  using Expr = Halide::Expr;

  Halide::GeneratorInput<int> stride_h{"stride_h"}, stride_w{"stride_w"}, dilation_h{"dilation_h"},
      dilation_w{"dilation_w"}, kernel_h{"kernel_h"}, kernel_w{"kernel_w"};
  Halide::GeneratorInput<Halide::Buffer<float, 4>> same{"same"};  // as out: (pixel, channel, ...)

  Expr taps() const { return kernel_w * kernel_h; }
  // Steps that most windows have.
  std::vector<Expr> usual_steps() const { return {stride_w == 1, stride_w == 2}; }

  // Where the taps of a window lie in the padded planes of `channels`, from the place of its first.
  void find_places(const Expr& plane, const Expr& pitch, const Expr& channels) {
    const Expr down = (t / kernel_w) * dilation_h, along = (t % kernel_w) * dilation_w;
    window(t) = ((down % stride_h) * stride_w + along % stride_w) * plane +
                (down / stride_h) * pitch + along / stride_w;
    const Halide::RDom r(0, taps(), 0, channels, "r");
    place(t) = 0;
    place(r.x + taps() * r.y) = window(r.x) + stride_h * stride_w * plane * r.y;
  }

  void schedule(const Halide::LoopLevel& level) {
    set_mins(same);
    for (Halide::Func table : {window, place}) {
      table.compute_at(level).store_in(Halide::MemoryType::Stack).bound_storage(t, kPlaneTaps);
      table.never_partition_all();
    }
    place.update().never_partition_all();
  }

  Halide::Func place{"place"};

 private:
  Halide::Var t{"t"};
  Halide::Func window{"window"};
};

// A work-group copies the rows it reads between zeros on its stack. The pixels of a tile are
// neighbours in the padded planes, across the ends of rows: what falls into the gap between rows is
// computed and not stored. Of a convolution with strides each phase has a plane of its own.
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

  Input<int> top{"top"}, left{"left"};
  // A padded plane of one phase: rows `pitch` apart, `plane` elements; a block of results has
  // `rows` rows and takes `elements` padded ones (whole vectors) and `tiles` tiles of pixels.
  Input<int> pitch{"pitch"}, plane{"plane"}, rows{"rows"}, elements{"elements"}, tiles{"tiles"};
  // Channels are shared out among `parts` work-groups per block.
  Input<int> parts{"parts"}, tiles_per_part{"tiles_per_part"};
  Input<Buffer<float, 5>> in{"in"};            // (x, y, channel, group, n)
  Input<Buffer<float, 4>> weights{"weights"};  // (row, tap, tile, group)
  EpilogueInputs<2, 5> epilogue;               // its channel: (channel, group)
  Output<Buffer<float, 5>> out{"out"};         // (x, y, channel, group, n)

  // Inputs of the kernels themselves are declared later, and come before `out` all the same.
  bool allow_out_of_order_inputs_and_outputs() const override { return true; }

 protected:
  // Row of results, of so many, that block `which / parts` begins at.
  Expr first_row(const Expr& which, const Expr& height) const {
    return min((which / parts) * rows, height - rows);
  }
  // Of all channels; o counts the tiles of a work-group.
  Expr tile_of(const Expr& which, const Expr& tile) const {
    return (which % parts) * tiles_per_part + tile;
  }
  // A tile of channels that would pass the last one moves inwards.
  Expr channel_of(const Expr& tile, const Expr& row, int tile_rows) const {
    return min(tile * tile_rows, out.dim(2).extent() - tile_rows) + row;
  }

  // What a work-group's planes hold: `samples` one below the other, `rows` of a plane each, and of
  // the channels a set.
  struct Held {
    Expr first_sample, samples, first_row, rows, channels;
    // The next work-group's begin so much further down, where it has the same, of results that have
    // so many.
    Expr next_rows = {}, height = {};
  };

  // Element (x, y) of a padded channel lies at row y / step_h, column x / step_w of the plane of
  // its phase, the steps being those between windows.
  void pad(const Expr& step_h, const Expr& step_w, const Held& held) {
    padded(f, s, p, g, n) = 0.0f;
    const Expr columns = in.dim(0).extent() / step_w;  // that every phase of a row has
    Expr wider = columns + 1;
    for (int lanes : kCopied) {
      const int least = lanes == 1 ? 0 : lanes;
      copy(step_h, step_w, held, lanes, columns >= least && columns < wider);
      wider = lanes;
    }
  }

  // Those of all channels of a sample, for results of so many rows, and where a window's taps lie
  // in them.
  void make_planes(PlaneWindow& window, const Expr& height) {
    const Expr channels = in.dim(2).extent();
    pad(window.stride_h, window.stride_w,
        {n, 1, first_row(p, height), plane / pitch, channels, rows, height});
    window.find_places(plane, pitch, channels);
  }

  // Row y of `channel`, or of what follows the last: the same rows' first channels of the next
  // block of rows, or, below a plane, those of the next group, which lie behind.
  struct Ahead {
    Expr y, channel;
  };
  Ahead ahead(const Expr& channel, const Expr& y, const Expr& step_h, const Held& held) const {
    const Expr channels = in.dim(2).extent();
    if (!held.next_rows.defined()) return {y, min(channel, channels - 1)};
    const Expr is_inside = channel < channels,
               is_last = held.first_row + held.next_rows >= held.height;
    return {y + select(is_inside, 0, is_last, -held.first_row, held.next_rows) * step_h,
            channel - select(is_inside || is_last, 0, channels)};
  }

  // In vectors of so many lanes, of which the last of a row moves inwards, where `is_taken`.
  void copy(const Expr& step_h, const Expr& step_w, const Held& held, int lanes,
            const Expr& is_taken) {
    const Expr width = in.dim(0).extent(), height = in.dim(1).extent();
    const Expr columns = (width + step_w - 1) / step_w;  // at most
    Halide::RDom from_rows({{0, lanes},
                            {0, select(is_taken, (columns + lanes - 1) / lanes, 0)},
                            {0, held.rows},
                            {0, step_w},
                            {0, step_h},
                            {0, held.samples},
                            {0, held.channels}},
                           "from_rows");
    const Expr lane = from_rows[0], vector = from_rows[1], row = from_rows[2],
               phase_w = from_rows[3], phase_h = from_rows[4], sample = from_rows[5],
               channel = from_rows[6];
    const Expr y = (held.first_row + row) * step_h + phase_h - top;
    from_rows.where(y >= 0 && y < height);
    const Expr first = max(left - phase_w + step_w - 1, 0) / step_w,
               last = (width - 1 + left - phase_w) / step_w;
    if (lanes == 1) from_rows.where(first <= last);  // a row shorter than a stride may have none
    const Expr column = first + min(vector * lanes, last + 1 - lanes - first) + lane;
    const Expr at = ((channel * step_h + phase_h) * step_w + phase_w) * plane +
                    (sample * held.rows + row) * pitch;
    // A channel lies in pages of its own, so the CPU does not see what comes next. Vectors of two
    // phases ask for half each of what both read.
    const Expr from = s * held.channels + channel, of = held.first_sample + sample;
    const Expr x = column * step_w + phase_w - left, value = in(x, y, from, g, of);
    const Expr asked = x - lane * (step_w - 1) + phase_w * lanes;
    const Ahead next = ahead(from + 2, y, step_h, held);
    // Single elements ask for nothing: it would be a read, and of what may not be there.
    padded(Halide::unsafe_promise_clamped(at + column, 0, elements - 1), s, p, g, n) =
        lanes == 1 ? value
                   : select(step_w <= 2,
                            with_prefetch(value, in(asked, next.y, next.channel, g, of)), value);
    lanes_of_copies.push_back(from_rows[0]);
  }

  // `conditions`: under which rows are copied in vectors; none: always.
  void schedule_planes(const Halide::LoopLevel& level, const std::vector<Expr>& conditions) {
    padded.compute_at(level).store_in(Halide::MemoryType::Stack);
    padded.bound(f, 0, elements).bound_storage(f, kPlaneElements).never_partition_all();
    for (const Halide::Var& one : {s, p, g, n}) padded.bound_extent(one, 1);
    padded.vectorize(f, kLanes, Halide::TailStrategy::RoundUp);
    for (size_t i = 0; i < lanes_of_copies.size(); ++i) {
      Halide::Stage copy = padded.update(int(i));
      copy.allow_race_conditions().never_partition_all();
      if (kCopied[i] == 1) continue;
      for (const Expr& condition : conditions) {
        copy.specialize(condition).vectorize(lanes_of_copies[i]);
      }
      if (conditions.empty()) copy.vectorize(lanes_of_copies[i]);
    }
  }

  void schedule_planes(const Halide::LoopLevel& level, PlaneWindow& window) {
    schedule_planes(level, window.usual_steps());
    window.schedule(level);
  }

  void set_layouts(int tile_rows) {
    set_mins(in, out);
    weights.dim(0).set_bounds(0, tile_rows).set_stride(1);
    weights.dim(1).set_min(0).set_stride(tile_rows);
    for (int d = 2; d < 4; ++d) weights.dim(d).set_min(0);
    epilogue.set_layouts();
  }

  // A sum of products through the epilogue, for out(column, y, channel, g, n).
  Expr with_epilogue(const Expr& sum, const Expr& column, const Expr& y, const Expr& channel) {
    return epilogue.with_relu(epilogue.with_terms(sum, {channel, g}, {column, y, channel, g, n}));
  }

  Halide::Var f{"f"}, s{"s"}, l{"l"}, v{"v"}, j{"j"}, o{"o"}, p{"p"}, g{"g"}, n{"n"};
  Halide::Func padded{"padded"};  // (place in the planes, set of channels, part, group, n)

 private:
  static constexpr int kCopied[] = {kLanes, kLanes / 2, kLanes / 4, 1};  // lanes

  std::vector<Halide::RVar> lanes_of_copies;
};

// What kernels with pixels in the lanes have: tiles of `channels` x `vectors` of pixels of any
// window. `Derived` defines product, the sums of a tile, and writes out.
template <class Derived>
class PixelPlanesGenerator : public PlanesGenerator<Derived> {
  using Base = PlanesGenerator<Derived>;

 public:
  Halide::GeneratorParam<int> channels{"channels", 8};
  Halide::GeneratorParam<int> vectors{"vectors", 3};

  PlaneWindow window;

  void generate() {
    this->make_planes(window, height());
    static_cast<Derived*>(this)->sum();
    static_cast<Derived*>(this)->store();
  }

 protected:
  using typename Base::Expr;

  Expr height() const { return this->out.dim(1).extent(); }
  Expr width() const { return this->out.dim(0).extent(); }
  Expr first_row(const Expr& which) const { return Base::first_row(which, height()); }

  Halide::Func product{"product"};
};

}  // namespace ballast::kernels
