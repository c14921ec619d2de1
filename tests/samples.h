// Sample inputs for the op table: seeded, the same in every run.
#pragma once

#include "tests/reference.h"

#include <vector>

namespace ballast::tests {

// Uniform in [low, high), rounded to f32, so that device and reference begin with the same values.
HostArray real(const Shape& shape, double low, double high);
HostArray whole(const Shape& shape, int64_t below, DType dtype = DType::kI32);
HostArray boolean(const Shape& shape);
HostArray scalar(double value);
HostArray special();  // NaN, infinities, zeros of both signs, large and small numbers

extern const std::vector<Shape> kShapes;

}  // namespace ballast::tests
