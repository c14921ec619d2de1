// What an optimizer's learning rate can be, and groups of parameters with rates and decays of their
// own:
//   nn::Adam optimizer(std::vector<nn::ParameterGroup>{{net.head.parameters(), 1e-3},
//                                                      {rest, nn::CosineDecayLR(0, 1e-4f, 900)}},
//                      1e-3);
#pragma once

#include "frontend/nn/schedule.h"
#include "frontend/tensor/parameter.h"

#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

namespace ballast::nn {

// A number, which lies on the device and can be set at any time, or a function of the step.
struct LearningRate {
  LearningRate(double number) : constant(static_cast<float>(number)) {}
  LearningRate(LearningRateSchedule function) : schedule(std::move(function)) {}

  float constant = 0;
  LearningRateSchedule schedule;  // empty: the constant
};

// What is not given is the optimizer's.
struct ParameterGroup {
  std::vector<Parameter> parameters;
  std::optional<LearningRate> learning_rate = std::nullopt;
  std::optional<float> weight_decay = std::nullopt;
};

// An optimizer's first argument: parameters or groups of them.
struct ParameterGroups {
  ParameterGroups(std::vector<Parameter> parameters, Where line = Where::here())
      : groups{{std::move(parameters)}}, where(line) {}
  ParameterGroups(std::initializer_list<Parameter> parameters, Where line = Where::here())
      : ParameterGroups(std::vector<Parameter>(parameters), line) {}
  ParameterGroups(std::vector<ParameterGroup> list, Where line = Where::here())
      : groups(std::move(list)), is_grouped(true), where(line) {}

  std::vector<ParameterGroup> groups;
  bool is_grouped = false;
  Where where;  // the line of the optimizer's constructor
};

}  // namespace ballast::nn
