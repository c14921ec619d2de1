// What plans and kernels of the normalisations agree on.
#pragma once

namespace ballast::kernels {

constexpr int kNormLoops = 5;       // of what touches every element on its own
constexpr int kNormGradBlock = 64;  // elements of a row that its gradient takes at a time, at least

}  // namespace ballast::kernels
