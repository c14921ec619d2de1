#include "frontend/nn/schedule.h"

#include "frontend/ops/ops.h"

#include <algorithm>
#include <cmath>

namespace ballast::nn {

namespace {

Tensor as_float(const Tensor& step) { return ops::cast(step, DType::kF32); }

void check_steps(const char* schedule, int64_t steps) {
  if (steps < 1) {
    fail(BALLAST_INVALID_ARGUMENT, "[{}] {} steps, expected at least 1", schedule, steps);
  }
}

// step / steps, or how often `steps` is over.
Tensor periods(const Tensor& step, int64_t steps, bool is_stair) {
  const Tensor ratio = as_float(step) / static_cast<double>(steps);
  return is_stair ? ops::floor(ratio) : ratio;
}

void check_milestones(const char* schedule, const std::vector<int64_t>& milestones) {
  bool is_ascending = true;
  for (size_t i = 0; i < milestones.size(); ++i) {
    is_ascending = is_ascending && milestones[i] > (i == 0 ? 0 : milestones[i - 1]);
  }
  if (!is_ascending) {
    fail(BALLAST_INVALID_ARGUMENT, "[{}] milestones are {}, expected them positive and ascending",
         schedule, to_string(milestones));
  }
}

}  // namespace

LearningRateSchedule ConstantLR(float learning_rate) {
  return [=](const Tensor&) { return Tensor::scalar(learning_rate); };
}

LearningRateSchedule CosineDecayLR(float min_lr, float max_lr, int64_t decay_steps) {
  check_steps("CosineDecayLR", decay_steps);
  return [=](const Tensor& step) {
    constexpr double kPi = 3.141592653589793;
    const auto last = static_cast<double>(decay_steps);
    const Tensor angle = ops::minimum(as_float(step), last) * (kPi / last);
    return (ops::cos(angle) + 1.0) * ((max_lr - min_lr) / 2) + min_lr;
  };
}

LearningRateSchedule ExponentialDecayLR(float learning_rate, float decay_rate, int64_t decay_steps,
                                        bool is_stair) {
  check_steps("ExponentialDecayLR", decay_steps);
  return [=](const Tensor& step) {
    return ops::pow(Tensor::scalar(decay_rate), periods(step, decay_steps, is_stair)) *
           learning_rate;
  };
}

LearningRateSchedule InverseDecayLR(float learning_rate, float decay_rate, int64_t decay_steps,
                                    bool is_stair) {
  check_steps("InverseDecayLR", decay_steps);
  return [=](const Tensor& step) {
    return learning_rate / (periods(step, decay_steps, is_stair) * decay_rate + 1.0);
  };
}

LearningRateSchedule PolynomialDecayLR(float learning_rate, float end_learning_rate,
                                       int64_t decay_steps, float power, bool update_decay_steps) {
  check_steps("PolynomialDecayLR", decay_steps);
  return [=](const Tensor& step) {
    const auto steps = static_cast<double>(decay_steps);
    const Tensor now = as_float(step);
    Tensor fraction = ops::minimum(now, steps) / steps;
    if (update_decay_steps) {
      // The first step counts as within the first period.
      fraction = now / (ops::maximum(ops::ceil(now / steps), 1.0) * steps);
    }
    return ops::pow(1.0 - fraction, power) * (learning_rate - end_learning_rate) +
           end_learning_rate;
  };
}

LearningRateSchedule WarmUpLR(float learning_rate, int64_t warmup_steps) {
  check_steps("WarmUpLR", warmup_steps);
  return [=](const Tensor& step) {
    const auto steps = static_cast<double>(warmup_steps);
    return ops::minimum(as_float(step), steps) / steps * learning_rate;
  };
}

LearningRateSchedule PiecewiseConstantLR(std::vector<int64_t> milestones,
                                         std::vector<float> learning_rates) {
  check_milestones("PiecewiseConstantLR", milestones);
  if (learning_rates.empty() || learning_rates.size() != milestones.size()) {
    fail(BALLAST_INVALID_ARGUMENT, "[PiecewiseConstantLR] {} milestones for {} learning rates",
         milestones.size(), learning_rates.size());
  }
  return [=](const Tensor& step) {
    Tensor rate = Tensor::scalar(learning_rates.back());
    for (size_t i = learning_rates.size() - 1; i-- > 0;) {
      rate = ops::select(ops::less(step, milestones[i]), learning_rates[i], rate);
    }
    return rate;
  };
}

LearningRateSchedule SequentialLR(std::vector<LearningRateSchedule> schedules,
                                  std::vector<int64_t> milestones) {
  check_milestones("SequentialLR", milestones);
  if (schedules.size() != milestones.size() + 1) {
    fail(BALLAST_INVALID_ARGUMENT, "[SequentialLR] {} milestones between {} schedules",
         milestones.size(), schedules.size());
  }
  return [=](const Tensor& step) {
    Tensor rate = schedules.back()(milestones.empty() ? step : step - milestones.back());
    for (size_t i = milestones.size(); i-- > 0;) {
      const Tensor own = schedules[i](i == 0 ? step : step - milestones[i - 1]);
      rate = ops::select(ops::less(step, milestones[i]), own, rate);
    }
    return rate;
  };
}

}  // namespace ballast::nn
