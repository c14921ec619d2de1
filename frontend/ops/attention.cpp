#include "frontend/ops/attention.h"

#include "frontend/ops/call.h"
#include "frontend/ops/ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ballast::ops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Attrs attrs_of(bool causal, double scale) {
  return {{"scale", scale}, {"causal", int64_t{causal}}};
}

// The op wants every key in the mask's last dimension.
Tensor with_keys(const Tensor& mask, int64_t keys) {
  Shape shape = mask.shape();
  if (shape.empty()) return broadcast_to(mask, {keys});
  if (shape.back() == keys || shape.back() != 1) return mask;
  shape.back() = keys;
  return broadcast_to(mask, shape);
}

// Leading dimensions first..last (those of extent 1 aside) that the mask has all or none of.
struct Run {
  size_t first, last;
  int64_t extent;
  bool is_repeated;
};

std::vector<Run> runs_of(const Shape& mask, const Shape& scores) {
  std::vector<Run> runs;
  for (size_t d = 0; d + 2 < scores.size(); ++d) {
    if (scores[d] == 1) continue;
    const bool is_repeated = mask[d] == 1;
    if (runs.empty() || runs.back().is_repeated != is_repeated) {
      runs.push_back({d, d, 1, is_repeated});
    }
    runs.back().last = d;
    runs.back().extent *= scores[d];
  }
  return runs;
}

// The op takes two runs. The shortest are written out until no more are left.
Tensor with_two_runs(const Tensor& mask, const Shape& scores) {
  if (mask.shape().size() > scores.size()) return mask;  // refused by the op
  Shape shape = mask.shape();
  shape.insert(shape.begin(), scores.size() - shape.size(), 1);
  std::vector<Run> runs = runs_of(shape, scores);
  if (runs.size() <= 2) return mask;
  for (; runs.size() > 2; runs = runs_of(shape, scores)) {
    const auto shortest =
        std::min_element(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
          return a.is_repeated != b.is_repeated ? a.is_repeated : a.extent < b.extent;
        });
    for (size_t d = shortest->first; d <= shortest->last; ++d) shape[d] = scores[d];
  }
  return broadcast_to(mask, shape);
}

Tensor wide(const Tensor& x) { return cast(x, DType::kF32); }

// [queries, keys], true where the key is not after the query.
Tensor causal_mask(int64_t queries, int64_t keys) {
  const auto count_to = [](int64_t n) {
    std::vector<int32_t> numbers;
    for (int64_t i = 0; i < n; ++i) numbers.push_back(static_cast<int32_t>(i));
    return numbers;
  };
  Tensor row = Tensor::on_host(count_to(queries), {queries, 1});
  Tensor column = Tensor::on_host(count_to(keys), {1, keys});
  return less_equal(column, row);
}

}  // namespace

Tensor attention_mask(const Tensor& mask, const Tensor& q, const Tensor& k) {
  if (k.rank() < 2 || q.rank() < 2) return mask;  // refused by the op
  const int64_t keys = k.shape()[k.shape().size() - 2];
  Shape scores = q.shape();
  scores.back() = keys;
  return with_two_runs(with_keys(mask, keys), scores);
}

double attention_scale(double scale, const Tensor& q) {
  const double depth = static_cast<double>(std::max<int64_t>(q.shape().back(), 1));
  return scale == 0 ? 1 / std::sqrt(depth) : scale;
}

Tensor attention_scores(const Tensor& q, const Tensor& k, const Tensor& mask, bool causal,
                        double scale) {
  Tensor scores = matmul(wide(q), wide(k), false, true) * attention_scale(scale, q);
  if (mask.defined() && mask.dtype() == DType::kBool) {
    scores = select(mask, scores, -kInfinity);
  } else if (mask.defined()) {
    scores = scores + wide(mask);
  }
  if (!causal) return scores;
  const Shape& shape = scores.shape();
  return select(causal_mask(shape[shape.size() - 2], shape.back()), scores, -kInfinity);
}

Attention attention_with_lse(const Operand& q, const Operand& k, const Operand& v,
                             const Tensor& mask, bool causal, double scale) {
  CallScope scope(q.where());
  std::vector<Tensor> inputs{q.tensor(), k.tensor(), v.tensor()};
  if (mask.defined()) inputs.push_back(attention_mask(mask, inputs[0], inputs[1]));
  std::vector<Tensor> results =
      apply_primitive("scaled_dot_product_attention", inputs, attrs_of(causal, scale), q.where());
  return {results[0], results[1]};
}

Tensor scaled_dot_product_attention(const Operand& q, const Operand& k, const Operand& v,
                                    const Tensor& mask, bool causal, double scale) {
  return attention_with_lse(q, k, v, mask, causal, scale).out;
}

Attention attention_composed(const Operand& q, const Operand& k, const Operand& v,
                             const Tensor& mask, bool causal, double scale) {
  CallScope scope(q.where());
  Tensor scores = attention_scores(q.tensor(), k.tensor(), mask, causal, scale);
  Tensor top = stop_gradient(reduce_max(scores, {-1}, true));
  Tensor shift = select(equal(top, -kInfinity), 0.0f, top);
  Tensor e = exp(scores - shift);
  Tensor total = reduce_sum(e, {-1}, true);
  Tensor p = e / select(equal(total, 0.0f), 1.0f, total);
  Tensor out = matmul(p, wide(v.tensor()));
  Shape rows = total.shape();
  rows.pop_back();
  return {cast(out, v.tensor().dtype()), reshape(shift + log(total), rows)};
}

std::vector<Tensor> attention_grad(const Operand& dout, const Operand& q, const Operand& k,
                                   const Operand& v, const Operand& lse, const Operand& delta,
                                   const Tensor& mask, bool causal, double scale) {
  CallScope scope(dout.where());
  std::vector<Tensor> inputs{dout.tensor(), q.tensor(),   k.tensor(),
                             v.tensor(),    lse.tensor(), delta.tensor()};
  if (mask.defined()) inputs.push_back(attention_mask(mask, inputs[1], inputs[2]));
  return apply_primitive("attention_grad", inputs, attrs_of(causal, scale), dout.where());
}

}  // namespace ballast::ops
