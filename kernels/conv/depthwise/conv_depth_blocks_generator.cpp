// Depthwise convolutions of large windows and stride 1 between zeros half a window wide, on CPUs
// with wide registers: y, or dx with flipped weights.
//
// A work-group copies a plane to its stack, between zeros, so that every tap is read a distance
// away, without a mask or a shuffle. A block of rows of results, two vectors wide, is in registers:
// column by column of taps, what is loaded serves all taps of the column, and each weight all of
// the block, so that a step of 98 multiply-adds has 33 loads, most of them across cache lines.
//
// A row's last vector moves inwards, and the last block of rows does. Of squares of less than a
// vector, each with a kernel of its own, all rows are a block.
#include "kernels/conv/depthwise/conv_depth.h"
#include "kernels/conv/depthwise/conv_depth_recipe.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/shuffle.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

class ConvDepthBlocks : public Generator<ConvDepthBlocks> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> window{"window", 7};       // rows and columns of it
  GeneratorParam<int> side_of_plane{"side", 0};  // of a square of less than a vector

  Input<int> width{"width"}, height{"height"};
  Input<Buffer<float, 3>> in{"in"};     // (a plane's pixels, g, n)
  DepthWindows<4> windows;              // (kx, ky, channel, g)
  EpilogueInputs<2, 4> epilogue;        // its channel: (channel, g)
  Output<Buffer<float, 4>> out{"out"};  // (a plane's pixels, channel, g, n)

  void generate() {
    pad();
    taps = RDom(0, side(), 0, side(), "taps");
    const Expr ky = taps.x, kx = taps.y;  // down the columns
    const Expr weight = windows.weight(side(), kx, ky, {o, g});
    const Expr column = start_of(c, v) + (kx - reach()), row = i + (ky - reach());
    const Expr pixel =
        padded(held(first_of(k) * pitch() + (origin() + row * pitch()) + column + l), g, n);
    sums(l, i, v, c, k, o, g, n) = 0.0f;
    const Expr sum = sums(l, i, v, c, k, o, g, n);
    const Expr more = asking(fma_f32(pixel, weight, sum), c, k, kx, ky);
    sums(l, i, v, c, k, o, g, n) =
        is_square() ? select(row >= 0 && row < block_rows(), more, sum) : more;

    part = RDom({{0, kLanes}, {0, block_rows()}, {0, vectors()}, {0, columns()}, {0, blocks()}},
                "part");
    const Expr place = unsafe_promise_clamped(
        place_of(part[1], part[2], part[3], part[4]) + part[0], 0, pixels() - 1);
    out(f, o, g, n) = undef<float>();
    out(place, o, g, n) = epilogue.with_relu(epilogue.with_terms(
        with_prefetch(result(), out(place + pixels(), o, g, n)), {o, g}, {place, o, g, n}));
  }

  void schedule() {
    set_mins(in, out, windows.weights);
    windows.weights.dim(0).set_bounds(0, side());
    windows.weights.dim(1).set_bounds(0, side()).set_stride(side());
    epilogue.set_layouts();
    epilogue.specialize(Func(out).update(), [this](Stage stage) { tile(stage); });
    padded.store_at(out, g).compute_at(out, go).store_in(MemoryType::Stack);
    padded.fold_storage(g, planes_held());
    padded.bound_storage(f, held_elements()).bound_extent(g, planes_held()).bound_extent(n, 1);
    padded.never_partition_all();
    sums.compute_at(out, part[3]).store_in(MemoryType::Register);
    sums.bound_extent(l, kLanes).bound_extent(i, block_rows()).bound_extent(v, vectors());
    sums.vectorize(l).unroll(i).unroll(v);
    sums.update().reorder({l, i, v, taps.x, taps.y}).vectorize(l).never_partition_all();
    sums.update().unroll(i).unroll(v).unroll(taps.x);
  }

 private:
  int side() const { return window; }
  int reach() const { return side() / 2; }
  bool is_square() const { return side_of_plane > 0; }
  int block_rows() const { return is_square() ? int(side_of_plane) : kDepthBlockRows; }
  int vectors() const { return is_square() ? 1 : kDepthBlockVectors; }

  Expr row_pixels() { return is_square() ? Expr(side_of_plane) : width; }
  Expr row_count() { return is_square() ? Expr(side_of_plane) : height; }
  Expr pixels() {
    return is_square() ? Expr(side_of_plane * int(side_of_plane)) : in.dim(0).extent();
  }
  Expr blocks() { return is_square() ? Expr(1) : (height + block_rows() - 1) / block_rows(); }
  Expr columns() {
    const int block = kLanes * vectors();
    return is_square() ? Expr(1) : (width + block - 1) / block;
  }

  // The row where block k begins, and the column where vector v of column c of them does.
  Expr first_of(const Expr& k) {
    return is_square() ? Expr(0) : min(k * block_rows(), height - block_rows());
  }
  Expr start_of(const Expr& c, const Expr& v) {
    if (is_square()) return 0;
    const int block = kLanes * vectors();
    const Expr start = max(min(c * block, width - block), 0);
    return start + select(v == 0, 0, min(kLanes, width - kLanes - start));
  }
  // Of row i of a block, in its plane. A square's last row ends where the plane does.
  Expr place_of(const Expr& i, const Expr& v, const Expr& c, const Expr& k) {
    const Expr place = first_of(k) * row_pixels() + i * row_pixels() + start_of(c, v);
    return is_square() ? select(i == block_rows() - 1, pixels() - kLanes, place) : place;
  }

  // What lies there: rows of a square in order, so that what lanes beyond a row's end store is
  // overwritten, and before its last row the end of the one before.
  Expr result() {
    const auto sum_of = [&](const Expr& row) {
      return Expr(sums(part[0], row, part[2], part[3], part[4], o, g, n));
    };
    const Expr sum = sum_of(part[1]);
    if (!is_square()) return sum;
    const int last = block_rows() - 1, before = kLanes - block_rows();
    const Expr joined = take_lanes(sum_of(last - 1), sum_of(last), kLanes, [&](int lane) {
      return lane < before ? block_rows() - before + lane : kLanes + lane - before;
    });
    return select(part[1] == last, joined, sum);
  }

  // Asks for a share of what is copied next, with some taps of a column.
  Expr asking(const Expr& value, const Expr& c, const Expr& k, const Expr& kx, const Expr& ky) {
    const int asked = (kDepthBlockRows * kDepthBlockVectors + side() - 1) / side();
    const Expr next = unsafe_promise_clamped(g + planes_held(), 0, in.dim(1).extent() - 1);
    const Expr line = ((k * columns() + c) * side() + kx) * asked + ky;
    const Expr place = unsafe_promise_clamped(line * kLanes + l, 0, pixels() - 1);
    return select(i == reach() && v == 0 && ky < asked, with_prefetch(value, in(place, next, n)),
                  value);
  }

  // Small planes are copied some at a time: a load soon after the stores that it overlaps waits.
  int planes_held() const { return is_square() ? 4 : 1; }
  int held_elements() const { return is_square() ? 512 : kDepthBlocksElements; }
  Expr held(const Expr& place) const {
    return unsafe_promise_clamped(place, 0, held_elements() - 1);
  }
  // Between rows there, a constant, so that one address serves all rows; and the first pixel's.
  int pitch() const { return is_square() ? 24 : depth_blocks_pitch(side()); }
  int rows_around() const { return is_square() ? 0 : reach(); }  // of zeros, above and below
  int origin() const { return kLanes + rows_around() * pitch(); }

  // The zeros are written with a work-group's first planes, which those after them leave alone.
  void pad() {
    padded(f, g, n) = undef<float>();
    // Rows that are not there; a vector before and after each row.
    const Expr rows = row_count();
    if (!is_square()) {
      RDom edge(0, kLanes, 0, origin() / kLanes, 0, 2, "edge");
      const Expr place = edge.z * (rows + rows_around()) * pitch() + edge.y * kLanes + edge.x;
      set_zero(place, edge);
    }
    const Expr sides = is_square() ? Expr(1) : select(pitch() - width > kLanes, 2, 1);
    RDom side(0, kLanes, 0, sides, 0, rows + 1, "side");
    const Expr end = is_square() ? Expr(kLanes) : select(side.y == 0, width, pitch() - kLanes);
    set_zero(origin() + (side.z - 1) * pitch() + end + side.x, side);

    const RDom inner(0, kLanes, 0, (row_pixels() + kLanes - 1) / kLanes, 0, rows, "inner");
    const Expr column =
        is_square() ? Expr(inner.x) : min(inner.y * kLanes, width - kLanes) + inner.x;
    const Expr pixel = is_square() ? min(inner.z * row_pixels(), pixels() - kLanes) + inner.x
                                   : inner.z * width + column;
    Expr value =
        in(unsafe_promise_clamped(pixel, 0, pixels() - 1), min(g, in.dim(1).extent() - 1), n);
    if (is_square()) {
      const int more = kLanes - block_rows();
      const Expr last =
          take_lanes(value, Expr(0.0f), kLanes, [=](int lane) { return lane + more; });
      value =
          select(inner.z == block_rows() - 1, last, select(inner.x < block_rows(), value, 0.0f));
    }
    padded(held(origin() + inner.z * pitch() + column), g, n) = value;
    Stage copy = padded.update(is_square() ? 1 : 2);
    copy.allow_race_conditions().vectorize(inner.x).never_partition_all();
    if (is_square()) copy.unroll(inner.z);
  }
  void set_zero(const Expr& place, RDom& over) {
    over.where(cast<uint32_t>(g) % cast<uint32_t>(windows.planes) < cast<uint32_t>(planes_held()));
    padded(held(place), g, n) = 0.0f;
    padded.update(padded.num_update_definitions() - 1)
        .allow_race_conditions()
        .vectorize(over.x)
        .never_partition_all();
  }

  void tile(Stage stage) {
    stage.allow_race_conditions()
        .split(g, g, gi, windows.planes, TailStrategy::GuardWithIf)
        .split(gi, go, gi, planes_held(), TailStrategy::GuardWithIf)
        .reorder({part[0], part[1], part[2], part[3], part[4], o, gi, go, g, n})
        .vectorize(part[0])
        .unroll(part[1])
        .unroll(part[2])
        .gpu_blocks(g, n)
        .never_partition_all();
  }

  Var f{"f"}, l{"l"}, i{"i"}, v{"v"}, c{"c"}, k{"k"}, o{"o"}, g{"g"}, gi{"gi"}, go{"go"}, n{"n"};
  Func padded{"padded"}, sums{"sums"};
  RDom taps, part;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthBlocks, conv_depth_blocks)
