// What the kernels that go by rows can take.
#pragma once

namespace ballast::kernels {

constexpr int kPoolLines = 4096;   // elements of all padded rows of a step
constexpr int kPoolStep = 8;       // least elements of a row
constexpr int kPoolRows = 4;       // of windows of 3 x 3, done together
constexpr int kPoolPlaces = 1024;  // pixels of a plane whose lanes are planes
constexpr int kPoolCells = 65536;  // what windows of a plane give, and between, for a gradient

}  // namespace ballast::kernels
