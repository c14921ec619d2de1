// Depthwise convolutions on CPUs with channels in the lanes, for planes of any size, strides,
// dilations and windows.
//
//   conv_depth_channels         y; or dx, of dy whose pixels lie `spread` apart, with flipped
//   weights conv_depth_channels_weight  dw, a share per chunk of blocks, which conv_weight_sum adds
//
// A work-group turns the pixels of 16 channels and of a block of rows (conv_turned_recipe.h) and
// keeps them between zeros, so that a tap is one distance for all pixels. Sums of 16 pixels are
// turned back in registers.
#include "kernels/conv/conv_depth_channels.h"
#include "kernels/conv/conv_recipe.h"
#include "kernels/conv/conv_turned_recipe.h"
#include "kernels/shuffle.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

// What both declare: x between zeros, and the blocks of rows of results.
template <class Derived>
class DepthChannels : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  // Pixel (x, y) lies at row spread_h y + top, column spread_w x + left of padded planes whose rows
  // are `pitch` apart; a block reads `padded_rows` of them.
  GeneratorInput<int> top{"top"}, left{"left"}, spread_h{"spread_h"}, spread_w{"spread_w"},
      in_width{"in_width"}, pitch{"pitch"}, padded_rows{"padded_rows"};
  GeneratorInput<int> stride_h{"stride_h"}, stride_w{"stride_w"}, dilation_h{"dilation_h"},
      dilation_w{"dilation_w"}, kernel_h{"kernel_h"}, kernel_w{"kernel_w"};
  // Of results; `rows` of a block, of which a sample has `row_blocks`.
  GeneratorInput<int> width{"width"}, height{"height"}, rows{"rows"}, row_blocks{"row_blocks"};
  GeneratorInput<Buffer<float, 4>> in{"in"};  // (pixel, channel, 1, n)

 protected:
  Expr sample(const Expr& block) { return block / row_blocks; }
  Expr distance(const Expr& kx, const Expr& ky) {
    return ky * dilation_h * pitch + kx * dilation_w;
  }

  // x.turned(lane, 0, place, v, z) of block z of channels 16 v and on; `first`: z's row of results.
  void pad(const Expr& first) {
    const Expr in_height = in.dim(0).extent() / in_width, padded = first * stride_h;
    const auto row_from = [&](const Expr& from) {
      return clamp((from - top + spread_h - 1) / spread_h, 0, in_height);
    };
    const Expr begin = row_from(padded), end = row_from(padded + padded_rows);
    const Expr most = padded_rows / spread_h + 1, none = padded_rows * pitch;

    // Of the pixels from 15 before the first row's on.
    known = RDom(0, in_width, 0, most, "known");
    known.where(begin + known.y < end);
    const Expr column = known.x * spread_w + left;
    place_of(f, z) = undef<int>();
    const RDom outside(0, min(most * in_width + kBefore + kLanes, kDepthPlaces), "outside");
    place_of(unsafe_promise_clamped(outside.x, 0, kDepthPlaces - 1), z) = none;
    place_of(unsafe_promise_clamped(kBefore + known.y * in_width + known.x, 0, kDepthPlaces - 1),
             z) = select(column >= 0 && column < pitch,
                         ((begin + known.y) * spread_h + top - padded) * pitch + column, none);

    x.clear(none + 1);
    x.define({in, in.dim(0).extent(), in.dim(1).extent(), v * kLanes, 0},
             (most * in_width + kLanes - 1) / kLanes, 1, kDepthPlaces,
             [&](const Expr&) {
               const Expr from = begin * in_width - kBefore;
               return TurnedPixels::Run{
                   sample(z), begin * in_width, end * in_width, in.dim(0).extent() - kLanes,
                   [=](const Expr& pixel) {
                     return place_of(unsafe_promise_clamped(pixel - from, 0, kDepthPlaces - 1), z);
                   }};
             },
             {v, z});

    // Of a block's results: the place of the first tap.
    results = RDom(0, width, 0, rows, "results");
    origin(f) = undef<int>();
    origin(unsafe_promise_clamped(results.y * width + results.x, 0, kDepthPlaces - 1)) =
        results.y * stride_h * pitch + results.x * stride_w;
  }

  Expr origin_of(const Expr& result) {
    return origin(unsafe_promise_clamped(result, 0, kDepthPlaces - 1));
  }
  Expr pixel(const Expr& lane, const Expr& place, const Expr& vector, const Expr& block) {
    return x.turned(lane, 0, unsafe_promise_clamped(place, 0, kDepthPlaces - 1), vector, block);
  }

  // `level`: a loop over blocks; `group`: over groups.
  void schedule_planes(const LoopLevel& level, const LoopLevel& group) {
    set_mins(in);
    x.schedule(level, 1);
    place_of.compute_at(level).store_in(MemoryType::Stack).bound_storage(f, kDepthPlaces);
    place_of.bound_extent(z, 1).never_partition_all();
    for (int i : {0, 1}) place_of.update(i).never_partition_all();
    origin.compute_at(group).store_in(MemoryType::Stack).bound_storage(f, kDepthPlaces);
    origin.never_partition_all();
    origin.update().never_partition_all();
  }

  static constexpr int kBefore = kLanes - 1;
  Var l{"l"}, j{"j"}, f{"f"}, k{"k"}, v{"cv"}, z{"z"}, t{"t"};
  TurnedPixels x{"x"};
  Func place_of{"place_of"}, origin{"origin"};
  RDom known, results;
};

// Windows of `across` columns next to each other, all their `down` rows at once or (0) one after
// the other; or (0) any windows.
class ConvDepthChannels : public DepthChannels<ConvDepthChannels> {
 public:
  GeneratorParam<int> across{"across", 0}, down{"down", 0};
  Input<int> is_flipped{"is_flipped"};
  Input<Buffer<float, 2>> weights{"weights"};  // (tap, channel)
  EpilogueInputs<1, 3> epilogue;               // its channel: (channel)
  Output<Buffer<float, 3>> out{"out"};         // (pixel, channel, n)

  // A block that would pass the last row, and a block's last vector, move inwards.
  void generate() {
    const Expr channels = out.dim(1).extent(), taps = kernel_w * kernel_h;
    const auto first_row = [&](const Expr& block) {
      return min(block % row_blocks * rows, height - rows);
    };
    const auto first_of = [&](const Expr& number) {
      return min(number * kLanes, rows * width - kLanes);
    };
    pad(first_row(z));

    const Expr tap = select(is_flipped != 0, taps - 1 - t, t);
    weight(l, t, v) = weights(tap, min(v * kLanes + l, channels - 1));
    add_up([&](const Expr& number) { return origin_of(first_of(number) + j); });
    turned = transpose_block(sum, kLanes, sizeof(float), l, j, {k, v, z});
    const Expr of_vector = first_row(z) * width + first_of(k) + l;
    ended(l, j, k, v, z) = epilogue.with_relu(
        epilogue.with_terms(turned.back()(l, j, k, v, z), {min(v * kLanes + j, channels - 1)},
                            {of_vector, min(v * kLanes + j, channels - 1), sample(z)}));

    part = RDom({{0, kLanes},
                 {0, kLanes},
                 {0, (rows * width + kLanes - 1) / kLanes},
                 {0, (channels + kLanes - 1) / kLanes},
                 {0, out.dim(2).extent() * row_blocks}},
                "part");
    const Expr channel = part[3] * kLanes + part[1];
    part.where(channel < channels);
    out(f, c, n) = undef<float>();
    out(first_row(part[4]) * width + first_of(part[2]) + part[0], channel, sample(part[4])) =
        ended(part[0], part[1], part[2], part[3], part[4]);
  }

  void schedule() {
    set_mins(out);
    weights.dim(0).set_min(0);
    weights.dim(1).set_min(0);
    epilogue.set_layouts();
    const RVar number = part[2], vector = part[3], block = part[4];
    Func(out)
        .update()
        .allow_race_conditions()
        .vectorize(part[0])
        .unroll(part[1])
        .gpu_blocks(vector, block)
        .never_partition_all();
    const LoopLevel group(out, vector);
    schedule_planes(group, group);
    weight.compute_at(group).store_in(MemoryType::Stack).bound_extent(l, kLanes).bound_extent(v, 1);
    weight.bound_storage(t, kDepthChannelTaps).bound(t, 0, kernel_w * kernel_h).unroll(l);
    weight.never_partition_all();
    turned.erase(turned.begin());
    turned.push_back(ended);
    for (Func step : turned) {
      step.compute_at(out, number).store_in(MemoryType::Register).vectorize(l).unroll(j);
      step.bound_extent(l, kLanes).bound_extent(j, kLanes);
      for (const Var& one : {k, v, z}) step.bound_extent(one, 1);
    }
    ended.specialize(epilogue.is_plain());
    ended.specialize(epilogue.has_residual == 0);
    // A pixel is a round of a loop: of 16 written out the compiler would add the distances as a
    // vector, and take them out of it one by one.
    sum.compute_at(out, number).store_in(MemoryType::Stack).vectorize(l).never_partition_all();
    if (across > 0 && down > 0) return;
    sum.update().reorder(l, j, window.x, window.y).vectorize(l).never_partition_all();
  }

 private:
  template <class Origin>
  void add_up(const Origin& origin_in) {
    const auto product = [&](const Expr& kx, const Expr& ky, const Expr& distance,
                             const Expr& before) {
      const Expr tap = unsafe_promise_clamped(ky * kernel_w + kx, 0, kDepthChannelTaps - 1);
      return fma_f32(pixel(l, origin_in(k) + distance, v, z), weight(l, tap, v), before);
    };
    const auto row = [&](const Expr& ky, Expr before) {
      for (int kx = 0; kx < across; ++kx) {
        before = product(kx, ky, ky * dilation_h * pitch + kx, before);
      }
      return before;
    };
    if (across > 0 && down > 0) {
      Expr all = 0.0f;
      for (int ky = 0; ky < down; ++ky) all = row(ky, all);
      sum(l, j, k, v, z) = all;
      return;
    }
    sum(l, j, k, v, z) = 0.0f;
    const Expr before = sum(l, j, k, v, z);
    window = RDom(0, across > 0 ? Expr(1) : Expr(kernel_w), 0, kernel_h, "window");
    sum(l, j, k, v, z) = across > 0
                             ? row(window.y, before)
                             : product(window.x, window.y, distance(window.x, window.y), before);
  }

  Var c{"c"}, n{"n"};
  Func weight{"weight"}, sum{"sum"}, ended{"ended"};
  std::vector<Func> turned;
  RDom window, part;
};

// Windows of `across` columns; all their `down` rows at once, or (0) one after the other.
class ConvDepthChannelsWeight : public DepthChannels<ConvDepthChannelsWeight> {
 public:
  GeneratorParam<int> across{"across", 3}, down{"down", 3};
  Input<int> blocks_per_chunk{"blocks_per_chunk"};
  Input<Buffer<float, 4>> dy{"dy"};       // (pixel, channel, 1, n)
  Output<Buffer<float, 5>> sums{"sums"};  // (lane, 1, tap, vector of channels, chunk)

  void generate() {
    const Expr first = z % row_blocks * rows;
    pad(first);
    const Expr begin = first * width, end = min(first + rows, height) * width;
    given.define({dy, dy.dim(0).extent(), dy.dim(1).extent(), v * kLanes, 0},
                 (rows * width + kLanes - 1) / kLanes, 1, kDepthPlaces,
                 [&](const Expr&) {
                   return TurnedPixels::Run{
                       sample(z), begin, end, dy.dim(0).extent() - kLanes,
                       [=](const Expr& pixel) { return pixel - begin + kBefore; }};
                 },
                 {v, z});
    count(z) = end - begin;

    // All taps' sums are one value of many numbers, so that they stay in registers.
    const int held = across * std::max<int>(down, 1);
    const Expr blocks = in.dim(3).extent() * row_blocks;
    all = RDom(0, rows * width, 0, blocks_per_chunk, "all");
    const Expr block = chunk * blocks_per_chunk + all.y;
    all.where(block < blocks);
    all.where(all.x < count(block));
    const Expr at = origin_of(all.x);
    const Expr dy_here =
        given.turned(l, 0, unsafe_promise_clamped(all.x + kBefore, 0, kDepthPlaces - 1), v, block);
    std::vector<Expr> zeros(held, 0.0f), totals;
    total(l, y, v, chunk) = Tuple(zeros);
    for (int i = 0; i < held; ++i) {
      const Expr row = down > 0 ? Expr(i / across) : Expr(y);
      totals.push_back(fma_f32(pixel(l, at + distance(i % across, row), v, block), dy_here,
                               total(l, y, v, chunk)[i]));
    }
    total(l, y, v, chunk) = Tuple(totals);
    std::vector<Expr> values;
    for (int i = 0; i < held; ++i) {
      values.push_back(total(l, down > 0 ? Expr(0) : t / across, v, chunk)[i]);
    }
    sums(l, one, t, v, chunk) = mux(down > 0 ? Expr(t) : t % across, values);
  }

  void schedule() {
    set_mins(dy);
    set_panel_layout(sums, 1);
    Func(sums).reorder(l, one, t, v, chunk).vectorize(l).gpu_blocks(v, chunk).never_partition_all();
    sums.dim(1).set_bounds(0, 1);
    const LoopLevel group(sums, v), block(total, all.y);
    total.compute_at(group).store_in(down > 0 ? MemoryType::Register : MemoryType::Stack);
    total.bound_extent(l, kLanes).bound_extent(v, 1).bound_extent(chunk, 1).vectorize(l);
    total.bound_storage(y, kMostRows).never_partition_all();
    total.update().reorder(l, all.x, y, all.y).vectorize(l).never_partition_all();
    schedule_planes(block, group);
    given.schedule(block, 1);
    count.compute_at(block).store_in(MemoryType::Stack).bound_extent(z, 1);
  }

 private:
  static constexpr int kMostRows = 11;
  Var y{"y"}, one{"one"}, chunk{"chunk"};
  TurnedPixels given{"dy"};
  Func count{"count"}, total{"total"};
  RDom all;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthChannels, conv_depth_channels)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvDepthChannelsWeight, conv_depth_channels_weight)
