// The losses of class numbers, loss.h's nll_loss and cross_entropy.
#include "frontend/ops/call.h"
#include "frontend/ops/in_f32.h"
#include "frontend/ops/ops.h"
#include "frontend/ops/reduced.h"

#include <numeric>

namespace ballast::ops {

namespace {

// [B, C, ...] without C: what the labels and losses have.
Shape without_classes(const Shape& shape) {
  Shape rest = shape;
  rest.erase(rest.begin() + 1);
  return rest;
}

int64_t rows_in(const Tensor& x) {
  return TensorType{x.dtype(), without_classes(x.shape())}.elements();
}

Tensor shaped(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : reshape(x, shape);
}

// [B, C, ...] as [rows, C].
Tensor rows_of(const Tensor& x) {
  if (x.rank() == 2) return x;
  std::vector<int64_t> perm(x.shape().size());
  std::iota(perm.begin(), perm.end(), 0);
  perm.erase(perm.begin() + 1);
  perm.push_back(1);
  return reshape(transpose(x, perm), {rows_in(x), x.shape()[1]});
}

// Beside x [B, C, ...].
void check_options(const char* op, const Tensor& x, const ClassLossOptions& options) {
  const Where where = Where::here();
  if (x.rank() < 2) {
    refuse(where, "[{}] input is {}, expected [B, C] or [B, C, ...]", op, to_string(x.type()));
  }
  const TensorType weight{x.dtype(), {x.shape()[1]}};
  if (options.weight.defined() && options.weight.type() != weight) {
    refuse(where, "[{}] weight is {}, expected {} beside the input {}", op,
           to_string(options.weight.type()), to_string(weight), to_string(x.type()));
  }
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    refuse(where, "[{}] label_smoothing is {}, expected 0 to 1", op, options.label_smoothing);
  }
}

struct Labels {
  Tensor classes;  // i32[rows]; where they are ignored, 0
  Tensor counts;   // bool[rows]: those that are not ignored; undefined: all
};

Labels labels_of(const char* op, const Tensor& x, Tensor labels,
                 const std::optional<int64_t>& ignore_index) {
  const TensorType expected{DType::kI32, without_classes(x.shape())};
  if (labels.dtype() != DType::kI32 && labels.dtype() != DType::kI64) {
    refuse(Where::here(), "[{}] labels need {} beside the input {}, got {}", op,
           to_string(expected), to_string(x.type()), to_string(labels.type()));
  }
  if (labels.shape() != expected.shape) {
    refuse(Where::here(), "[{}] labels are {}, expected {} beside the input {}", op,
           to_string(labels.type()), to_string(expected), to_string(x.type()));
  }
  const Shape rows = {rows_in(x)};
  Labels result;
  if (ignore_index) {
    const Tensor counts = not_equal(labels, *ignore_index);
    // An ignored label may be no class at all.
    labels = select(counts, labels, 0);
    result.counts = shaped(counts, rows);
  }
  result.classes = shaped(class_labels(labels), rows);
  return result;
}

struct RowLosses {
  Tensor losses;   // f[rows]
  Tensor weights;  // f[rows], what the mean divides by; undefined: 1 for every row
};

Tensor reduced_rows(const char* op, const RowLosses& rows, const Shape& shape,
                    const std::string& reduction) {
  if (reduction == "mean" && rows.weights.defined()) {
    return reduce_sum(rows.losses) / reduce_sum(rows.weights);
  }
  return reduced(op, shaped(rows.losses, shape), reduction);
}

// Of what lies beside the label only smoothing reads more than whether it is the label's.
RowLosses negative_of_label(const Tensor& log_p, const Labels& labels, const Tensor& weight,
                            double smoothing) {
  const int64_t rows = log_p.shape()[0], count = log_p.shape()[1];
  std::vector<int32_t> classes(static_cast<size_t>(count));
  std::iota(classes.begin(), classes.end(), 0);
  Tensor is_label = equal(reshape(labels.classes, {rows, 1}), Tensor::on_host(classes, {count}));
  if (labels.counts.defined()) {
    is_label = logical_and(is_label, reshape(labels.counts, {rows, 1}));
  }
  const Tensor weighted = weight.defined() ? log_p * weight : log_p;
  RowLosses result{-reduce_sum(select(is_label, weighted, 0.0), {1}), {}};
  if (weight.defined()) {
    result.weights = reduce_sum(select(is_label, weight, 0.0), {1});
  } else if (labels.counts.defined()) {
    result.weights = reduce_sum(cast(is_label, log_p.dtype()), {1});
  }
  if (smoothing > 0) {
    const Tensor rest = select(reduce_any(is_label, {1}), reduce_sum(weighted, {1}), 0.0);
    result.losses =
        result.losses * (1 - smoothing) - rest * (smoothing / static_cast<double>(count));
  }
  return result;
}

RowLosses cross_entropy_of_labels(const Tensor& logits, const Labels& labels, const Tensor& weight,
                                  double smoothing) {
  RowLosses result;
  if (weight.defined()) {
    // What is no class makes the loss NaN, whatever weight is read.
    result.weights = gather(weight, labels.classes);
    result.losses = softmax_cross_entropy(logits, labels.classes) * result.weights;
    if (smoothing > 0) {
      const Tensor rest = reduce_sum(log_softmax(logits) * weight, {1});
      result.losses = result.losses * (1 - smoothing) -
                      rest * (smoothing / static_cast<double>(logits.shape()[1]));
    }
  } else {
    result.losses = softmax_cross_entropy(logits, labels.classes, smoothing);
  }
  if (labels.counts.defined()) {
    result.weights = weight.defined() ? select(labels.counts, result.weights, 0.0)
                                      : cast(labels.counts, logits.dtype());
    result.losses = select(labels.counts, result.losses, 0.0);
  }
  return result;
}

RowLosses cross_entropy_of_probabilities(const Tensor& logits, Tensor target, const Tensor& weight,
                                         double smoothing) {
  if (smoothing > 0) {
    target = target * (1 - smoothing) + smoothing / static_cast<double>(logits.shape()[1]);
  }
  const Tensor terms = log_softmax(logits) * target;
  return {-reduce_sum(weight.defined() ? terms * weight : terms, {1}), {}};
}

// fn(rows, weight) in f32, reduced.
template <class Fn>
Tensor class_loss(const char* op, const Tensor& x, const ClassLossOptions& options, const Fn& fn) {
  return in_f32(x, [&](const Tensor& wide) {
    const Tensor weight =
        options.weight.defined() ? cast(options.weight, wide.dtype()) : options.weight;
    return reduced_rows(op, fn(rows_of(wide), weight), without_classes(x.shape()),
                        options.reduction);
  });
}

}  // namespace

Tensor nll_loss(const Operand& x, const Operand& labels, const ClassLossOptions& options) {
  CallScope scope(x.where());
  const Tensor log_p = x.tensor();
  check_options("nll_loss", log_p, options);
  const Labels each = labels_of("nll_loss", log_p, labels.tensor(), options.ignore_index);
  return class_loss("nll_loss", log_p, options, [&](const Tensor& rows, const Tensor& weight) {
    return negative_of_label(rows, each, weight, options.label_smoothing);
  });
}

Tensor nll_loss(const Operand& x, const Operand& labels, const std::string& reduction) {
  return nll_loss(x, labels, ClassLossOptions{reduction});
}

Tensor cross_entropy(const Operand& x, const Operand& labels, const ClassLossOptions& options) {
  constexpr char kOp[] = "cross_entropy";
  CallScope scope(x.where());
  const Tensor logits = x.tensor(), given = labels.tensor();
  check_options(kOp, logits, options);
  if (given.type() == logits.type()) {
    if (options.ignore_index) {
      refuse(x.where(), "[cross_entropy] ignore_index is {}, but labels {} are probabilities",
             *options.ignore_index, to_string(given.type()));
    }
    return class_loss(kOp, logits, options, [&](const Tensor& rows, const Tensor& weight) {
      return cross_entropy_of_probabilities(rows, rows_of(cast(given, rows.dtype())), weight,
                                            options.label_smoothing);
    });
  }
  const Labels each = labels_of(kOp, logits, given, options.ignore_index);
  return class_loss(kOp, logits, options, [&](const Tensor& rows, const Tensor& weight) {
    return cross_entropy_of_labels(rows, each, weight, options.label_smoothing);
  });
}

}  // namespace ballast::ops
