// What is brought into another layout before attention_tiles and attention_grad_tiles run. All of
// it is linear in the sequence length (masks: as large as the mask given).
#include "kernels/pointwise/pointwise_math.h"

#include <limits>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kLanes = 16;
constexpr int kPanel = 2;  // vectors in a panel
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class Tensor>
void set_mins(Tensor& tensor) {
  for (int d = 0; d < tensor.dimensions(); ++d) tensor.dim(d).set_min(0);
}

// panels[bh][panel][d][vector][lane] of source[bh][row][d]: lanes are rows. Lanes past the last row
// repeat it; they are multiplied, but hidden.
class AttentionPack : public Generator<AttentionPack> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<Buffer<float, 3>> source{"source"};
  Output<Buffer<float, 5>> panels{"panels"};

  void generate() {
    const Expr rows = source.dim(1).extent();
    panels(l, v, d, p, h) = source(d, min((p * kPanel + v) * kLanes + l, rows - 1), h);
    set_mins(source);
    set_mins(panels);
    panels.dim(0).set_bounds(0, kLanes);
    panels.dim(1).set_bounds(0, kPanel).set_stride(kLanes);

    panels.split(p, po, pi, 8, TailStrategy::GuardWithIf)
        .reorder(l, v, d, pi, po, h)
        .gpu_blocks(po, h)
        .unroll(l)
        .never_partition_all();
  }

 private:
  Var l{"l"}, v{"v"}, d{"d"}, p{"p"}, po{"po"}, pi{"pi"}, h{"h"};
};

// The same where d is a multiple of 16, as panels[bh][panel][d / 16][vector][d % 16][lane]: a 16 x
// 16 block is transposed by four perfect shuffles (see matmul_pack_columns).
class AttentionPackShuffled : public Generator<AttentionPackShuffled> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<Buffer<float, 3>> source{"source"};
  Output<Buffer<float, 6>> panels{"panels"};

  void generate() {
    const Expr rows = source.dim(1).extent();
    Func block("block");
    block(l, r, v, db, p, h) =
        source(db * kLanes + l, min((p * kPanel + v) * kLanes + r, rows - 1), h);
    std::vector<Func> steps{block};
    for (int i = 0; i < 4; ++i) {
      Func step("shuffle" + std::to_string(i));
      step(l, r, v, db, p, h) = steps.back()((r % 2) * 8 + l / 2, r / 2 + (l % 2) * 8, v, db, p, h);
      steps.push_back(step);
    }
    panels(l, r, v, db, p, h) = steps.back()(l, r, v, db, p, h);
    set_mins(source);
    set_mins(panels);
    panels.dim(0).set_bounds(0, kLanes);
    panels.dim(1).set_bounds(0, kLanes);
    panels.dim(2).set_bounds(0, kPanel);

    panels.split(p, po, pi, 8, TailStrategy::GuardWithIf)
        .reorder(l, r, v, db, pi, po, h)
        .gpu_blocks(po, h)
        .vectorize(l)
        .unroll(r)
        .never_partition_all();
    for (Func step : steps) {
      step.compute_at(panels, v).store_in(MemoryType::Register);
      step.bound_extent(l, kLanes).bound_extent(r, kLanes).vectorize(l).unroll(r);
    }
  }

 private:
  Var l{"l"}, r{"r"}, v{"v"}, db{"db"}, p{"p"}, po{"po"}, pi{"pi"}, h{"h"};
};

// out[row][x] = source[row][x], 0 past its end: rows between a tensor and whole vectors, either
// way.
class AttentionCopy : public Generator<AttentionCopy> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<Buffer<float, 2>> source{"source"};
  Output<Buffer<float, 2>> out{"out"};

  void generate() {
    const Expr width = source.dim(0).extent();
    out(x, y) = select(x < width, source(min(x, width - 1), y), 0.0f);
    set_mins(source);
    set_mins(out);
    source.dim(0).set_stride(Expr());
    out.split(y, yo, yi, 64, TailStrategy::GuardWithIf).gpu_blocks(yo).never_partition_all();
  }

 private:
  Var x{"x"}, y{"y"}, yo{"yo"}, yi{"yi"};
};

// The additive form of a mask of booleans: 0 where true, else -infinity.
class AttentionKeep : public Generator<AttentionKeep> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<Buffer<uint8_t, 2>> source{"source"};
  Output<Buffer<float, 2>> out{"out"};

  void generate() {
    const Expr width = source.dim(0).extent();
    const Expr is_kept = source(min(x, width - 1), y) != cast<uint8_t>(0);
    out(x, y) = select(x < width && is_kept, 0.0f, -kInfinity);
    set_mins(source);
    set_mins(out);
    source.dim(0).set_stride(Expr());
    if (device_class.value() == "gpu") {
      out.gpu_tile(x, y, xo, yo, xi, yi, 32, 8, TailStrategy::GuardWithIf).never_partition_all();
    } else {
      out.split(y, yo, yi, 64, TailStrategy::GuardWithIf).gpu_blocks(yo).never_partition_all();
    }
  }

 private:
  Var x{"x"}, y{"y"}, xo{"xo"}, xi{"xi"}, yo{"yo"}, yi{"yi"};
};

// out[bh][0] = lse and out[bh][1] = delta, with rows of whole vectors. A query that attends to
// nothing (lse = -infinity) and one past the end get +infinity, which makes every p 0.
class AttentionStats : public Generator<AttentionStats> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<Buffer<float, 2>> lse{"lse"};
  Input<Buffer<float, 2>> delta{"delta"};
  Output<Buffer<float, 3>> out{"out"};

  void generate() {
    const Expr count = lse.dim(0).extent(), i = min(x, count - 1);
    const Expr shift =
        select(x >= count, kInfinity, eq(lse(i, h), -kInfinity), kInfinity, lse(i, h));
    out(x, c, h) = select(c == 0, shift, delta(i, h));
    set_mins(lse);
    set_mins(delta);
    set_mins(out);
    out.dim(1).set_bounds(0, 2);
    out.reorder(x, c, h).unroll(c).gpu_blocks(h);
  }

 private:
  Var x{"x"}, c{"c"}, h{"h"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionPack, attention_pack)
HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionPackShuffled, attention_pack_shuffled)
HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionCopy, attention_copy)
HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionKeep, attention_keep)
HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionStats, attention_stats)
