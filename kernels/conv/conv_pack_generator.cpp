// What convolutions in register tiles read in vectors of 16 channels: panels of weights, or of dy
// for the weight gradient, and the epilogue's terms of each channel.
#include "kernels/conv/conv_recipe.h"
#include "kernels/recipe/shuffle.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

// panels[panel][tap][vector][lane] of the weights source(lane, kx, ky, channel, group), whose taps
// are taken from `first` in steps of `step` (backwards for gradients). Lanes beyond the last
// channel repeat it.
class ConvPack : public Generator<ConvPack> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> first_x{"first_x"}, step_x{"step_x"}, first_y{"first_y"}, step_y{"step_y"},
      kernel_h{"kernel_h"}, kernel_w{"kernel_w"}, vectors{"vectors"}, panel_count{"panel_count"};
  Input<Buffer<float, 5>> source{"source"};
  Output<Buffer<float, 4>> panels{"panels"};  // (lane, vector, tap, panel of all groups)

  void generate() {
    const Expr lane = ((p % panel_count) * vectors + v) * kLanes + l;
    const Expr kx = k % kernel_w, ky = (k / kernel_w) % kernel_h, c = k / (kernel_w * kernel_h);
    const Expr lanes = source.dim(0).extent();
    has_vectors = source.dim(0).stride() == 1 && lanes % kLanes == 0;
    const Expr of_vector = min(lane - l, lanes - kLanes) + l;
    panels(l, v, k, p) = source(select(has_vectors, of_vector, min(lane, lanes - 1)),
                                first_x + kx * step_x, first_y + ky * step_y, c, p / panel_count);
  }

  void schedule() {
    set_any_layout(source);
    panels.dim(0).set_bounds(0, kLanes);
    for (int d = 1; d < 4; ++d) panels.dim(d).set_min(0);
    Func func = panels;
    // A tap's vectors of several panels lie side by side in the source.
    Var po("po"), pi("pi");
    tile(func.specialize(has_vectors))
        .split(p, po, pi, 8, TailStrategy::GuardWithIf)
        .reorder(l, v, pi, ki, ko, po)
        .vectorize(l)
        .gpu_blocks(ko, po)
        .never_partition_all();
    tile(func).reorder(l, v, ki, ko, p).unroll(l).gpu_blocks(ko, p).never_partition_all();
  }

 private:
  Stage tile(Stage stage) { return stage.split(k, ko, ki, 32, TailStrategy::GuardWithIf); }

  Expr has_vectors;
  Var l{"l"}, v{"v"}, k{"k"}, ko{"ko"}, ki{"ki"}, p{"p"};
};

// The same where the taps of a lane are contiguous, a vector of them and more: by transposing
// blocks of 16 lanes and 16 taps, of which the last of an image moves inwards. source(tap, lane,
// image, group); taps go on over images.
class ConvPackColumns : public Generator<ConvPackColumns> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> vectors{"vectors"}, panel_count{"panel_count"};
  Input<Buffer<float, 4>> source{"source"};
  Output<Buffer<float, 4>> panels{"panels"};  // as above

  void generate() {
    const Expr length = source.dim(0).extent();
    const auto tap = [&](const Expr& block, const Expr& of_block) {
      const Expr first = min(block * kLanes, length - kLanes);
      return unsafe_promise_clamped(first + of_block, 0, length - 1);
    };
    const Expr lane = ((p % panel_count) * vectors + v) * kLanes + r;
    Func block("block");
    block(l, r, kb, i, v, p) =
        source(tap(kb, l), min(lane, source.dim(1).extent() - 1), i, p / panel_count);
    turned = transpose_block(block, kLanes, sizeof(float), l, r, {kb, i, v, p});
    part = RDom({{0, kLanes},
                 {0, kLanes},
                 {0, (length + kLanes - 1) / kLanes},
                 {0, source.dim(2).extent()}},
                "part");
    panels(l, v, k, p) = undef<float>();
    panels(part[0], v, part[3] * length + tap(part[2], part[1]), p) =
        turned.back()(part[0], part[1], part[2], part[3], v, p);
  }

  void schedule() {
    set_mins(source);
    panels.dim(0).set_bounds(0, kLanes);
    for (int d = 1; d < 4; ++d) panels.dim(d).set_min(0);
    RVar ko("ko"), ki("ki");
    Func(panels)
        .update()
        .allow_race_conditions()
        .split(part[2], ko, ki, 4, TailStrategy::GuardWithIf)
        .reorder({part[0], part[1], ki, v, ko, part[3], p})
        .vectorize(part[0])
        .unroll(part[1])
        .gpu_blocks(ko, part[3], p)
        .never_partition_all();
    hold_block(turned, LoopLevel(panels, ki), kLanes, l, r, {kb, i, v, p});
  }

 private:
  Var l{"l"}, r{"r"}, kb{"kb"}, i{"i"}, v{"v"}, k{"k"}, p{"p"};
  std::vector<Func> turned;
  RDom part;
};

// bias, scale and shift for whole panels; what is absent is never used.
class ConvChannels : public Generator<ConvChannels> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> group_channels{"group_channels"}, panel_channels{"panel_channels"};
  Input<Buffer<float, 1>> bias{"bias"}, scale{"scale"}, shift{"shift"};
  Output<Buffer<float, 2>> channels{"channels"};

  void generate() {
    const Expr g = i / panel_channels;
    const Expr at = g * group_channels + min(i % panel_channels, group_channels - 1);
    channels(i, which) = select(which == 0, bias(at), which == 1, scale(at), shift(at));
  }

  void schedule() {
    set_any_layout(bias, scale, shift);
    set_mins(channels);
    Func(channels).gpu_blocks(which);
  }

 private:
  Var i{"i"}, which{"which"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPack, conv_pack)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPackColumns, conv_pack_columns)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvChannels, conv_channels)
