// The activations that a matmul's epilogue can end with; shared by generator and planner.
#pragma once

namespace ballast::kernels {

// Names of pointwise ops; the position is the number that the kernels take. 0 leaves the sum alone.
constexpr const char* kActivations[] = {"none", "relu",      "tanh", "sigmoid",
                                        "gelu", "gelu_tanh", "silu"};
constexpr int kActivationCount = sizeof(kActivations) / sizeof(kActivations[0]);

// What a kernel does with the operand that has C's shape.
enum class MatmulExtra { kNone, kResidual, kReluGrad };

}  // namespace ballast::kernels
