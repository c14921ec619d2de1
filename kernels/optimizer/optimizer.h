// Optimizer steps over lists of tensors, in few launches: tensors share launches
// (merge_launches.h), each is read and written once. Plus norms and checks over such lists.
//
// `sizes` are the tensors' numbers of elements; all are f32.
#pragma once

#include "kernels/plan/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// One step of each tensor. Inputs: of every tensor in turn param, states, gradient; then the
// scalars (f32[]). Outputs: of every tensor in turn param, states; each may be the input's buffer.
// p, g, m, v: param, gradient, states; primes: new values.
//
//   scale               scalars factor               p' = p factor (there is no gradient)
//   sgd                 lr                           p' = p - lr g
//   momentum            lr, momentum                 m' = momentum m + g; p' = p - lr m'
//   momentum_nesterov   lr, momentum                 as above, but p' = p - lr (g + momentum m')
//   adam                beta1_power, beta2_power, lr, beta1, beta2, epsilon
//                       m' = beta1 m + (1 - beta1) g; v' = beta2 v + (1 - beta2) g^2
//                       p' = p - r m' / (sqrt(v') + epsilon),
//                       r = lr sqrt(1 - beta2_power) / (1 - beta1_power)
//   adam_nesterov       as adam, with beta1 m' + (1 - beta1) g in place of m'
//   adam_weight_decay   lr, beta1, beta2, epsilon, weight_decay
//                       p' = p (1 - lr weight_decay) - lr m' / (sqrt(v') + epsilon)
//   adamw               beta1_power, beta2_power, lr, beta1, beta2, epsilon, weight_decay
//                       p' = p (1 - lr weight_decay)
//                            - lr / (1 - beta1_power) m' / (sqrt(v' / (1 - beta2_power)) + epsilon)
//   rmsprop             lr, rho, momentum, epsilon; m: mean square, v: moment
//                       m' = rho m + (1 - rho) g^2; v' = momentum v + lr g / sqrt(m' + epsilon);
//                       p' = p - v'
//   adagrad             lr                           m' = m + g^2; p' = p - lr g / sqrt(m')
Plan plan_step(DeviceClass device_class, const std::string& rule,
               const std::vector<int64_t>& sizes);

// inputs: the tensors; output f32[]: sqrt of the sum of all squares, added up in an order that
// depends on sizes only: chunks of 16384 elements, then the chunks.
Plan plan_global_norm(DeviceClass device_class, const std::vector<int64_t>& sizes);
// inputs: the tensors; output bool[]: no element is infinite or NaN.
Plan plan_all_finite(DeviceClass device_class, const std::vector<int64_t>& sizes);

}  // namespace ballast::kernels
