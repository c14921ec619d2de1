// A transposing copy: p is dense in the result, q in the source (z, w and o as in copy_generator).
//
// Blocks of 8 x 8 elements (of 1 or 2 bytes: 16 x 16) go through registers: a vector per row is
// read along q, the block is transposed by perfect shuffles, a vector per column is written along
// p. The last block of a row or column moves inwards and repeats a part of its neighbour.
//
// Measured (2 cores Zen 5, PoCL 3.1, Nov 2026, a busy machine; GB/s read plus written, dense copies
// 85 to 105): f32 1021 x 1021 40 to 76, 1024 x 1024 29 to 39 (rows a power of two apart share cache
// sets), 8 x 196 x 256 41 to 53. Blocks of 16 x 16 reached 25 to 41: the compiler
// makes some 170 shuffles, inserts and extracts of their 64 shuffles.
#include <Halide.h>

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kDimensions = 7;

class Transpose : public Generator<Transpose> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> bytes{"bytes", 4};

  void configure() {
    const Type element = UInt(8 * bytes);
    source_ = add_input<Buffer<>>("source", element, kDimensions);
    chunk_p_ = add_input<int>("chunk_p");
    chunk_q_ = add_input<int>("chunk_q");
    offset_ = add_input<int>("offset");
    target_ = add_output<Buffer<>>("result", element, kDimensions);
  }

  void generate() {
    for (int d = 0; d < kDimensions - 1; ++d) {
      source_->dim(d).set_min(0);
      target_->dim(d).set_min(0);
    }
    source_->dim(0).set_stride(Expr());
    source_->dim(1).set_stride(1);
    source_->dim(kDimensions - 1).set_stride(1);
    target_->dim(kDimensions - 1).set_stride(1);
    if (device_class.value() == "gpu") {
      generate_gpu();
    } else {
      generate_cpu();
    }
  }

 private:
  Var p{"p"}, q{"q"}, z{"z"}, w0{"w0"}, w1{"w1"}, w2{"w2"}, o{"o"};
  Var l{"l"}, r{"r"}, pb{"pb"}, qb{"qb"}, n{"n"};
  GeneratorInput<Buffer<>>* source_ = nullptr;
  GeneratorInput<int>*chunk_p_ = nullptr, *chunk_q_ = nullptr, *offset_ = nullptr;
  GeneratorOutput<Buffer<>>* target_ = nullptr;

  Var fuse_outer(Stage stage) {
    const Var all("all");
    stage.fuse(w1, w2, all).fuse(w0, all, all).fuse(z, all, all);
    return all;
  }

  void generate_cpu() {
    Func target = *target_;
    const int lanes = bytes <= 2 ? 16 : 8;
    const Expr extent_p = target_->dim(0).extent(), extent_q = target_->dim(1).extent();
    const auto start = [&](const Expr& block, const Expr& extent) {
      return min(block * lanes, extent - lanes);
    };

    // Algorithm. The outer loops are one, taken apart where addresses are made: a block that knew
    // them by four variables was not seen to be one block, and did not stay in registers.
    Func block("block");
    std::vector<Expr> from{start(pb, extent_p) + r, start(qb, extent_q) + l};
    add_outer(from, n);
    from.push_back(0);
    block(l, r, pb, qb, n) = (*source_)(from);
    // A block's elements rotate their place, of log2(lanes^2) bits, by one bit per shuffle; each
    // vector of the result takes from two vectors only.
    std::vector<Func> steps{block};
    for (int width = 1; width < lanes; width *= 2) {
      Func step("shuffle" + std::to_string(width));
      step(l, r, pb, qb, n) =
          steps.back()((r % 2) * (lanes / 2) + l / 2, r / 2 + (l % 2) * (lanes / 2), pb, qb, n);
      steps.push_back(step);
    }
    target(p, q, z, w0, w1, w2, o) = undef(target_->type());
    const auto steps_of = [](const Expr& extent, const Expr& step) {
      return (extent + step - 1) / step;
    };
    const Expr blocks_p = steps_of(extent_p, lanes), blocks_q = steps_of(extent_q, lanes);
    Expr count = 1;
    for (int d = 2; d < kDimensions - 1; ++d) count = count * target_->dim(d).extent();
    RDom all({{0, lanes},
              {0, lanes},
              {0, *chunk_p_},
              {0, *chunk_q_},
              {0, steps_of(blocks_p, *chunk_p_)},
              {0, steps_of(blocks_q, *chunk_q_)},
              {0, count}},
             "all");
    const Expr at_p = all[4] * *chunk_p_ + all[2];
    const Expr at_q = all[5] * *chunk_q_ + all[3];
    all.where(at_p < blocks_p);
    all.where(at_q < blocks_q);
    std::vector<Expr> to{start(at_p, extent_p) + all[0], start(at_q, extent_q) + all[1]};
    add_outer(to, all[6]);
    to.push_back(*offset_);
    target(to) = steps.back()(all[0], all[1], at_p, at_q, all[6]);

    // Schedule.
    Stage blocks = target.update();
    blocks.allow_race_conditions()
        .gpu_blocks(all[4], all[5], all[6])
        .vectorize(all[0])
        .unroll(all[1])
        .never_partition_all();
    const RVar pi = all[2];
    for (Func step : steps) {
      step.compute_at(target, pi).store_in(MemoryType::Register);
      step.bound_extent(l, lanes).bound_extent(r, lanes).vectorize(l).unroll(r);
      for (const Var& one : {pb, qb, n}) step.bound_extent(one, 1);
    }
  }

  // The indices of the outer loops of iteration `number` of them all.
  void add_outer(std::vector<Expr>& indices, Expr number) const {
    for (int d = 2; d < kDimensions - 1; ++d) {
      const Expr extent = target_->dim(d).extent();
      indices.push_back(d == kDimensions - 2 ? number : number % extent);
      number = number / extent;
    }
  }

  // A group of 16 x 16 work-items; the hardware merges what it can of the reads.
  void generate_gpu() {
    constexpr int kSide = 16;
    Func target = *target_;
    const Var po("po"), pi("pi"), qo("qo"), qi("qi");
    target(p, q, z, w0, w1, w2, o) = undef(target_->type());
    target(p, q, z, w0, w1, w2, *offset_) = (*source_)(p, q, z, w0, w1, w2, 0);
    Stage copies = target.update();
    copies.split(p, po, pi, kSide, TailStrategy::GuardWithIf)
        .split(q, qo, qi, kSide, TailStrategy::GuardWithIf)
        .reorder({pi, qi, po, qo, z, w0, w1, w2});
    const Var outer = fuse_outer(copies);
    copies.gpu_blocks(po, qo, outer).gpu_threads(pi, qi).never_partition_all();
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::Transpose, transpose_region)
