#include "bench/rows.h"

namespace ballast::bench {
namespace {

Attrs perm(std::vector<int64_t> axes) { return {{"perm", std::move(axes)}}; }

}  // namespace

std::vector<Case> shape_rows() {
  return {
      {"transpose_1024", "transpose", perm({1, 0}), {f32({1024, 1024})}},
      {"transpose_4096x1024", "transpose", perm({1, 0}), {f32({4096, 1024})}},
      {"transpose_1009", "transpose", perm({1, 0}), {f32({1009, 1009})}},
      {"transpose_heads_2x196x8x32", "transpose", perm({0, 2, 1, 3}), {f32({2, 196, 8, 32})}},
      {"transpose_nchw_nhwc", "transpose", perm({0, 2, 3, 1}), {f32({8, 64, 56, 56})}},
      {"broadcast_row_1024",
       "broadcast_to",
       {{"shape", std::vector<int64_t>{1024, 1024}}},
       {f32({1024})}},
  };
}

}  // namespace ballast::bench
