// The optimizer rules by name: how many operands each has. What they compute is said in
// optimizer.h.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace ballast::kernels {

struct StepRule {
  const char* name;
  uint32_t states;  // of the parameter's shape
  bool has_gradient;
  uint32_t scalars;
};

inline constexpr StepRule kStepRules[] = {{"scale", 0, false, 1},
                                          {"sgd", 0, true, 1},
                                          {"momentum", 1, true, 2},
                                          {"momentum_nesterov", 1, true, 2},
                                          {"adam", 2, true, 6},
                                          {"adam_nesterov", 2, true, 6},
                                          {"adam_weight_decay", 2, true, 5},
                                          {"adamw", 2, true, 7},
                                          {"rmsprop", 2, true, 4},
                                          {"adagrad", 1, true, 1}};

inline const StepRule& step_rule(const std::string& name) {
  for (const StepRule& rule : kStepRules) {
    if (rule.name == name) return rule;
  }
  throw std::runtime_error("no optimizer rule " + name);
}

}  // namespace ballast::kernels
