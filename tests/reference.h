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

// One primitive; `output_types` as inferred by the plugin.
std::vector<HostArray> reference_op(const std::string& name, const std::vector<HostArray>& inputs,
                                    const Attrs& attrs,
                                    const std::vector<TensorType>& output_types);

// What an element of this type holds of `value`.
double rounded(double value, DType dtype);

// Why the two differ: a value beyond atol + rtol |expected|, or another type; empty if they do not.
// NaN equals NaN. `expected` is rounded to its float type first, so that overflow compares as
// infinity.
std::string difference(const HostArray& actual, const HostArray& expected, double rtol,
                       double atol);

}  // namespace ballast::tests
