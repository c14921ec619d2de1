// Depthwise 3x3 of stride 1 between zeros one wide, on CPUs, where blocks of rows are whole cache
// lines: vectors run on over the ends of rows, so results are written line by line (and past the
// caches where there are many), and a vector's lanes that are another row's first or last pixel
// see zeros where their windows leave their rows. A work-item copies the rows of a block, with the
// row before and the row after or zeros, to its stack, in the nearest cache, because results often
// lie as their x does, multiples of 4 KiB apart, and a load that comes soon after a store to such
// an address waits (1.1 ms instead of 0.3 on 8x64x56x56).
//
//   conv_depth_lines         y, or dx with flipped weights: the bits of conv_depth
//   conv_depth_weight_lines  dw, of pairs: sums over pixels in 16 partial sums per tap, added at
//                            the end
//
// Where two rows are whole lines (`is_paired`), vectors two rows apart are computed together: a
// loaded row serves both. What limits both kernels, data at hand, is loads that cross lines.
#include "kernels/conv/depthwise/conv_depth.h"
#include "kernels/conv/depthwise/conv_depth_recipe.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/pairwise_sum.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kSide = 3, kTaps = kSide * kSide;

// Results are (l, c, q, b, channel of the group, g, n): element l of vector c of the two rows q of
// block b, or of the whole block, with a single q, where they are not paired.
template <class Derived>
class LinesGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

 protected:
  GeneratorInput<int> width{"width"}, length{"length"},  // of a row, of a block
      margin{"margin"};                                  // before and after a block: whole vectors
  GeneratorInput<Buffer<float, 3>> in{"in"};             // (a plane's pixels, g, n)
  Var f{"f"}, l{"l"}, c{"c"}, q{"q"}, b{"b"}, o{"o"}, g{"g"}, n{"n"};
  Var edge_column{"edge_column"}, edge_side{"edge_side"};
  Func padded{"padded"}, edges{"edges"};

  // Of the lanes of a vector, a bit for each whose window leaves its row at this side.
  void find_edges() {
    const Expr at = edge_column * kLanes;
    const Expr row = cast<int>((cast<float>(at) + 0.5f) / cast<float>(width));
    const Expr start = at - row * width;
    const Expr lane =
        select(edge_side == 1, width - 1 - start, select(start == 0, 0, width - start));
    edges(edge_side, edge_column) = select(lane < kLanes, 1 << min(lane, kLanes), 0);
  }

  // Margins are zeros where they are outside of the plane.
  void pad() {
    const Expr plane = in.dim(0).extent(), first = b * length - margin;
    const auto clamped = [](const Expr& place) {
      return unsafe_promise_clamped(place, 0, kDepthLinesElements - 1);
    };
    padded(f, b, g, n) = undef<float>();
    const RDom edge(0, kLanes, 0, margin / kLanes, 0, 2, "edge");
    padded(clamped(edge.z * (margin + length) + edge.y * kLanes + edge.x), b, g, n) = 0.0f;
    RDom part(0, kLanes, 0, (length + 2 * margin) / kLanes, "part");
    part.where(first + part.y * kLanes >= 0);
    part.where(first + part.y * kLanes < plane);
    const Expr place = part.y * kLanes + part.x;
    padded(clamped(place), b, g, n) = in(first + place, g, n);
    for (const RDom& domain : {edge, part}) {
      padded.update(domain.dimensions() == 3 ? 0 : 1)
          .allow_race_conditions()
          .vectorize(domain[0])
          .never_partition_all();
    }
  }

  // The place in `padded` of what a tap sees, in vector `column` of rows 2 pair. Written so that
  // rows that two vectors share are the same address, and one load.
  Expr place_of(const Expr& column, const Expr& pair, const Expr& ky, const Expr& kx) {
    return margin + (2 * pair + ky - 1) * width + (column * kLanes + l + (kx - 1));
  }

  // `sum` with the product of a tap where its window does not leave the row of its lane's pixel.
  Expr with_tap(const Expr& sum, const Expr& more, const Expr& column, int kx) {
    return kx == 1 ? more : select((edges(kx / 2, column) & (1 << l)) == 0, more, sum);
  }

  void schedule_edges(const LoopLevel& level) {
    edges.compute_at(level).store_in(MemoryType::Stack).never_partition_all();
    edges.bound_storage(edge_column, kDepthLinesElements / kLanes);
    edges.bound(edge_side, 0, 2).unroll(edge_side);
  }

  void schedule_padded(const LoopLevel& level) {
    padded.compute_at(level).store_in(MemoryType::Stack);
    padded.bound_storage(f, kDepthLinesElements).never_partition_all();
  }

  template <class Tensor>
  void bound_lines(const Tensor& tensor) {
    for (int d = 0; d < 7; ++d) tensor.dim(d).set_min(0);
    tensor.dim(0).set_extent(kLanes);
  }
};

class ConvDepthLines : public LinesGenerator<ConvDepthLines> {
 public:
  Input<int> is_paired{"is_paired"};
  DepthWindows<4> windows;        // (kx, ky, channel, g); a work-group ends waiting for its results
  EpilogueInputs<2, 7> epilogue;  // its channel: (channel, g)
  Output<Buffer<float, 7>> out{"out"};

  void generate() {
    pad();
    find_edges();
    Expr value = 0.0f;
    for (int ky = 0; ky < kSide; ++ky) {
      for (int kx = 0; kx < kSide; ++kx) {
        const Expr weight = windows.weight(kSide, kx, ky, {o, g});
        const Expr pixels = padded(place_of(c, q, ky, kx), b, g, n);
        value = with_tap(value, fma_f32(pixels, weight, value), c, kx);
      }
    }
    value = epilogue.with_terms(value, {o, g}, {l, c, q, b, o, g, n});
    // The next plane is copied when this one is done.
    const Expr place = b * length + 2 * q * width + c * kLanes + l;
    value = with_prefetch(value, in(unsafe_promise_clamped(place, 0, in.dim(0).extent() - 1),
                                    unsafe_promise_clamped(g + 1, 0, in.dim(1).extent() - 1), n));
    out(l, c, q, b, o, g, n) = epilogue.with_relu(value);
  }

  void schedule() {
    set_mins(in);
    set_any_layout(windows.weights);
    epilogue.set_layouts();
    bound_lines(epilogue.residual);
    bound_lines(out);
    Func func = out;
    tile(func.specialize(is_paired != 0 && epilogue.is_plain()), true);
    tile(func.specialize(is_paired != 0 && epilogue.has_residual == 0), true);
    tile(func.specialize(is_paired != 0), true);
    tile(func.specialize(is_paired == 0 && epilogue.has_residual == 0), false);
    tile(func, false);
    schedule_padded(LoopLevel(out, gi));
    schedule_edges(LoopLevel(out, b));
  }

 private:
  void tile(Stage stage, bool pairs) {
    stage.split(q, q, qi, pairs ? 2 : 1, TailStrategy::ShiftInwards)
        .split(g, g, gi, windows.planes, TailStrategy::RoundUp)
        .reorder({l, qi, c, q, o, gi, b, g, n})
        .vectorize(l)
        .unroll(qi)
        .gpu_blocks(b, g, n)
        .never_partition_all();
  }

  Var qi{"qi"}, gi{"gi"};
};

class ConvDepthWeightLines : public LinesGenerator<ConvDepthWeightLines> {
 public:
  Input<Buffer<float, 7>> dy{"dy"};
  Output<Buffer<float, 4>> dw{"dw"};  // (kx, ky, channel, g)

  void generate() {
    pad();
    find_edges();
    pixels = RDom({{0, dy.dim(1).extent()},
                   {0, dy.dim(2).extent() / 2},
                   {0, dy.dim(3).extent()},
                   {0, dy.dim(6).extent()}},
                  "pixels");
    const RVar column = pixels[0], block = pixels[2], image = pixels[3];
    std::vector<Expr> zeros(kTaps, 0.0f), sums;
    lanes(l, o, g) = Tuple(zeros);
    const Tuple old = lanes(l, o, g);
    for (int tap = 0; tap < kTaps; ++tap) {
      const int kx = tap % kSide, ky = tap / kSide;
      Expr sum = old[tap];
      for (int i = 0; i < 2; ++i) {
        const Expr pair = 2 * pixels[1] + i;
        const Expr x = padded(place_of(column, pair, ky, kx), block, g, image);
        const Expr more = fma_f32(x, dy(l, column, pair, block, o, g, image), sum);
        sum = with_tap(sum, more, column, kx);
        if (tap == 0) sum = with_next(sum, column, pair, block, image);
      }
      sums.push_back(sum);
    }
    lanes(l, o, g) = Tuple(sums);
    std::vector<Expr> totals;
    for (int tap = 0; tap < kTaps; ++tap) {
      totals.push_back(pairwise_sum(kLanes, [&](int i) { return Expr(lanes(i, o, g)[tap]); }));
    }
    dw(kx, ky, o, g) = mux(ky * kSide + kx, totals);
  }

  void schedule() {
    set_mins(in, dw);
    for (int d = 0; d < 2; ++d) dw.dim(d).set_bounds(0, kSide);
    bound_lines(dy);
    Func(dw).gpu_blocks(o, g).unroll(kx).unroll(ky).never_partition_all();
    lanes.compute_at(dw, o).store_in(MemoryType::Register).bound_extent(l, kLanes).vectorize(l);
    Stage update = lanes.update();
    update.reorder({l, pixels[0], pixels[1], pixels[2], pixels[3], o, g}).vectorize(l);
    schedule_padded(LoopLevel(lanes, pixels[2]));
    schedule_edges(LoopLevel(dw, o));
  }

 private:
  // Asks for what lies there in the next block, which may be of another image, far from this one.
  Expr with_next(const Expr& sum, const Expr& column, const Expr& pair, const Expr& block,
                 const Expr& image) {
    const Expr goes_on = block + 1 < dy.dim(3).extent(), next = select(goes_on, block + 1, 0);
    const Expr next_image = image + select(goes_on, 0, 1);
    const Expr place = next * length + 2 * pair * width + column * kLanes + l;
    const Expr next_x = in(unsafe_promise_clamped(place, 0, in.dim(0).extent() - 1), g,
                           unsafe_promise_clamped(next_image, 0, in.dim(2).extent() - 1));
    const Expr next_dy = dy(l, column, pair, next, o, g,
                            unsafe_promise_clamped(next_image, 0, dy.dim(6).extent() - 1));
    return with_prefetch(with_prefetch(sum, next_x), next_dy);
  }

  Var kx{"kx"}, ky{"ky"};
  Func lanes{"lanes"};
  RDom pixels;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthLines, conv_depth_lines)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthWeightLines, conv_depth_weight_lines)
