// The rows of vmap: how an op runs on many examples at once. A mapped operand carries the examples
// along a new axis in front; an operand that is the same for all has its own shape. Extents and
// axes "of its own" are those without the new axis.
#pragma once

#include "frontend/program/primitive.h"

namespace ballast::vmap_rules {

using Tensors = std::vector<Tensor>;

// ---- what rules are written with

// Operand i with the new axis: repeated along it where it has none.
Tensor mapped(const VmapArgs& args, size_t i);
Tensor repeated(const Tensor& x, int64_t size);
// Operand i as broadcasting against an own shape of this rank needs it.
Tensor aligned(const VmapArgs& args, size_t i, int64_t rank);
Shape own_shape(const VmapArgs& args, size_t i);
// The examples as more of axis 0: [B, n, ...] <-> [B n, ...].
Tensor merge(const Tensor& x);
Tensor unmerge(const Tensor& x, int64_t size);
// The examples as more of axis 1: [B, n, m, ...] <-> [n, B m, ...].
Tensor merge_channels(const Tensor& x);
Tensor unmerge_channels(const Tensor& x, int64_t size);
Tensor move_axis(const Tensor& x, int64_t from, int64_t to);

// Attributes; the first is null where it is not given.
const AttrValue* find_attr(const Attrs& attrs, const std::string& name);
int64_t int_attr_or(const Attrs& attrs, const std::string& name, int64_t otherwise);
Attrs with_attr(Attrs attrs, const std::string& name, AttrValue value);

// ---- rows

// Example after example: what a primitive without a row gets.
Tensors unroll(const VmapArgs& args);

Tensors pointwise(const VmapArgs& args);    // whatever broadcasts
Tensors along(const VmapArgs& args);        // attribute axis, from the front or [-1]
Tensors along_first(const VmapArgs& args);  // the same where axis is [0]
Tensors samples(const VmapArgs& args);      // every operand's axis 0 counts samples
Tensors channels(const VmapArgs& args);     // statistics by channel: axis 1, or 0 of a vector

Tensors broadcast_to(const VmapArgs& args);
Tensors flip(const VmapArgs& args);
Tensors pad(const VmapArgs& args);
Tensors reshape(const VmapArgs& args);
Tensors slice(const VmapArgs& args);
Tensors slice_grad(const VmapArgs& args);
Tensors transpose(const VmapArgs& args);

Tensors reduce(const VmapArgs& args);

Tensors gather(const VmapArgs& args);
Tensors gather_grad(const VmapArgs& args);
Tensors gather_elements_grad(const VmapArgs& args);
Tensors index_add(const VmapArgs& args);

Tensors matmul(const VmapArgs& args);

Tensors conv2d(const VmapArgs& args);
Tensors conv2d_input_grad(const VmapArgs& args);
Tensors conv2d_weight_grad(const VmapArgs& args);

Tensors layer_norm(const VmapArgs& args);
Tensors layer_norm_grad(const VmapArgs& args);
Tensors rms_norm(const VmapArgs& args);
Tensors rms_norm_grad(const VmapArgs& args);

Tensors attention(const VmapArgs& args);

Tensors dropout(const VmapArgs& args);
Tensors random_advance(const VmapArgs& args);

Tensors optimizer_step(const VmapArgs& args);  // by element; unrolled where a scalar is mapped
Tensors global_norm(const VmapArgs& args);
Tensors all_finite(const VmapArgs& args);

}  // namespace ballast::vmap_rules
