// Elements picked by number. `indices` are i32 or i64; -1 is the last, as in numpy; what lies
// outside
// [-extent, extent) reads as 0 and writes nothing, so nothing outside of a tensor is ever touched.
#pragma once

#include "kernels/plan/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// Rows: output[..., i..., ...] = table[..., indices[i...], ...] with all of the indices' axes in
// place of `axis`. Elements: indices have the table's rank, and output[..., i, ...] =
// table[..., indices[..., i, ...], ...] along `axis` (numpy.take_along_axis). inputs table,
// indices.
enum class Picks { kRows, kElements };
Plan plan_gather(DeviceClass device_class, Picks picks, const TensorType& table,
                 const TensorType& indices, size_t axis, const TensorType& output);

// The other way: output = table, or zeros, with updates added at the places that plan_gather reads.
// Updates of one place are added in the order of the indices. f32 and i32. O(elements of table and
// updates); every part that works by itself also reads all the indices, and there are at most as
// many parts as elements in a row. inputs [table,] indices, updates; output may be the table.
Plan plan_scatter_add(DeviceClass device_class, Picks picks, bool has_table,
                      const TensorType& indices, const TensorType& updates, size_t axis,
                      const TensorType& output);

// A new axis of the output, at `axis`: `on` at the index, `off` elsewhere (everywhere where the
// index is negative or too large). input indices.
Plan plan_one_hot(DeviceClass device_class, const TensorType& indices, size_t axis, double on,
                  double off, const TensorType& output);

}  // namespace ballast::kernels
