// Losses as cells: loss_fn(prediction, target). Defaults are those of mindspore.nn (2.10);
// reduction "mean", "sum" or "none". More of them: ops/loss.h.
#pragma once

#include "frontend/nn/cell.h"
#include "frontend/ops/loss.h"

#include <optional>
#include <string>

namespace ballast::nn {

enum class Reduction { kMean, kSum, kNone };
Reduction reduction_named(const std::string& name);

class Loss : public Cell {
 public:
  explicit Loss(const std::string& reduction, Where where = Where::here());

 protected:
  const std::string& reduction() const { return reduction_; }

 private:
  std::string reduction_;
};

// (logits - labels)^2
class MSELoss : public Loss {
 public:
  explicit MSELoss(const std::string& reduction = "mean", Where where = Where::here())
      : Loss(reduction, where) {}
  using Cell::construct;
  Tensor construct(const Tensor& logits, const Tensor& labels) override;
};

// |logits - labels|
class L1Loss : public Loss {
 public:
  explicit L1Loss(const std::string& reduction = "mean", Where where = Where::here())
      : Loss(reduction, where) {}
  using Cell::construct;
  Tensor construct(const Tensor& logits, const Tensor& labels) override;
};

// -(t log x + (1 - t) log(1 - x)); x in [0, 1]. Weights: ops/loss.h.
class BCELoss : public Loss {
 public:
  explicit BCELoss(const std::string& reduction = "mean", Where where = Where::here())
      : BCELoss(ops::BinaryLossOptions{reduction}, where) {}
  explicit BCELoss(const ops::BinaryLossOptions& options, Where where = Where::here())
      : Loss(options.reduction, where), options_(options) {}
  using Cell::construct;
  Tensor construct(const Tensor& x, const Tensor& target) override;

 private:
  ops::BinaryLossOptions options_;
};

// The same of sigmoid(x), exact for any x.
class BCEWithLogitsLoss : public Loss {
 public:
  explicit BCEWithLogitsLoss(const std::string& reduction = "mean", Where where = Where::here())
      : BCEWithLogitsLoss(ops::BinaryLossOptions{reduction}, where) {}
  explicit BCEWithLogitsLoss(const ops::BinaryLossOptions& options, Where where = Where::here())
      : Loss(options.reduction, where), options_(options) {}
  using Cell::construct;
  Tensor construct(const Tensor& x, const Tensor& target) override;

 private:
  ops::BinaryLossOptions options_;
};

// -log softmax(logits)[label]; logits f32[B, C] or f32[B, C, ...], labels i32 or i64 of that shape
// without C, or probabilities of logits' type. Smoothed by s the target is onehot(label) (1 - s) +
// s / C. Rows whose label is ignore_index cost nothing, and the mean is over the others; without
// one given every label must be in [0, C) (MindSpore's default is -100). Weights: ops/loss.h.
class CrossEntropyLoss : public Loss {
 public:
  explicit CrossEntropyLoss(const std::string& reduction = "mean", double label_smoothing = 0,
                            std::optional<int64_t> ignore_index = std::nullopt,
                            Where where = Where::here())
      : CrossEntropyLoss(ops::ClassLossOptions{reduction, {}, ignore_index, label_smoothing},
                         where) {}
  explicit CrossEntropyLoss(const ops::ClassLossOptions& options, Where where = Where::here());
  using Cell::construct;
  Tensor construct(const Tensor& logits, const Tensor& labels) override;

 private:
  ops::ClassLossOptions options_;
};

// -x[label]; x are logarithms of probabilities.
class NLLLoss : public Loss {
 public:
  explicit NLLLoss(const ops::ClassLossOptions& options = {}, Where where = Where::here())
      : Loss(options.reduction, where), options_(options) {}
  using Cell::construct;
  Tensor construct(const Tensor& x, const Tensor& labels) override;

 private:
  ops::ClassLossOptions options_;
};

}  // namespace ballast::nn
