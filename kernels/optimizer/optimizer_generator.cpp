// Optimizer steps over one dense tensor, and the sums over one that norms are made of. All outputs
// of a step may be inputs' buffers: the values of a vector are computed before any is stored.
#include "kernels/optimizer/optimizer_recipe.h"
#include "kernels/optimizer/step_rules.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pointwise/pointwise_ops.h"
#include "kernels/recipe/pairwise_sum.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

// CPU: whole vectors, `vectors` of them per work-group, and a scalar launch for the rest. GPU: an
// element per work-item.
template <int kOutputs>
class StepGenerator : public Generator<StepGenerator<kOutputs>> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<std::string> rule{"rule", "sgd"};
  GeneratorInput<Buffer<>> param{"param", Float(32), 1};
  GeneratorInput<int> vectors{"vectors"};
  GeneratorOutput<Func> result{"result", std::vector<Type>(kOutputs, Float(32)), 1};

  void configure() {
    const StepRule& r = step_rule(rule);
    const auto add = [&](const std::string& name, int dimensions) {
      return this->template add_input<Buffer<>>(name, Float(32), dimensions);
    };
    for (uint32_t i = 0; i < r.states; ++i) states_.push_back(add("state" + std::to_string(i), 1));
    if (r.has_gradient) gradient_ = add("gradient", 1);
    for (uint32_t i = 0; i < r.scalars; ++i)
      scalars_.push_back(add("scalar" + std::to_string(i), 0));
  }

  void generate() {
    define(values_, prepared_);
    if (is_gpu()) {
      out_(i) = copy(values_(i));
    } else {
      const Expr n = param.dim(0).extent(), whole_vectors = n / kLanes;
      out_(i) = Tuple(std::vector<Expr>(kOutputs, undef<float>()));
      whole_ = RDom(0, kLanes, 0, whole_vectors, "whole");
      const Expr at = whole_.y * kLanes + whole_.x;
      out_(at) = copy(values_(at));
      define(rest_values_, rest_prepared_);
      rest_ = RDom(0, n % kLanes, "rest");
      const Expr last = whole_vectors * kLanes + rest_;
      out_(last) = copy(rest_values_(last));
    }
    result = out_;
  }

  void schedule() {
    out_.output_buffers()[0].dim(0).set_min(0);  // the others' follow
    param.dim(0).set_min(0);
    for (auto* state : states_) state->dim(0).set_min(0);
    if (gradient_) gradient_->dim(0).set_min(0);
    for (Func func : {prepared_, values_, rest_prepared_, rest_values_}) {
      func.store_in(MemoryType::Stack);
    }
    if (is_gpu()) {
      constexpr int kItems = 256;
      const Var group("group"), item("item");
      out_.split(i, group, item, kItems, TailStrategy::GuardWithIf);
      out_.gpu_blocks(group).gpu_threads(item);
      values_.compute_at(out_, item);
      prepared_.compute_at(out_, item);
      return;
    }
    const RVar group("group"), vector("vector"), one("one"), element("element");
    out_.update(0)
        .split(whole_.y, group, vector, vectors, TailStrategy::GuardWithIf)
        .allow_race_conditions()  // every element is written once
        .vectorize(whole_.x)
        .gpu_blocks(group);
    values_.compute_at(out_, vector).vectorize(i, kLanes);
    prepared_.compute_at(out_, group);
    out_.update(1).split(rest_, one, element, kLanes).gpu_blocks(one);
    rest_values_.compute_at(out_, element);
    rest_prepared_.compute_at(out_, one);
  }

 private:
  bool is_gpu() const { return device_class.value() == "gpu"; }

  void define(Func values, Func prepared) {
    std::vector<Expr> scalars, states, read;
    for (auto* scalar : scalars_) scalars.push_back((*scalar)());
    prepared() = Tuple(prepare_scalars(rule, scalars));
    for (int k = 0; k < prepared.outputs(); ++k) {
      read.push_back(prepared.outputs() == 1 ? Expr(prepared()) : Expr(prepared()[k]));
    }
    for (auto* state : states_) states.push_back((*state)(i));
    const Expr gradient = gradient_ ? Expr((*gradient_)(i)) : Expr();
    values(i) = Tuple(step_values(rule, param(i), states, gradient, read));
  }
  static Tuple copy(const FuncRef& values) {
    if (kOutputs == 1) return Tuple(Expr(values));
    std::vector<Expr> all;
    for (int k = 0; k < kOutputs; ++k) all.push_back(values[k]);
    return Tuple(all);
  }

  std::vector<GeneratorInput<Buffer<>>*> states_, scalars_;
  GeneratorInput<Buffer<>>* gradient_ = nullptr;
  Var i{"i"};
  Func prepared_{"prepared"}, values_{"values"}, out_{"out"};
  Func rest_prepared_{"rest_prepared"}, rest_values_{"rest_values"};
  RDom whole_, rest_;
};

// Sums of chunks of x, to partial(first + c). kind square: of x^2; finite: of 0 x, which is 0 or
// NaN.
class ChunkSums : public Generator<ChunkSums> {
 public:
  static constexpr int kWidth = 64;  // partial sums side by side
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<std::string> kind{"kind", "square"};
  Input<Buffer<>> x{"x", Float(32), 1};
  Input<int> chunk{"chunk"};  // a multiple of kWidth
  Input<int> first{"first"};
  Output<Buffer<>> partial{"partial", Float(32), 1};

  void generate() {
    const Expr n = x.dim(0).extent(), whole = n / kWidth * kWidth, start = c * chunk;
    steps_ = RDom(0, chunk / kWidth, "steps");
    steps_.where(start + steps_ * kWidth + kWidth <= n);
    sums(l, c) = 0.0f;
    sums(l, c) = strict_float(sums(l, c) + term(x(start + steps_ * kWidth + l)));
    RDom tail(0, n - whole, "tail");
    tail.where(start <= whole && whole < start + chunk);
    rest(c) = 0.0f;
    rest(c) = strict_float(rest(c) + term(x(whole + tail)));
    const Expr total = pairwise_sum(kWidth, [&](int k) { return Expr(sums(k, c)); });
    partial(c) = undef<float>();
    chunks_ = RDom(0, (n + chunk - 1) / chunk, "chunks");
    partial(first + chunks_) = strict_float(at_chunk(total + rest(c)));
  }

  void schedule() {
    x.dim(0).set_min(0);
    partial.dim(0).set_min(0);
    Func out = partial;
    out.update().allow_race_conditions().gpu_blocks(chunks_);
    const bool is_gpu = device_class.value() == "gpu";
    sums.compute_at(out, chunks_).bound(l, 0, kWidth);
    rest.compute_at(out, chunks_).store_in(MemoryType::Stack);
    if (is_gpu) {
      sums.gpu_threads(l).store_in(MemoryType::GPUShared);
      sums.update().gpu_threads(l);
      return;
    }
    sums.store_in(MemoryType::Stack).vectorize(l, kLanes).unroll(l);
    sums.update().reorder(l, steps_).vectorize(l, kLanes).unroll(l);
  }

 private:
  Expr term(const Expr& value) const {
    return strict_float(kind.value() == "square" ? value * value : value * 0.0f);
  }
  // `e` with the reduction's variable in place of c.
  Expr at_chunk(const Expr& e) const {
    return Internal::substitute(c.name(), Expr(RVar(chunks_.x)), e);
  }

  Var l{"l"}, c{"c"};
  Func sums{"sums"}, rest{"rest"};
  RDom steps_, chunks_;
};

// The sum of `count` partial sums, in order. kind square: its square root (f32); finite: whether it
// is a number (bool).
class FinishSums : public Generator<FinishSums> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<std::string> kind{"kind", "square"};
  Input<Buffer<>> partial{"partial", Float(32), 1};
  Output<Buffer<>> out{"out", 1};

  void configure() { out.set_type(kind.value() == "square" ? Type(Float(32)) : Type(UInt(8))); }

  void generate() {
    RDom all(0, partial.dim(0).extent(), "all");
    total(i) = 0.0f;
    total(i) = strict_float(total(i) + partial(all));
    if (kind.value() == "square") {
      out(i) = strict_float(sqrt(total(i)));
    } else {
      out(i) = select(eq(total(i), total(i)), cast<uint8_t>(1), cast<uint8_t>(0));
    }
  }

  void schedule() {
    partial.dim(0).set_min(0);
    out.dim(0).set_min(0);
    Func(out).gpu_blocks(i);
    total.compute_at(out, i).store_in(MemoryType::Stack);
  }

 private:
  Var i{"i"};
  Func total{"total"};
};

}  // namespace

using StepOf1 = StepGenerator<1>;
using StepOf2 = StepGenerator<2>;
using StepOf3 = StepGenerator<3>;

}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::StepOf1, step_1)
HALIDE_REGISTER_GENERATOR(ballast::kernels::StepOf2, step_2)
HALIDE_REGISTER_GENERATOR(ballast::kernels::StepOf3, step_3)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ChunkSums, chunk_sums)
HALIDE_REGISTER_GENERATOR(ballast::kernels::FinishSums, finish_sums)
