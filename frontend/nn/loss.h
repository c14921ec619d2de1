// Losses: functions of (prediction, target) with a reduction.
#pragma once

#include "frontend/operand.h"

#include <string>

namespace ballast::nn {

enum class Reduction { kMean, kSum, kNone };
Reduction reduction_named(const std::string& name);  // "mean", "sum", "none"

// (logits - labels)^2
class MSELoss {
 public:
  explicit MSELoss(const std::string& reduction = "mean")
      : reduction_(reduction_named(reduction)) {}
  Tensor operator()(const Operand& logits, const Operand& labels) const;

 private:
  Reduction reduction_;
};

// -log softmax(logits)[label]; logits f32[B, C], labels i32[B].
class CrossEntropyLoss {
 public:
  explicit CrossEntropyLoss(const std::string& reduction = "mean")
      : reduction_(reduction_named(reduction)) {}
  Tensor operator()(const Operand& logits, const Operand& labels) const;

 private:
  Reduction reduction_;
};

}  // namespace ballast::nn
