// Attention by strips of queries: what lies between the products of attention_strips.cpp,
// over the products [bh][query of the strip][key] of a strip, s being its scores.
//
//   attention_strip_softmax  lse = log sum_j exp(s[i, j]) and p, a work-group per query
//   attention_strip_weights  p = exp(s - lse)
//   attention_strip_ds       ds = scale p (dp - delta), dp = dout v' (Dao 2023, FlashAttention-2,
//                            algorithm 2)
//
// On GPUs each may write where it read. CPUs have the first alone, for single queries.
#include "kernels/attention/attention_recipe.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/reduce/axis_generator.h"

namespace ballast::kernels {
namespace {

using namespace attention;
using namespace Halide;

class AttentionStripSoftmax : public AxisGenerator<AttentionStripSoftmax> {
 public:
  GeneratorParam<bool> has_mask{"has_mask", false};
  Input<Buffer<>> products{"products", Float(32)};  // [bh query][key]
  Input<int> first{"first"}, rows{"rows"};          // of the strip's queries; how many
  Input<int> diagonal{"diagonal"};
  Input<float> scale{"scale"};
  Output<Buffer<>> lse{"lse", Float(32)};
  Output<Buffer<>> weights{"weights", Float(32)};

  void configure() {
    set_tensors({&products}, {&weights});
    set_per_line({}, {&lse});
    if (has_mask) mask_ = add_input<Buffer<float>>("mask", 4);
  }

  void generate() {
    AxisNest nest = make_nest();
    const Expr s = score_of(products(nest.at(nest.r)), scale, mask_, first + nest.row % rows,
                            nest.r, nest.row / rows, diagonal);
    Fold peak(nest, "peak", {{FoldKind::kMax, s}});
    Fold total(nest, "total", {{FoldKind::kSum, exp_of_negative(s - finite_or_zero(peak[0]))}});
    Func line("line_lse");
    line(nest.place_vars()) = peak[0] + log_f32(total[0]);
    weights(nest.at_vars()) = exp_f32(s - shift_of(line(nest.place())));
    lse(nest.place_vars()) = line(nest.place());
    if (mask_ != nullptr) set_any_layout(*mask_);
    AxisSchedule schedule = make_schedule(nest, weights, 1);
    schedule.keep(peak);
    schedule.keep(total);
    schedule.keep(line);
    schedule.add_output(lse, 1);
  }

 private:
  GeneratorInput<Buffer<float>>* mask_ = nullptr;
};

// An element to each work-item, of matrices [bh][query][key].
void schedule_elements(Func out, const Var& j, const Var& i, const Var& h) {
  constexpr int kKeys = 64, kQueries = 4;
  Var jo("jo"), ji("ji"), io("io"), ii("ii");
  out.gpu_tile(j, i, jo, io, ji, ii, kKeys, kQueries, TailStrategy::GuardWithIf).gpu_blocks(h);
  out.never_partition_all();
}

class AttentionStripWeights : public Generator<AttentionStripWeights> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "gpu"};
  GeneratorParam<bool> has_mask{"has_mask", false};
  Input<Buffer<float, 3>> products{"products"};
  Input<Buffer<float, 2>> lse{"lse"};  // [bh][query]
  Input<int> first{"first"}, diagonal{"diagonal"};
  Input<float> scale{"scale"};
  Output<Buffer<float, 3>> weights{"weights"};

  void configure() {
    if (has_mask) mask_ = add_input<Buffer<float>>("mask", 4);
  }

  void generate() {
    const Expr s = score_of(products(j, i, h), scale, mask_, first + i, j, h, diagonal);
    weights(j, i, h) = exp_f32(s - shift_of(lse(i, h)));
    set_mins(products, lse, weights);
    if (mask_ != nullptr) set_any_layout(*mask_);
    schedule_elements(weights, j, i, h);
  }

 private:
  Var j{"j"}, i{"i"}, h{"h"};
  GeneratorInput<Buffer<float>>* mask_ = nullptr;
};

class AttentionStripDs : public Generator<AttentionStripDs> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "gpu"};
  Input<Buffer<float, 3>> weights{"weights"}, products{"products"};  // p; dp
  Input<Buffer<float, 2>> delta{"delta"};                            // [bh][query]
  Input<float> scale{"scale"};
  Output<Buffer<float, 3>> ds{"ds"};

  void generate() {
    ds(j, i, h) = weights(j, i, h) * (products(j, i, h) - delta(i, h)) * scale;
    set_mins(weights, products, delta, ds);
    schedule_elements(ds, j, i, h);
  }

 private:
  Var j{"j"}, i{"i"}, h{"h"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionStripSoftmax, attention_strip_softmax)
HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionStripWeights, attention_strip_weights)
HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionStripDs, attention_strip_ds)
