#include "bench/rows.h"

namespace ballast::bench {
namespace {

using Ints = std::vector<int64_t>;

Attrs slice(Ints begin, Ints size, Ints strides) {
  return {{"begin", std::move(begin)}, {"size", std::move(size)}, {"strides", std::move(strides)}};
}

Attrs perm(std::vector<int64_t> axes) { return {{"perm", std::move(axes)}}; }

Operand bytes(Ints shape) { return {"u8", std::move(shape), Fill::kIndex, 256}; }

}  // namespace

std::vector<Case> shape_rows() {
  return {
      {"transpose_1024", "transpose", perm({1, 0}), {f32({1024, 1024})}},
      {"transpose_4096x1024", "transpose", perm({1, 0}), {f32({4096, 1024})}},
      {"transpose_1009", "transpose", perm({1, 0}), {f32({1009, 1009})}},
      {"transpose_heads_2x196x8x32", "transpose", perm({0, 2, 1, 3}), {f32({2, 196, 8, 32})}},
      {"transpose_qkv_8x197x3x8x32", "transpose", perm({2, 0, 3, 1, 4}), {f32({8, 197, 3, 8, 32})}},
      {"transpose_qkv_grad_3x8x8x197x32",
       "transpose",
       perm({1, 3, 0, 2, 4}),
       {f32({3, 8, 8, 197, 32})}},
      {"transpose_nchw_nhwc", "transpose", perm({0, 2, 3, 1}), {f32({8, 64, 56, 56})}},
      // Images: a pixel's channels are few.
      {"transpose_nhwc_nchw_3", "transpose", perm({0, 3, 1, 2}), {f32({8, 224, 224, 3})}},
      {"transpose_nchw_nhwc_3", "transpose", perm({0, 2, 3, 1}), {f32({8, 3, 224, 224})}},
      {"transpose_nhwc_nchw_3_bytes", "transpose", perm({0, 3, 1, 2}), {bytes({8, 224, 224, 3})}},
      {"transpose_nchw_nhwc_3_bytes", "transpose", perm({0, 2, 3, 1}), {bytes({8, 3, 224, 224})}},
      {"transpose_nhwc_nchw_2", "transpose", perm({0, 3, 1, 2}), {f32({8, 223, 223, 2})}},
      {"transpose_nchw_nhwc_4", "transpose", perm({0, 2, 3, 1}), {f32({8, 4, 223, 223})}},
      {"broadcast_row_1024", "broadcast_to", {{"shape", Ints{1024, 1024}}}, {f32({1024})}},
      {"slice_rows", "slice", slice({256, 0}, {512, 1024}, {1, 1}), {f32({1024, 1024})}},
      {"slice_columns", "slice", slice({0, 256}, {1024, 512}, {1, 1}), {f32({1024, 1024})}},
      {"slice_every_other", "slice", slice({0, 1}, {1024, 512}, {1, 2}), {f32({1024, 1024})}},
      {"slice_every_other_of_14",
       "slice",
       slice({0, 0, 0, 0}, {8, 512, 7, 7}, {1, 1, 2, 2}),
       {f32({8, 512, 14, 14})}},
      {"pad_image_14",
       "pad",
       {{"paddings", Ints{0, 0, 0, 0, 1, 1, 1, 1}}},
       {f32({8, 256, 14, 14})}},
      {"pad_image", "pad", {{"paddings", Ints{0, 0, 0, 0, 1, 1, 1, 1}}}, {f32({8, 64, 56, 56})}},
      {"concat_tokens", "concat", {{"axis", int64_t{1}}}, {f32({8, 1, 256}), f32({8, 196, 256})}},
      {"concat_columns", "concat", {{"axis", int64_t{1}}}, {f32({1024, 512}), f32({1024, 500})}},
      {"split_qkv",
       "split",
       {{"axis", int64_t{1}}, {"sizes", Ints{256, 256, 256}}},
       {f32({392, 768})}},
      {"flip_columns", "flip", {{"axes", Ints{1}}}, {f32({1024, 1024})}},
      {"gather_rows", "gather", {{"axis", int64_t{0}}}, {f32({10000, 256}), index({4096}, 10000)}},
      {"gather_narrow_rows",
       "gather",
       {{"axis", int64_t{0}}},
       {f32({10000, 8}), index({100000}, 10000)}},
      {"gather_columns", "gather", {{"axis", int64_t{1}}}, {f32({1024, 1024}), index({512}, 1024)}},
      {"embedding_grad",
       "gather_grad",
       {{"shape", Ints{10000, 256}}, {"axis", int64_t{0}}},
       {index({4096}, 10000), f32({4096, 256})}},
      {"one_hot_4096x1000",
       "one_hot",
       {{"depth", int64_t{1000}}, {"axis", int64_t{1}}},
       {index({4096}, 1000)}},
  };
}

}  // namespace ballast::bench
