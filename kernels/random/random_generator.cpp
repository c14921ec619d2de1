// Random numbers: element i comes from word i % 4 of counter block i / 4. A CPU work-item makes 16
// blocks at a time, a vector per word, and interleaves them; what is left of the last 64 elements
// is a short scalar launch. (One loop with a guard would be cut within a vector, which Halide
// writes as 16 conditional copies of everything.)
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/random/random_limits.h"
#include "kernels/random/random_recipe.h"
#include "kernels/recipe/shuffle.h"

#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

// What becomes of word n of a block; a value that depends on the words alone.
using Draw = std::function<Expr(const PhiloxWords& words, int n)>;
// Element i, given its draw.
using Value = std::function<Expr(const Expr& i, const Expr& draw)>;

template <class Derived>
class RandomGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorInput<Buffer<>> key{"key", Int(64), 1};
  GeneratorInput<int> stream_low{"stream_low"};
  GeneratorInput<int> stream_high{"stream_high"};
  GeneratorInput<int> strips{"strips"};  // of kStrip elements, per work-group

 protected:
  void define(Func out, const Expr& n, const Draw& draw, const Value& value) {
    add_draws(draw);
    if (is_gpu()) {
      out(i) = value(i, draws_(i % 4, i / 4));
      return;
    }
    put_in_order();
    out(i) = undef(value(i, in_order_(0, 0, 0)).type());
    whole_ = RDom(0, kLanes, 0, kStrip / kLanes, 0, n / kStrip, "whole");
    const Expr at = whole_.z * kStrip + whole_.y * kLanes + whole_.x;
    out(at) = value(at, in_order_(whole_.x, whole_.y, whole_.z));
    rest_ = RDom(0, n % kStrip, "rest");
    const Expr last = n - n % kStrip + rest_;
    out(last) = value(last, rest_draws_(last % 4, last / 4));
  }

  void schedule_random(OutputImageParam buffer, Func out) {
    buffer.dim(0).set_min(0);
    key.dim(0).set_min(0);
    const Var group("group"), item("item");
    if (is_gpu()) {  // a block of four per work-item
      constexpr int kItems = 64;
      out.split(i, block, w, 4, TailStrategy::GuardWithIf).unroll(w);
      out.split(block, group, item, kItems, TailStrategy::GuardWithIf);
      out.reorder(w, item, group).gpu_blocks(group).gpu_threads(item);
      for (Func& stage : stages_) stage.compute_at(out, item).store_in(MemoryType::Stack);
      draws_.compute_at(out, item).store_in(MemoryType::Stack).bound_extent(w, 4).unroll(w);
      return;
    }
    const RVar strip_group("strip_group"), step("step");
    out.update(0)
        .split(whole_.z, strip_group, step, strips, TailStrategy::GuardWithIf)
        .allow_race_conditions()  // every element is written once
        .vectorize(whole_.x)
        .unroll(whole_.y)
        .gpu_blocks(strip_group);
    for (Func& stage : stages_) {
      stage.compute_at(out, step).store_in(MemoryType::Stack);
      stage.bound_extent(block, kLanes).vectorize(block);
    }
    for (Func func : {draws_, pairs_, in_order_}) {
      func.compute_at(out, step).store_in(MemoryType::Stack);
    }
    draws_.bound_extent(block, kLanes).vectorize(block).bound(w, 0, 4).unroll(w);
    draws_.reorder_storage(block, w);
    for (Func func : {pairs_, in_order_}) {
      func.bound(lane, 0, kLanes).vectorize(lane).bound(w, 0, 4).unroll(w);
    }
    const RVar rest_group("rest_group"), element("element");
    out.update(1).split(rest_, rest_group, element, kStrip).gpu_blocks(rest_group);
    for (Func& stage : rest_stages_) stage.compute_at(out, element).store_in(MemoryType::Stack);
  }

 private:
  bool is_gpu() const { return device_class.value() == "gpu"; }

  void add_draws(const Draw& draw) {
    const PhiloxWords counter = philox_counter(key(1), stream_low, stream_high, block);
    const auto add = [&](Func words, Func draws, std::vector<Func>& stages) {
      Philox philox(words.name(), {block}, counter, key(0));
      const PhiloxWords& made = philox.words();
      words(block) = Tuple(std::vector<Expr>(made.begin(), made.end()));
      stages = philox.products();
      stages.push_back(words);
      const PhiloxWords read = {words(block)[0], words(block)[1], words(block)[2], words(block)[3]};
      draws(w, block) = mux(w, {draw(read, 0), draw(read, 1), draw(read, 2), draw(read, 3)});
    };
    add(words_, draws_, stages_);
    add(rest_words_, rest_draws_, rest_stages_);
  }

  // The four vectors of draws interleaved, so that those of a block are neighbours: words 0 and 2
  // and words 1 and 3 first, then these pairs.
  void put_in_order() {
    std::vector<int> low, high;
    for (int n = 0; n < kLanes; ++n) {
      low.push_back(n / 2 + n % 2 * kLanes);
      high.push_back(low.back() + kLanes / 2);
    }
    const auto interleaved = [&](const Expr& is_low, const Expr& a, const Expr& b) {
      return select(is_low, take_lanes(a, b, low), take_lanes(a, b, high));
    };
    const auto draw = [&](const Expr& n) { return Expr(draws_(n, strip * kLanes + lane)); };
    pairs_(lane, w, strip) = interleaved(w < 2, draw(w % 2), draw(w % 2 + 2));
    const auto pair = [&](const Expr& n) { return Expr(pairs_(lane, n, strip)); };
    in_order_(lane, w, strip) = interleaved(w % 2 == 0, pair(w / 2 * 2), pair(w / 2 * 2 + 1));
  }

  Var i{"i"}, w{"w"}, block{"block"}, lane{"lane"}, strip{"strip"};
  Func words_{"words"}, draws_{"draws"}, pairs_{"pairs"}, in_order_{"in_order"};
  Func rest_words_{"rest_words"}, rest_draws_{"rest_draws"};
  std::vector<Func> stages_, rest_stages_;  // the words and what they are made from
  RDom whole_, rest_;
};

Expr as_drawn(const Expr&, const Expr& draw) { return draw; }

// kind bits: the words; integers: low + floor(word count / 2^32).
class RandomIntegers : public RandomGenerator<RandomIntegers> {
 public:
  GeneratorParam<std::string> kind{"kind", "bits"};
  Input<int> low{"low"};
  Input<int> count{"count"};  // a u32
  Output<Buffer<>> out{"out", Int(32), 1};

  void generate() {
    const Draw draw = [&](const PhiloxWords& words, int n) {
      if (kind.value() == "bits") return reinterpret(Int(32), words[n]);
      return reinterpret(Int(32), below(cast(UInt(32), count), words[n]) + cast(UInt(32), low));
    };
    define(out, out.dim(0).extent(), draw, as_drawn);
  }
  void schedule() { schedule_random(out, out); }
};

// shift + scale times a standard variable. kind uniform: in [0, 1), and the result at most `limit`.
class RandomFloats : public RandomGenerator<RandomFloats> {
 public:
  GeneratorParam<std::string> kind{"kind", "uniform"};
  Input<float> scale{"scale"};
  Input<float> shift{"shift"};
  Input<float> limit{"limit"};
  Output<Buffer<>> out{"out", Float(32), 1};

  void generate() {
    const Draw draw = [&](const PhiloxWords& words, int n) {
      const Expr value = strict_float(fma_f32(standard(words, n), scale, shift));
      return kind.value() == "uniform" ? select(lt(limit, value), limit, value) : value;
    };
    define(out, out.dim(0).extent(), draw, as_drawn);
  }
  void schedule() { schedule_random(out, out); }

 private:
  Expr standard(const PhiloxWords& words, int n) const {
    if (kind.value() == "uniform") return cast<float>(upper_24(words[n])) * 0x1p-24f;
    if (kind.value() == "normal") return normal_pair(words[n & 2], words[n | 1])[n & 1];
    return truncated_normal(words[n]);
  }
};

// True where a uniform number (in 2^-24) is below `threshold`.
class RandomBernoulli : public RandomGenerator<RandomBernoulli> {
 public:
  Input<int> threshold{"threshold"};
  Output<Buffer<>> out{"out", UInt(8), 1};

  void generate() {
    const Draw draw = [&](const PhiloxWords& words, int n) {
      return select(upper_24(words[n]) < threshold, cast<uint8_t>(1), cast<uint8_t>(0));
    };
    define(out, out.dim(0).extent(), draw, as_drawn);
  }
  void schedule() { schedule_random(out, out); }
};

// True where a uniform number is below p(i).
class RandomBernoulliTensor : public RandomGenerator<RandomBernoulliTensor> {
 public:
  Input<Buffer<>> p{"p", Float(32), 1};
  Output<Buffer<>> out{"out", UInt(8), 1};

  void generate() {
    const Draw draw = [](const PhiloxWords& words, int n) {
      return cast<float>(upper_24(words[n])) * 0x1p-24f;
    };
    define(out, out.dim(0).extent(), draw, [&](const Expr& i, const Expr& uniform) {
      return select(lt(uniform, p(i)), cast<uint8_t>(1), cast<uint8_t>(0));
    });
  }
  void schedule() {
    p.dim(0).set_min(0);
    schedule_random(out, out);
  }
};

// x scale where a uniform number (in 2^-24) is below `threshold`, else 0 whatever x is.
class Dropout : public RandomGenerator<Dropout> {
 public:
  Input<Buffer<>> x{"x", Float(32), 1};
  Input<int> threshold{"threshold"};
  Input<float> scale{"scale"};
  Output<Buffer<>> out{"out", Float(32), 1};

  void generate() {
    const Draw draw = [](const PhiloxWords& words, int n) { return upper_24(words[n]); };
    define(out, out.dim(0).extent(), draw, [&](const Expr& i, const Expr& uniform) {
      return select(uniform < threshold, strict_float(x(i) * scale), 0.0f);
    });
  }
  void schedule() {
    x.dim(0).set_min(0);
    schedule_random(out, out);
  }
};

class RandomAdvance : public Generator<RandomAdvance> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<Buffer<>> key{"key", Int(64), 1};
  Input<int> low{"low"};
  Input<int> high{"high"};
  Output<Buffer<>> out{"out", Int(64), 1};

  void generate() {
    const Expr blocks =
        (cast<int64_t>(high) << 32) + cast<int64_t>(reinterpret<uint32_t>(Expr(low)));
    out(i) = key(i) + select(i == 1, blocks, cast<int64_t>(0));
  }
  void schedule() {
    key.dim(0).set_min(0);
    out.dim(0).set_min(0);
    Func(out).gpu_blocks(i);
  }

 private:
  Var i{"i"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::RandomIntegers, random_integers)
HALIDE_REGISTER_GENERATOR(ballast::kernels::RandomFloats, random_floats)
HALIDE_REGISTER_GENERATOR(ballast::kernels::RandomBernoulli, random_bernoulli)
HALIDE_REGISTER_GENERATOR(ballast::kernels::RandomBernoulliTensor, random_bernoulli_tensor)
HALIDE_REGISTER_GENERATOR(ballast::kernels::Dropout, random_dropout)
HALIDE_REGISTER_GENERATOR(ballast::kernels::RandomAdvance, random_advance)
