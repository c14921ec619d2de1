// What the generator (ahead of time) and the fuser (at run time) share: an op's expression and the
// schedule of a loop nest over elements. Needs Halide; stateless.
//
// Every pointwise kernel is a nest [lane, x, y, z...], innermost first. `lane` has extent 16 where
// the innermost dimension splits into whole vectors, else 1; see loops.h.
#pragma once

#include "kernels/pointwise/pointwise_ops.h"

#include <Halide.h>

#include <string>
#include <vector>

namespace ballast::kernels {

Halide::Type storage_type(DType dtype);  // bool is stored as one byte, bf16 and f16 as two
// Between memory and expressions a bool is Halide's Bool(), and bf16 and f16 are f32. Loading is
// exact, storing rounds to nearest even: by integer arithmetic, so that no device needs an
// extension. Denormals, infinities and NaN (as a quiet one) survive both ways.
Halide::Expr loaded(const Halide::Expr& stored, DType dtype);
Halide::Expr stored(const Halide::Expr& value, DType dtype);
// What storing and loading again gives.
Halide::Expr rounded(const Halide::Expr& value, DType dtype);

// The row `op` of pointwise_ops.inc applied to `args` (as loaded), in strict floating point; the
// result is not yet rounded to `type`.
Halide::Expr apply_pointwise(const std::string& op, DType type,
                             const std::vector<Halide::Expr>& args);

struct Nest {
  Halide::Var lane{"lane"}, x{"x"}, y{"y"};
  std::vector<Halide::Var> outer;  // z and further
  std::vector<Halide::Var> vars() const;
};
Nest make_nest(int dimensions);

// CPU: one work-item per group, which does a chunk of chunk_x by chunk_y. GPU: a group of chunk_x
// by chunk_y work-items, each doing one x. Lanes stay a loop; the caller vectorizes it where it
// may.
void schedule_nest(Halide::Func func, const Nest& nest, const Halide::Expr& chunk_x,
                   const Halide::Expr& chunk_y, bool is_gpu);

// Several outputs of one nest: `values` computes all of them before `out` stores any, so that every
// output may be the buffer of any input. Halide alone would load an input again for the next
// output.
struct Outputs {
  Halide::Func values, out;
};
Outputs make_outputs(const Nest& nest, const std::vector<Halide::Expr>& results);

}  // namespace ballast::kernels
