// Attention for what the others leave out: on CPUs rows too wide for the stack of attention_tiles,
// on GPUs little work, on both extents of 0. Everything is one of
//
//   attention_lse   lse[i] = log sum_j exp(s[i, j]), a work-item per query
//   attention_sum   out[i, c] = sum_j w[i, j] x[j, c], a group of work-items per tile, which
//   computes
//                   the weights w of 32 columns at a time into its local memory
//
// with s = scale q k' + mask. The result is out with w = p = exp(s - lse) and x = v; dq with w = ds
// and x = k; transposed, dv with w = p' and x = dout; dk with w = ds' and x = q; and
// ds = scale p (dout v' - delta) (Dao 2023, FlashAttention-2, algorithm 2).
#include "kernels/attention/attention_recipe.h"
#include "kernels/pointwise/pointwise_math.h"

namespace ballast::kernels {
namespace {

using namespace attention;
using namespace Halide;

// The operands of scores: q, k, and what hides keys.
template <class Derived>
class WithScores : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "gpu"};
  GeneratorParam<bool> has_mask{"has_mask", false};

 protected:
  using BufferInput = GeneratorInput<Buffer<float>>;
  BufferInput* q_ = nullptr;     // [bh][query][d]
  BufferInput* k_ = nullptr;     // [bh][key][d]
  BufferInput* mask_ = nullptr;  // [batch][head][query][key]; strides of 0 repeat
  GeneratorInput<int>* diagonal_ = nullptr;
  GeneratorInput<float>* scale_ = nullptr;

  BufferInput* add_tensor(const char* name, int dimensions) {
    return this->template add_input<Buffer<float>>(name, dimensions);
  }

  void add_score_inputs() {
    q_ = add_tensor("q", 3);
    k_ = add_tensor("k", 3);
    if (has_mask) mask_ = add_tensor("mask", 4);
    diagonal_ = this->template add_input<int>("diagonal");
    scale_ = this->template add_input<float>("scale");
  }

  Expr score(const Expr& product, const Expr& query, const Expr& key, const Expr& h) {
    return score_of(product, *scale_, mask_, query, key, h, *diagonal_);
  }
};

class AttentionLse : public WithScores<AttentionLse> {
 public:
  void configure() {
    add_score_inputs();
    out_ = add_output<Buffer<float>>("out", 2);
  }

  void generate() {
    // Algorithm: the largest score so far, and the sum of exp(score - largest).
    RDom d(0, q_->dim(0).extent(), "rd"), j(0, k_->dim(1).extent(), "rj");
    product(i, k, h) = 0.0f;
    product(i, k, h) += (*q_)(d, i, h) * (*k_)(d, k, h);
    stats(i, h) = Tuple(-kInfinity, 0.0f);
    const Tuple old = stats(i, h);
    const Expr s = score(product(i, j, h), i, j, h);
    const Expr top = select(lt(s, old[0]), old[0], s);
    const Expr base = finite_or_zero(top);
    stats(i, h) = Tuple(top, old[1] * exp_f32(old[0] - base) + exp_f32(s - base));
    Func out = *out_;
    out(i, h) = stats(i, h)[0] + log_f32(stats(i, h)[1]);
    for (BufferInput* input : {q_, k_, mask_}) {
      if (input != nullptr) set_any_layout(*input);
    }

    // Schedule.
    Var io("io"), ii("ii");
    out.gpu_tile(i, io, ii, 64, TailStrategy::GuardWithIf).gpu_blocks(h);
    out.never_partition_all();
    stats.compute_at(out, ii).store_in(MemoryType::Stack);
    product.compute_at(stats, j).store_in(MemoryType::Stack);
  }

 private:
  Var i{"i"}, k{"k"}, h{"h"};
  Func product{"product"}, stats{"stats"};
  GeneratorOutput<Buffer<float>>* out_ = nullptr;
};

class AttentionSum : public WithScores<AttentionSum> {
 public:
  GeneratorParam<bool> transposed{"transposed", false};
  GeneratorParam<bool> of_ds{"of_ds", false};

  void configure() {
    add_score_inputs();
    lse_ = add_tensor("lse", 2);
    if (of_ds) {
      v_ = add_tensor("v", 3);
      dout_ = add_tensor("dout", 3);
      delta_ = add_tensor("delta", 2);
    }
    x_ = add_tensor("x", 3);
    out_ = add_output<Buffer<float>>("out", 3);
  }

  void generate() {
    // Algorithm. i is a row of the result, j a row of x. Past the edges of a tile the last row
    // repeats; its weights are not used.
    const Expr row_count = (transposed ? k_ : q_)->dim(1).extent();
    const Expr columns = x_->dim(1).extent();
    const Expr row = min(i, row_count - 1), column = min(j, columns - 1);
    const Expr query = transposed ? column : row, key = transposed ? row : column;
    RDom d(0, q_->dim(0).extent(), "rd");
    product(j, i, h) = 0.0f;
    product(j, i, h) += (*q_)(d, query, h) * (*k_)(d, key, h);
    const Expr shift = shift_of((*lse_)(query, h));
    Expr w = exp_f32(score(product(j, i, h), query, key, h) - shift);
    if (of_ds) {
      RDom e(0, v_->dim(0).extent(), "re");
      dp(j, i, h) = 0.0f;
      dp(j, i, h) += (*dout_)(e, query, h) * (*v_)(e, key, h);
      w = w * (dp(j, i, h) - (*delta_)(query, h)) * *scale_;
    }
    weight(j, i, h) = w;
    RDom r(0, columns, "r");
    sum(c, i, h) = 0.0f;
    sum(c, i, h) += weight(r, i, h) * (*x_)(min(c, x_->dim(0).extent() - 1), r, h);
    Func out = *out_;
    out(c, i, h) = sum(c, i, h);
    for (BufferInput* input : {q_, k_, mask_, lse_, v_, dout_, delta_, x_}) {
      if (input != nullptr) set_any_layout(*input);
    }
    schedule_tiles(out, r);
  }

 private:
  Var c{"c"}, i{"i"}, j{"j"}, h{"h"};
  Func product{"product"}, dp{"dp"}, weight{"weight"}, sum{"sum"};
  BufferInput *lse_ = nullptr, *v_ = nullptr, *dout_ = nullptr, *delta_ = nullptr, *x_ = nullptr;
  GeneratorOutput<Buffer<float>>* out_ = nullptr;

  // A group of 32 x 8 work-items makes 32 elements of 8 rows.
  void schedule_tiles(Func out, RDom& r) {
    constexpr int kWidth = 32, kRows = 8;
    Var co("co"), ci("ci"), io("io"), ii("ii");
    RVar ro("ro"), ri("ri");
    out.tile(c, i, co, io, ci, ii, kWidth, kRows, TailStrategy::GuardWithIf)
        .gpu_blocks(co, io, h)
        .gpu_threads(ci, ii);
    sum.compute_at(out, co).bound_extent(c, kWidth).bound_extent(i, kRows).gpu_threads(c, i);
    sum.update()
        .split(r, ro, ri, kWidth, TailStrategy::GuardWithIf)
        .reorder(ri, c, i, ro)
        .gpu_threads(c, i);
    weight.compute_at(sum, ro).bound_extent(j, kWidth).bound_extent(i, kRows).gpu_threads(j, i);
    for (Func f : {product, dp}) {
      if (f.defined()) f.compute_at(weight, j).store_in(MemoryType::Stack);
    }
    out.never_partition_all();
    sum.update().never_partition_all();
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionLse, attention_lse)
HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionSum, attention_sum)
