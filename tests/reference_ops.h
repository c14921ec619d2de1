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

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Index = std::vector<int64_t>;
using Elements = std::vector<double>;

Index index_of(size_t flat, const Shape& shape);
size_t flat_of(const Index& index, const Shape& shape);
// The element that broadcasting puts at `index` of the larger shape.
double broadcast_value(const HostArray& array, const Index& index);

// A reference that computes each output element from the broadcast elements of all inputs.
ReferenceOp pointwise(std::function<double(const Elements&)> function);

inline double truth(bool is_true) { return is_true ? 1 : 0; }
// NaN wins.
inline double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
inline double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

}  // namespace ballast::tests
