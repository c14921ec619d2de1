// What the kernels that go by rows can take.
#pragma once

namespace ballast::kernels {

constexpr int kPoolLine = 1536;  // elements of a padded row
constexpr int kPoolStep = 8;     // least elements of a row

}  // namespace ballast::kernels
