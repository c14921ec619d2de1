// The loops around what a transposing copy turns. Needs Halide; for generators.
#pragma once

#include <Halide.h>

#include <string>
#include <vector>

namespace ballast::kernels {

constexpr int kTransposeOuter = 4;

// What the kernels are told of where the two lie, and of the outer loops (record_transpose).
inline std::vector<std::string> transpose_places() {
  return {"extent_p",      "extent_q",      "source_stride",
          "target_stride", "source_offset", "target_offset"};
}
inline std::vector<std::string> transpose_outer_loops() {
  std::vector<std::string> names;
  for (int d = 0; d < kTransposeOuter; ++d) {
    for (const char* name : {"extent", "source", "target"}) {
      names.push_back("outer" + std::to_string(d) + "_" + name);
    }
  }
  return names;
}

// Where iteration `number` of all outer loops begins in the source and in the result. `loops`: the
// extent, and the distance in the source and in the result, of each loop.
inline Halide::Tuple outer_begin(Halide::Expr number, Halide::Expr source, Halide::Expr target,
                                 const std::vector<Halide::Expr>& loops) {
  for (int d = 0; d < kTransposeOuter; ++d) {
    // Unsigned, as what is never negative takes fewer instructions to divide.
    const Halide::Expr extent = Halide::cast<uint32_t>(loops[3 * d]),
                       rest = Halide::cast<uint32_t>(number),
                       next = Halide::cast<int>(rest / extent);
    const Halide::Expr index = d == kTransposeOuter - 1 ? number : number - next * loops[3 * d];
    source += index * loops[3 * d + 1];
    target += index * loops[3 * d + 2];
    number = next;
  }
  return {source, target};
}

}  // namespace ballast::kernels
