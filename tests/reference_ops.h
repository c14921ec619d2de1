// Every primitive in double precision, by name; and what the references in tests/ops are written
// with.
#pragma once

#include "tests/reference.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace ballast::tests {

// Fills `outputs`, which have their types and sizes already.
using ReferenceOp = std::function<void(const std::vector<HostArray>& inputs, const Attrs& attrs,
                                       std::vector<HostArray>& outputs)>;

const std::map<std::string, ReferenceOp>& reference_ops();

// The types of an op's results by docs/ops.md, from those of its operands.
using Types = std::vector<TensorType>;
using TypeRule = std::function<Types(const Types& inputs, const Attrs& attrs)>;

// Result i is like operand inputs[i].
TypeRule like(std::vector<size_t> inputs);
// One result, of an operand's element type, and the shape that attribute `name` gives.
TypeRule of_shape(const std::string& name, size_t input = 0);
// numpy's broadcasting.
Shape broadcast_shape(const Types& inputs);
// What an attribute of this name holds, if there is one.
template <class T>
T attr_or(const Attrs& attrs, const std::string& name, T otherwise) {
  for (const auto& [key, value] : attrs) {
    if (key == name) return std::get<T>(value);
  }
  return otherwise;
}
inline DType dtype_attr(const Attrs& attrs, DType otherwise = DType::kF32) {
  return static_cast<DType>(attr_or<int64_t>(attrs, "dtype", static_cast<int64_t>(otherwise)));
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Index = std::vector<int64_t>;
using Elements = std::vector<double>;

Index index_of(size_t flat, const Shape& shape);
size_t flat_of(const Index& index, const Shape& shape);
// The next index in row-major order: where there are many, an Index of its own for each takes the
// sanitizers longer than all that is done with it.
void advance(Index& index, const Shape& shape);
// The element that broadcasting puts at `index` of the larger shape.
double broadcast_value(const HostArray& array, const Index& index);

// A reference that computes each output element from the broadcast elements of all inputs.
ReferenceOp pointwise(std::function<double(const Elements&)> function);

inline double truth(bool is_true) { return is_true ? 1 : 0; }
// NaN wins.
inline double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
inline double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

}  // namespace ballast::tests
