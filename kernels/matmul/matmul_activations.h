// The activations that a matmul's epilogue can end with; shared by generator and planner.
#pragma once

#include <string>

namespace ballast::kernels {

// Names of pointwise ops; the position is the number that the kernels take. 0 leaves the sum alone.
constexpr const char* kActivations[] = {"none", "relu",      "tanh", "sigmoid",
                                        "gelu", "gelu_tanh", "silu"};
constexpr int kActivationCount = sizeof(kActivations) / sizeof(kActivations[0]);

// The number of an activation; relu_grad's is none's; -1 where there is none of this name.
inline int activation_number(const std::string& name) {
  for (int i = 0; i < kActivationCount; ++i) {
    if (name == kActivations[i]) return i;
  }
  return name == "relu_grad" ? 0 : -1;
}

// Which of a tile's sides the bias lies along.
enum class MatmulBias { kNone, kLanes, kRows };

// What a kernel does with the operand that has C's shape, or is a scale along a tile's rows.
enum class MatmulExtra { kNone, kResidual, kReluGrad, kScale };

}  // namespace ballast::kernels
