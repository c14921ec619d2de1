#include "tests/op_table.h"
#include "tests/samples.h"

#include <algorithm>
#include <cmath>

namespace ballast::tests {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One [queries, keys] matrix per index of the leading dimensions, from the definition.
class Scores {
 public:
  Scores(const HostArray& q, const HostArray& k, const HostArray* mask, const Attrs& attrs)
      : shape_(q.type.shape),
        queries(shape_[shape_.size() - 2]),
        keys(k.type.shape[k.type.shape.size() - 2]),
        depth(shape_.back()),
        q_(q),
        k_(k),
        mask_(mask),
        causal_(attr_or<int64_t>(attrs, "causal", 0) != 0) {
    scale = attr_or<double>(attrs, "scale", 0);
    if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(depth, 1)));
    shape_.back() = keys;
    groups = 1;
    for (size_t i = 0; i + 2 < shape_.size(); ++i) groups *= shape_[i];
  }

  double at(int64_t group, int64_t i, int64_t j) const {
    if (causal_ && j > i) return -kInfinity;
    double sum = 0;
    for (int64_t d = 0; d < depth; ++d) {
      sum +=
          q_.values[(group * queries + i) * depth + d] * k_.values[(group * keys + j) * depth + d];
    }
    sum *= scale;
    if (mask_ == nullptr) return sum;
    const size_t flat = (group * queries + i) * keys + j;
    const double mask = broadcast_value(*mask_, index_of(flat, shape_));
    if (mask_->type.dtype == DType::kBool) return mask != 0 ? sum : -kInfinity;
    return sum + mask;
  }

 private:
  Shape shape_;

 public:
  int64_t queries, keys, depth, groups = 1;
  double scale = 1;

 private:
  const HostArray &q_, &k_;
  const HostArray* mask_;
  bool causal_;
};

void attention(const std::vector<HostArray>& inputs, const Attrs& attrs,
               std::vector<HostArray>& outputs) {
  const Scores scores(inputs[0], inputs[1], inputs.size() > 3 ? &inputs[3] : nullptr, attrs);
  const int64_t width = inputs[2].type.shape.back();
  for (int64_t row = 0; row < scores.groups * scores.queries; ++row) {
    const int64_t group = row / scores.queries, i = row % scores.queries;
    double top = -kInfinity, total = 0;
    for (int64_t j = 0; j < scores.keys; ++j) top = larger(scores.at(group, i, j), top);
    for (int64_t j = 0; j < scores.keys && top != -kInfinity; ++j) {
      total += std::exp(scores.at(group, i, j) - top);
    }
    outputs[1].values[row] = top + std::log(total);
    for (int64_t e = 0; e < width; ++e) {
      double sum = 0;
      for (int64_t j = 0; j < scores.keys && top != -kInfinity; ++j) {
        sum += std::exp(scores.at(group, i, j) - top) / total *
               inputs[2].values[(group * scores.keys + j) * width + e];
      }
      outputs[0].values[row * width + e] = sum;
    }
  }
}

// lse is f32 whatever q is.
Types attention_types(const Types& in, const Attrs&) {
  TensorType out = in[0], lse = {DType::kF32, in[0].shape};
  out.shape.back() = in[2].shape.back();
  lse.shape.pop_back();
  return {out, lse};
}

// inputs dout, q, k, v, lse, delta, mask.
void attention_grad(const std::vector<HostArray>& inputs, const Attrs& attrs,
                    std::vector<HostArray>& outputs) {
  const HostArray &dout = inputs[0], &q = inputs[1], &k = inputs[2], &v = inputs[3];
  const Scores scores(q, k, inputs.size() > 6 ? &inputs[6] : nullptr, attrs);
  const int64_t width = v.type.shape.back(), depth = scores.depth;
  for (HostArray& output : outputs) std::fill(output.values.begin(), output.values.end(), 0.0);
  for (int64_t row = 0; row < scores.groups * scores.queries; ++row) {
    const int64_t group = row / scores.queries;
    for (int64_t j = 0; j < scores.keys; ++j) {
      const int64_t column = group * scores.keys + j;
      const double score = scores.at(group, row % scores.queries, j);
      const double p = score == -kInfinity ? 0 : std::exp(score - inputs[4].values[row]);
      double dp = 0;
      for (int64_t e = 0; e < width; ++e) {
        dp += dout.values[row * width + e] * v.values[column * width + e];
        outputs[2].values[column * width + e] += p * dout.values[row * width + e];
      }
      const double ds = p * (dp - inputs[5].values[row]) * scores.scale;
      for (int64_t d = 0; d < depth; ++d) {
        outputs[0].values[row * depth + d] += ds * k.values[column * depth + d];
        outputs[1].values[column * depth + d] += ds * q.values[row * depth + d];
      }
    }
  }
}

struct Sizes {
  Shape lead;
  int64_t queries, keys, depth, width;
};

Shape with(Shape shape, std::initializer_list<int64_t> last) {
  shape.insert(shape.end(), last);
  return shape;
}

// Both ops; lse and delta of the gradient are any numbers, as the op takes them for inputs.
void add_both(OpFamilies& table, const Sizes& s, const Attrs& attrs, bool is_smooth,
              const HostArray* mask = nullptr) {
  const auto tensor = [&](int64_t rows, int64_t depth) {
    return real(with(s.lead, {rows, depth}), -1, 1);
  };
  std::vector<HostArray> inputs{tensor(s.queries, s.depth), tensor(s.keys, s.depth),
                                tensor(s.keys, s.width)};
  std::vector<HostArray> grad_inputs{tensor(s.queries, s.width)};
  grad_inputs.insert(grad_inputs.end(), inputs.begin(), inputs.end());
  const double lse = std::log(static_cast<double>(std::max<int64_t>(s.keys, 1)));
  grad_inputs.push_back(real(with(s.lead, {s.queries}), lse, lse + 0.5));
  grad_inputs.push_back(real(with(s.lead, {s.queries}), -1, 1));
  if (mask != nullptr) {
    inputs.push_back(*mask);
    grad_inputs.push_back(*mask);
  }
  table.add("scaled_dot_product_attention", inputs, attrs, is_smooth).atol = 1e-5;
  OpCase& grad = table.add("attention_grad", grad_inputs, attrs, is_smooth);
  grad.rtol = 1e-4;  // exp(scores - lse) of any lse: large numbers cancel
  grad.atol = 1e-5;
}

HostArray keep_all_but(const Shape& shape, std::initializer_list<size_t> hidden) {
  HostArray mask = boolean(shape);
  std::fill(mask.values.begin(), mask.values.end(), 1.0);
  for (size_t i : hidden) mask.values[i] = 0;
  return mask;
}

}  // namespace

void add_attention(OpFamilies& table) {
  table.references.insert(
      {{"scaled_dot_product_attention", attention}, {"attention_grad", attention_grad}});
  table.types.insert(
      {{"scaled_dot_product_attention", attention_types}, {"attention_grad", like({1, 2, 3})}});
  table.wide_operands.insert(
      {{"scaled_dot_product_attention", [](size_t i, size_t) { return i == 3; }},
       {"attention_grad", [](size_t i, size_t) { return i >= 4; }}});
  const Attrs causal = {{"causal", int64_t{1}}}, scaled = {{"scale", 1.5}};
  add_both(table, {{1}, 2, 3, 3, 2}, {}, true);
  add_both(table, {{}, 3, 3, 2, 2}, causal, true);
  const HostArray bias = real({2, 1, 3}, -1, 1);
  add_both(table, {{2}, 2, 3, 2, 1}, scaled, true, &bias);
  // The last query attends to nothing.
  const HostArray keep = keep_all_but({3, 3}, {1, 6, 7, 8});
  add_both(table, {{1, 1}, 3, 3, 2, 2}, {}, false, &keep);

  add_both(table, {{2, 3}, 17, 29, 8, 8}, {}, false);
  add_both(table, {{1, 2}, 37, 37, 16, 16}, causal, false);
  add_both(table, {{2, 2, 3}, 5, 40, 19, 33}, scaled, false);
  add_both(table, {{}, 1, 300, 32, 32}, {}, false);
  add_both(table, {{2}, 0, 4, 8, 8}, {}, false);
  add_both(table, {{2}, 4, 0, 8, 8}, {}, false);
  add_both(table, {{2}, 3, 4, 0, 8}, {}, false);
  add_both(table, {{0, 2}, 3, 4, 8, 8}, {}, false);
  for (const Shape& shape : std::vector<Shape>{
           {40}, {1, 40}, {5, 40}, {3, 5, 40}, {2, 1, 1, 40}, {1, 3, 1, 40}, {2, 3, 5, 40}}) {
    HostArray mask = boolean(shape);
    mask.values[0] = 1;
    add_both(table, {{2, 3}, 5, 40, 16, 16}, {}, false, &mask);
    const HostArray added = real(shape, -2, 2);
    add_both(table, {{2, 3}, 5, 40, 12, 16}, causal, false, &added);
  }
}

void draw_attention(OpFamilies& table, Draw& draw) {
  const Shape lead = draw.shape(draw.below(3), 6);
  Sizes s{lead, draw.extent_or_none(300), draw.extent_or_none(300), draw.extent(130), 0};
  s.width = draw.one_in(2) ? s.depth : draw.extent(130);
  while (s.queries * s.keys * (s.depth + s.width) > 4000000) s.queries = (s.queries + 1) / 2;
  Attrs attrs = {{"causal", draw.below(2)}};
  if (draw.one_in(3)) attrs.emplace_back("scale", 0.3);
  HostArray mask;
  if (draw.one_in(2)) {
    mask.type.shape = draw.broadcast_from(with(lead, {s.queries}));
    mask.type.shape.push_back(s.keys);
    mask = draw.one_in(2) ? boolean(mask.type.shape) : real(mask.type.shape, -2, 2);
  }
  add_both(table, s, attrs, false, mask.values.empty() ? nullptr : &mask);
}

}  // namespace ballast::tests
