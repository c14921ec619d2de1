// Problems of attention for tests, and their results in double.
#pragma once

#include "kernels/test_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace ballast::kernels::testing {

struct AttentionCase {
  int64_t batch, heads, queries, keys, depth, value_depth;
  bool causal = false;
  AttentionConfig::Mask mask = AttentionConfig::Mask::kNone;
  int64_t mask_batch = 1, mask_heads = 1, mask_queries = 1;
};

inline AttentionConfig config_of(const AttentionCase& c) {
  AttentionConfig config;
  config.batch = c.batch;
  config.heads = c.heads;
  config.queries = c.queries;
  config.keys = c.keys;
  config.depth = c.depth;
  config.value_depth = c.value_depth;
  config.scale = 0.7f / std::sqrt(static_cast<float>(std::max<int64_t>(c.depth, 1)));
  config.causal = c.causal;
  config.mask = c.mask;
  config.mask_batch = c.mask_batch;
  config.mask_heads = c.mask_heads;
  config.mask_queries = c.mask_queries;
  return config;
}

inline std::string name_of(DeviceClass device_class, const AttentionConfig& c) {
  return fmt::format("{} {}x{} q{} k{} d{} dv{}{}{}", class_name(device_class), c.batch, c.heads,
                     c.queries, c.keys, c.depth, c.value_depth, c.causal ? " causal" : "",
                     c.mask == AttentionConfig::Mask::kNone   ? ""
                     : c.mask == AttentionConfig::Mask::kKeep ? " keep"
                                                              : " add");
}

struct AttentionOperands {
  HostTensor q, k, v, mask, dout;
};

inline HostTensor make_mask(const AttentionConfig& c) {
  const Shape shape{c.mask_batch, c.mask_heads, c.mask_queries, c.keys};
  const HostTensor noise = random_f32(shape, 5);
  if (c.mask != AttentionConfig::Mask::kKeep) return noise;
  std::vector<uint8_t> keep;
  for (float x : noise.as<float>()) keep.push_back(x > -1 ? 1 : 0);
  return {DType::kBool, shape, keep};
}

inline AttentionOperands make_operands(const AttentionConfig& c) {
  const auto tensor = [&](int64_t rows, int64_t depth, uint32_t seed) {
    return random_f32({c.batch, c.heads, rows, depth}, seed);
  };
  return {tensor(c.queries, c.depth, 1), tensor(c.keys, c.depth, 2),
          tensor(c.keys, c.value_depth, 3), make_mask(c), tensor(c.queries, c.value_depth, 4)};
}

// Everything in double, one head at a time, straight from the definition.
struct AttentionReference {
  std::vector<double> out, lse, dq, dk, dv;

  AttentionReference(const AttentionConfig& config, const AttentionOperands& operands)
      : c(config),
        q(operands.q.as<float>()),
        k(operands.k.as<float>()),
        v(operands.v.as<float>()),
        dout(operands.dout.as<float>()) {
    dq.resize(q.size());
    dk.resize(k.size());
    dv.resize(v.size());
    if (c.mask == AttentionConfig::Mask::kAdd) added = operands.mask.as<float>();
    if (c.mask == AttentionConfig::Mask::kKeep) kept = operands.mask.as<uint8_t>();
    for (int64_t h = 0; h < c.batch * c.heads; ++h) {
      for (int64_t i = 0; i < c.queries; ++i) add_query(h, i);
    }
  }

 private:
  const AttentionConfig& c;
  std::vector<float> q, k, v, dout, added;
  std::vector<uint8_t> kept;

  double score(int64_t h, int64_t i, int64_t j) const {
    if (c.causal && j > i) return -INFINITY;
    double sum = 0;
    for (int64_t d = 0; d < c.depth; ++d) {
      sum += double{q[(h * c.queries + i) * c.depth + d]} * k[(h * c.keys + j) * c.depth + d];
    }
    const int64_t batch = c.mask_batch == 1 ? 0 : h / c.heads;
    const int64_t head = c.mask_heads == 1 ? 0 : h % c.heads;
    const int64_t row = c.mask_queries == 1 ? 0 : i;
    const int64_t at = ((batch * c.mask_heads + head) * c.mask_queries + row) * c.keys + j;
    if (!kept.empty() && kept[at] == 0) return -INFINITY;
    return sum * c.scale + (added.empty() ? 0 : added[at]);
  }

  void add_query(int64_t h, int64_t i) {
    std::vector<double> p;
    double top = -INFINITY, total = 0;
    for (int64_t j = 0; j < c.keys; ++j) {
      p.push_back(score(h, i, j));
      top = std::isnan(top) || p.back() <= top ? top : p.back();
    }
    for (double& x : p) {
      x = top == -INFINITY ? 0 : std::exp(x - top);
      total += x;
    }
    for (double& x : p) x = total == 0 ? 0 : x / total;
    lse.push_back(top + std::log(total));
    const int64_t row = h * c.queries + i;
    double delta = 0;
    for (int64_t e = 0; e < c.value_depth; ++e) {
      double sum = 0;
      for (int64_t j = 0; j < c.keys; ++j) sum += p[j] * v[(h * c.keys + j) * c.value_depth + e];
      out.push_back(sum);
      delta += sum * dout[row * c.value_depth + e];
    }
    for (int64_t j = 0; j < c.keys; ++j) add_gradients(row, h * c.keys + j, p[j], delta);
  }

  void add_gradients(int64_t row, int64_t column, double p, double delta) {
    double dp = 0;
    for (int64_t e = 0; e < c.value_depth; ++e) {
      dp += double{dout[row * c.value_depth + e]} * v[column * c.value_depth + e];
      dv[column * c.value_depth + e] += p * dout[row * c.value_depth + e];
    }
    const double ds = p * (dp - delta) * c.scale;
    for (int64_t d = 0; d < c.depth; ++d) {
      dq[row * c.depth + d] += ds * k[column * c.depth + d];
      dk[column * c.depth + d] += ds * q[row * c.depth + d];
    }
  }
};

}  // namespace ballast::kernels::testing
