// Learning rates that change with the step: pure functions of the step's number on the device (an
// i32 scalar, 0 at the first step), so that a sunk run follows them without the host. Formulas and
// names are those of mindspore.nn's LearningRateSchedule classes (2.10). Any function of this form
// will do:
//   nn::LearningRateSchedule warm = nn::WarmUpLR(0.1f, 100), rest = nn::CosineDecayLR(0, 0.1f,
//   900); nn::Adam optimizer(net.trainable_params(), nn::SequentialLR({warm, rest}, {100}));
// Steps count in f32 within: exact up to 2^24.
#pragma once

#include "frontend/tensor/tensor.h"

#include <functional>
#include <vector>

namespace ballast::nn {

using LearningRateSchedule = std::function<Tensor(const Tensor& step)>;

LearningRateSchedule ConstantLR(float learning_rate);
// min + (max - min) (1 + cos(pi min(step, decay_steps) / decay_steps)) / 2
LearningRateSchedule CosineDecayLR(float min_lr, float max_lr, int64_t decay_steps);
// lr decay_rate^p, p = step / decay_steps, rounded down with is_stair
LearningRateSchedule ExponentialDecayLR(float learning_rate, float decay_rate, int64_t decay_steps,
                                        bool is_stair = false);
// lr / (1 + decay_rate p)
LearningRateSchedule InverseDecayLR(float learning_rate, float decay_rate, int64_t decay_steps,
                                    bool is_stair = false);
// (lr - end) (1 - min(step, d) / d)^power + end, d = decay_steps; with update_decay_steps d is
// decay_steps times as often as step needs to fit.
LearningRateSchedule PolynomialDecayLR(float learning_rate, float end_learning_rate,
                                       int64_t decay_steps, float power,
                                       bool update_decay_steps = false);
// lr min(step, warmup_steps) / warmup_steps
LearningRateSchedule WarmUpLR(float learning_rate, int64_t warmup_steps);
// learning_rates[i] for steps below milestones[i], the last one from there on (MindSpore's
// piecewise_constant_lr).
LearningRateSchedule PiecewiseConstantLR(std::vector<int64_t> milestones,
                                         std::vector<float> learning_rates);
// schedules[i] until step milestones[i], each counting from its own beginning.
LearningRateSchedule SequentialLR(std::vector<LearningRateSchedule> schedules,
                                  std::vector<int64_t> milestones);

}  // namespace ballast::nn
