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
// Real numbers, whole ones below 100 or truths, as the type is.
HostArray typed(const Shape& shape, DType dtype);
HostArray special();  // NaN, infinities, zeros of both signs, large and small numbers

// What follows is that of this seed.
void seed_samples(uint64_t seed);

extern const std::vector<Shape> kShapes;

}  // namespace ballast::tests
