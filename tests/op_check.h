// Whether the device computes what the reference does.
#pragma once

#include "tests/op_table.h"

#include <optional>

namespace ballast::tests {

// Why it does not, for each output in which it does not; empty if it does. Narrow results may be
// off by one rounding more.
std::string disagreement(const OpCase& row);

// The row with its f32 operands (with `stays_wide`, but for those that may stay) rounded to
// `dtype`; none where none may stay.
std::optional<OpCase> narrowed(const OpCase& row, DType dtype, bool stays_wide);

bool is_pointwise(const OpCase& row);

}  // namespace ballast::tests
