#include "bench/rows.h"

namespace ballast::bench {

// 4096x1024 as other frameworks are measured; 1576x256 are the transformer's tokens.
std::vector<Case> norm_rows() {
  const Operand large = f32({4096, 1024}), row = f32({1024}), tokens = f32({1576, 256}),
                width = f32({256}), odd = f32({509, 1009}), odd_row = f32({1009}),
                image = f32({8, 64, 56, 56}), channel = f32({64}), spread = positive({64}),
                vectors = f32({256, 512}), feature = f32({512}), features = positive({512});
  const auto statistic = [](int64_t rows) { return f32({rows, 1}); };
  const auto rstd = [](int64_t rows) { return positive({rows, 1}); };
  const Attrs groups = {{"num_groups", int64_t{8}}};
  return {
      {"layer_norm_4096x1024", "layer_norm", {}, {large, row, row}},
      {"layer_norm_1576x256", "layer_norm", {}, {tokens, width, width}},
      {"layer_norm_odd_509x1009", "layer_norm", {}, {odd, odd_row, odd_row}},
      {"layer_norm_grad_4096x1024",
       "layer_norm_grad",
       {},
       {large, large, row, statistic(4096), rstd(4096)}},
      {"layer_norm_grad_1576x256",
       "layer_norm_grad",
       {},
       {tokens, tokens, width, statistic(1576), rstd(1576)}},
      {"rms_norm_4096x1024", "rms_norm", {}, {large, row}},
      {"rms_norm_grad_4096x1024", "rms_norm_grad", {}, {large, large, row, rstd(4096)}},
      {"group_norm_8x64x56x56", "group_norm", groups, {image, channel, channel}},
      {"group_norm_grad_8x64x56x56",
       "group_norm_grad",
       groups,
       {image, image, channel, f32({8, 8}), positive({8, 8})}},
      {"batch_norm_8x64x56x56", "batch_norm", {}, {image, channel, channel, channel, spread}},
      {"batch_norm_grad_8x64x56x56",
       "batch_norm_grad",
       {},
       {image, image, channel, channel, spread}},
      // Vectors: what stands behind a dense layer.
      {"batch_norm_256x512", "batch_norm", {}, {vectors, feature, feature, feature, features}},
      {"batch_norm_grad_256x512",
       "batch_norm_grad",
       {},
       {vectors, vectors, feature, feature, features}},
      {"batch_norm_inference_8x64x56x56",
       "batch_norm_inference",
       {},
       {image, channel, channel, channel, spread}},
  };
}

}  // namespace ballast::bench
