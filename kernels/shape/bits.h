// Values as the bits that fills write.
#pragma once

#include "kernels/types.h"

#include <cstdint>

namespace ballast::kernels {

// Of up to 8 bytes; of fewer the lowest count.
struct Bits {
  int32_t low = 0, high = 0;
};

// Rounded to nearest, ties to even, for types that are narrower than double; integers and bools as
// C++ converts them.
Bits bits_of(double value, DType dtype);

}  // namespace ballast::kernels
