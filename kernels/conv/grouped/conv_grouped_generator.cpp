// Convolutions of few channels in a group, on CPUs: results' channels are the lanes, of several
// groups at once; planes of any size, strides, dilations and windows.
//
//   conv_grouped         y; or dx, of dy whose pixels lie `spread` apart, with flipped weights
//   conv_grouped_weight  dw, a share per chunk of blocks, which conv_weight_sum adds
//
// For input channel i of the groups, a work-group turns the pixels of a block of rows
// (turned_pixels.h), in each lane those of its group's channel i, and keeps them between
// zeros, so that a tap is one distance for all pixels. So a group's channels are as many depthwise
// convolutions, which add up. Sums of 16 pixels are turned back in registers.
#include "kernels/conv/conv_recipe.h"
#include "kernels/conv/grouped/conv_grouped.h"
#include "kernels/recipe/shuffle.h"
#include "kernels/recipe/turned_pixels.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

// What both declare: x between zeros, and the blocks of rows of results.
template <class Derived>
class GroupedPlanes : public Generator<Derived> {
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
  // Channels of a group: of x, and of the results; of all results.
  GeneratorInput<int> inputs{"inputs"}, outputs{"outputs"}, all_outputs{"all_outputs"};
  GeneratorInput<Buffer<float, 4>> in{"in"};  // (pixel, channel, 1, n)

 protected:
  Expr sample(const Expr& block) { return block / row_blocks; }
  Expr distance(const Expr& kx, const Expr& ky) {
    return ky * dilation_h * pitch + kx * dilation_w;
  }

  // The channel of results that a lane of vector v has; lanes beyond the last repeat it.
  Expr output(const Expr& lane) { return min(v * kLanes + lane, all_outputs - 1); }

  // x.turned(lane, 0, place, i, v, z) of block z, for input i of the groups of vector v; `first`:
  // z's row of results.
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
    const RDom outside(0, min(most * in_width + kBefore + kLanes, kGroupedPlaces), "outside");
    place_of(unsafe_promise_clamped(outside.x, 0, kGroupedPlaces - 1), z) = none;
    place_of(unsafe_promise_clamped(kBefore + known.y * in_width + known.x, 0, kGroupedPlaces - 1),
             z) = select(column >= 0 && column < pitch,
                         ((begin + known.y) * spread_h + top - padded) * pitch + column, none);

    x.clear(none + 1);
    x.define({in, in.dim(0).extent(), 0,
              [this](const Expr& lane) { return output(lane) / outputs * inputs + i; }},
             (most * in_width + kLanes - 1) / kLanes, 1, kGroupedPlaces,
             [&](const Expr&) {
               const Expr from = begin * in_width - kBefore;
               return TurnedPixels::Run{
                   sample(z), begin * in_width, end * in_width, in.dim(0).extent() - kLanes,
                   [=](const Expr& pixel) {
                     return place_of(unsafe_promise_clamped(pixel - from, 0, kGroupedPlaces - 1),
                                     z);
                   }};
             },
             {i, v, z});

    // Of a block's results: the place of the first tap.
    results = RDom(0, width, 0, rows, "results");
    origin(f) = undef<int>();
    origin(unsafe_promise_clamped(results.y * width + results.x, 0, kGroupedPlaces - 1)) =
        results.y * stride_h * pitch + results.x * stride_w;
  }

  Expr origin_of(const Expr& result) {
    return origin(unsafe_promise_clamped(result, 0, kGroupedPlaces - 1));
  }
  Expr pixel(const Expr& place, const Expr& input, const Expr& block) {
    return x.turned(l, 0, unsafe_promise_clamped(place, 0, kGroupedPlaces - 1), input, v, block);
  }

  // Loops over inputs, blocks and work-groups.
  void schedule_planes(const LoopLevel& input, const LoopLevel& block, const LoopLevel& group) {
    set_mins(in);
    x.schedule(input, 1);
    place_of.compute_at(block).store_in(MemoryType::Stack).bound_storage(f, kGroupedPlaces);
    place_of.bound_extent(z, 1).never_partition_all();
    for (int i : {0, 1}) place_of.update(i).never_partition_all();
    origin.compute_at(group).store_in(MemoryType::Stack).bound_storage(f, kGroupedPlaces);
    origin.never_partition_all();
    origin.update().never_partition_all();
  }

  static constexpr int kBefore = kLanes - 1;
  Var l{"l"}, j{"j"}, f{"f"}, i{"i"}, k{"k"}, v{"v"}, z{"z"}, t{"t"};
  TurnedPixels x{"x"};
  Func place_of{"place_of"}, origin{"origin"};
  RDom known, results;
};

// Windows of `across` columns next to each other, all their `down` rows at once or (0) one after
// the other; or (0) any windows.
class ConvGrouped : public GroupedPlanes<ConvGrouped> {
 public:
  GeneratorParam<int> across{"across", 0}, down{"down", 0};
  Input<int> is_flipped{"is_flipped"};
  Input<Buffer<float, 4>> weights{"weights"};  // (tap, input of a group, output of a group, group)
  EpilogueInputs<1, 3> epilogue;               // its channel: (channel)
  Output<Buffer<float, 3>> out{"out"};         // (pixel, channel, n)

  // A block that would pass the last row, and a block's last vector, move inwards.
  void generate() {
    const auto first_row = [&](const Expr& block) {
      return min(block % row_blocks * rows, height - rows);
    };
    const auto first_of = [&](const Expr& number) {
      return min(number * kLanes, rows * width - kLanes);
    };
    pad(first_row(z));
    const Expr tap = flipped_if(is_flipped, t, taps());
    weight(l, t, i, v) = weights(tap, i, output(l) % outputs, output(l) / outputs);
    add_up();

    Func block("block");
    block(l, j, k, v, z) =
        sum(l, unsafe_promise_clamped(first_of(k) + j, 0, kGroupedPlaces - 1), v, z);
    turned = transpose_block(block, kLanes, sizeof(float), l, j, {k, v, z});
    const Expr of_vector = first_row(z) * width + first_of(k) + l;
    ended(l, j, k, v, z) = epilogue.with_relu(epilogue.with_terms(
        turned.back()(l, j, k, v, z), {output(j)}, {of_vector, output(j), sample(z)}));

    part = RDom({{0, kLanes},
                 {0, kLanes},
                 {0, (rows * width + kLanes - 1) / kLanes},
                 {0, (all_outputs + kLanes - 1) / kLanes},
                 {0, out.dim(2).extent() * row_blocks}},
                "part");
    const Expr channel = part[3] * kLanes + part[1];
    part.where(channel < all_outputs);
    out(f, c, n) = undef<float>();
    out(first_row(part[4]) * width + first_of(part[2]) + part[0], channel, sample(part[4])) =
        ended(part[0], part[1], part[2], part[3], part[4]);
  }

  void schedule() {
    set_mins(out, weights);
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
    schedule_planes(LoopLevel(sum, all[3]), group, group);
    weight.compute_at(group).store_in(MemoryType::Stack).bound_extent(l, kLanes).bound_extent(v, 1);
    weight.bound(t, 0, taps()).bound(i, 0, inputs).bound_storage(i, kGroupedInputs);
    weight.bound_storage(t, kGroupedTaps).unroll(l).never_partition_all();
    turned.push_back(ended);
    for (Func step : turned) {
      step.compute_at(out, number).store_in(MemoryType::Register).vectorize(l).unroll(j);
      step.bound_extent(l, kLanes).bound_extent(j, kLanes);
      for (const Var& one : {k, v, z}) step.bound_extent(one, 1);
    }
    ended.specialize(epilogue.is_plain());
    ended.specialize(epilogue.has_residual == 0);
    sum.compute_at(group).store_in(MemoryType::Stack).vectorize(l).never_partition_all();
    sum.bound_extent(l, kLanes).bound_extent(v, 1).bound_extent(z, 1);
    sum.bound(q, 0, rows * width).bound_storage(q, kGroupedPlaces);
    sum.update()
        .reorder({l, all[0], all[1], all[2], all[3], v, z})
        .vectorize(l)
        .never_partition_all();
  }

 private:
  Expr taps() { return kernel_w * kernel_h; }

  // Pixel by pixel in a loop: of several written out the compiler would add the distances as a
  // vector, and take them out of it one by one.
  void add_up() {
    const bool is_fixed = across > 0 && down > 0;
    all = RDom({{0, rows * width},
                {0, across > 0 ? Expr(1) : Expr(kernel_w)},
                {0, is_fixed ? Expr(1) : Expr(kernel_h)},
                {0, inputs}},
               "all");
    const Expr result = unsafe_promise_clamped(all[0], 0, kGroupedPlaces - 1), input = all[3];
    sum(l, q, v, z) = 0.0f;
    Expr value = sum(l, result, v, z);
    const auto add = [&](const Expr& kx, const Expr& ky, const Expr& away) {
      const Expr tap = unsafe_promise_clamped(ky * kernel_w + kx, 0, kGroupedTaps - 1);
      value = fma_f32(pixel(origin_of(result) + away, input, z), weight(l, tap, input, v), value);
    };
    for (int ky = 0; ky < (is_fixed ? int(down) : 1); ++ky) {
      const Expr row = is_fixed ? Expr(ky) : Expr(all[2]);
      for (int kx = 0; kx < across; ++kx) add(kx, row, row * dilation_h * pitch + kx);
      if (across == 0) add(all[1], row, distance(all[1], row));
    }
    sum(l, result, v, z) = value;
  }

  Var c{"c"}, n{"n"}, q{"q"};
  Func weight{"weight"}, sum{"sum"}, ended{"ended"};
  std::vector<Func> turned;
  RDom all, part;
};

// Windows of `across` columns; all their `down` rows at once, or (0) one after the other.
class ConvGroupedWeight : public GroupedPlanes<ConvGroupedWeight> {
 public:
  GeneratorParam<int> across{"across", 3}, down{"down", 3};
  Input<int> blocks_per_chunk{"blocks_per_chunk"};
  Input<Buffer<float, 4>> dy{"dy"};       // (pixel, channel, 1, n)
  Output<Buffer<float, 5>> sums{"sums"};  // (lane, 1, (input, tap), vector of channels, chunk)

  void generate() {
    const Expr first = z % row_blocks * rows;
    pad(first);
    const Expr begin = first * width, end = min(first + rows, height) * width;
    given.define({dy, dy.dim(0).extent(), 0, [this](const Expr& lane) { return output(lane); }},
                 (rows * width + kLanes - 1) / kLanes, 1, kGroupedPlaces,
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
    all = RDom({{0, rows * width}, {0, inputs}, {0, blocks_per_chunk}}, "all");
    const Expr block = chunk * blocks_per_chunk + all[2];
    all.where(block < blocks);
    all.where(all[0] < count(block));
    const Expr at = origin_of(all[0]),
               input = unsafe_promise_clamped(all[1], 0, kGroupedInputs - 1);
    const Expr dy_here = given.turned(
        l, 0, unsafe_promise_clamped(all[0] + kBefore, 0, kGroupedPlaces - 1), v, block);
    std::vector<Expr> zeros(held, 0.0f), totals, values;
    total(l, y, i, v, chunk) = Tuple(zeros);
    for (int tap = 0; tap < held; ++tap) {
      const Expr row = down > 0 ? Expr(tap / across) : Expr(y);
      totals.push_back(fma_f32(pixel(at + distance(tap % across, row), input, block), dy_here,
                               total(l, y, input, v, chunk)[tap]));
    }
    total(l, y, input, v, chunk) = Tuple(totals);
    const Expr taps = kernel_w * kernel_h, tap = t % taps,
               of_input = unsafe_promise_clamped(t / taps, 0, kGroupedInputs - 1);
    for (int k = 0; k < held; ++k) {
      values.push_back(total(l, down > 0 ? Expr(0) : tap / across, of_input, v, chunk)[k]);
    }
    sums(l, one, t, v, chunk) = mux(down > 0 ? Expr(tap) : tap % across, values);
  }

  void schedule() {
    set_mins(dy);
    set_panel_layout(sums, 1);
    Func(sums).reorder(l, one, t, v, chunk).vectorize(l).gpu_blocks(v, chunk).never_partition_all();
    const LoopLevel group(sums, v), block(total, all[2]);
    total.compute_at(group).store_in(MemoryType::Stack);
    total.bound_extent(l, kLanes).bound_extent(v, 1).bound_extent(chunk, 1).vectorize(l);
    total.bound(i, 0, inputs).bound_storage(i, kGroupedInputs);
    total.bound(y, 0, down > 0 ? Expr(1) : Expr(kernel_h)).bound_storage(y, kMostRows);
    total.never_partition_all();
    total.update().reorder({l, all[0], y, all[1], all[2]}).vectorize(l).never_partition_all();
    schedule_planes(LoopLevel(total, all[1]), block, group);
    given.schedule(block, 1);
    count.compute_at(block).store_in(MemoryType::Stack).bound_extent(z, 1);
  }

 private:
  static constexpr int kMostRows = 7;
  Var y{"y"}, one{"one"}, chunk{"chunk"};
  TurnedPixels given{"dy"};
  Func count{"count"}, total{"total"};
  RDom all;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvGrouped, conv_grouped)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvGroupedWeight, conv_grouped_weight)
