// An evaluator of Programs on the host in double precision, written with plain loops and
// independent of the kernels: what device results are measured against. States are read from their
// parameters; effects are ignored.
#pragma once

#include "frontend/program/program.h"

#include <vector>

namespace ballast::tests {

struct HostArray {
  TensorType type;
  std::vector<double> values;  // bool as 0 or 1
};

HostArray to_array(const Tensor& tensor);
Tensor to_tensor(const HostArray& array);  // rounds to the element type

std::vector<HostArray> reference_eval(const Program& program, const std::vector<HostArray>& inputs);

// One primitive, whose results have these types.
std::vector<HostArray> reference_op(const std::string& name, const std::vector<HostArray>& inputs,
                                    const Attrs& attrs,
                                    const std::vector<TensorType>& output_types);

// The types of a primitive's results by docs/ops.md (the op table's rules), not asked of the
// plugin.
std::vector<TensorType> expected_types(const std::string& name,
                                       const std::vector<HostArray>& inputs, const Attrs& attrs);

// What an element of this type holds of `value`.
double rounded(double value, DType dtype);

enum class Zeros { kAlike, kSigned };

// Why the two differ: a value beyond atol + rtol |expected|, or another type; empty if they do not.
// NaN equals NaN; what overflows the float type is expected as infinity. Signed zeros: where both
// are zero in the float type, so are their signs.
std::string difference(const HostArray& actual, const HostArray& expected, double rtol, double atol,
                       Zeros zeros = Zeros::kAlike);

}  // namespace ballast::tests
