#include "tests/mistakes/table.h"

#include <cmath>

namespace ballast::tests {
namespace {

Tensor f32(const Shape& shape) { return Tensor::zeros(shape); }

struct Twice : nn::Cell {
  Twice() {
    add("w", Tensor::zeros({1}));
    add("w", Tensor::zeros({1}));
  }
};

// ---- cells

MISTAKE(INVALID_ARGUMENT, "a cell called with too many inputs",
        "[Cell] called with 2 inputs: it has no construct that takes 2 (at {line})",
        nn::ReLU()(f32({2}), f32({2})););

MISTAKE(INVALID_ARGUMENT, "two parameters of one name",
        "[Cell] two parameters have the name \"w\"\n  hint: sub-cells added under names of their "
        "own prefix theirs",
        Twice().parameters_dict(););

MISTAKE(INVALID_ARGUMENT, "a batch norm given rows",
        "[BatchNorm2d] takes [N, C, H, W], got f32[2, 3] (at {line})\n  hint: images are [batch, "
        "channels, height, width]; rows [N, C] become such as [N, C, 1, 1]",
        nn::BatchNorm2d(3)(f32({2, 3})););

MISTAKE(INVALID_ARGUMENT, "attention given rows without a batch",
        "[MultiHeadAttention] takes [B, N, 4], got f32[3, 4] (at {line})",
        nn::MultiHeadAttention(4, 2)(f32({3, 4})););

MISTAKE(INVALID_ARGUMENT, "heads that do not divide the width",
        "[MultiHeadAttention] 2 heads over 5 elements: expected equal heads (at {line})",
        nn::MultiHeadAttention(5, 2););

MISTAKE(INVALID_ARGUMENT, "a dropout of everything",
        "[Dropout] p is 1, expected 0 up to but not 1 (at {line})", nn::Dropout(1););

MISTAKE(INVALID_ARGUMENT, "channels that the groups do not divide",
        "[Conv2d] 3 to 4 channels in 2 groups: expected multiples of the groups (at {line})",
        nn::Conv2d(3, 4, 1, 1, "same", 0, 1, 2););

MISTAKE(INVALID_ARGUMENT, "a batch norm of no features",
        "[BatchNorm1d] 0 features, momentum 0.9: expected at least 1, and 0 to 1 (at {line})",
        nn::BatchNorm1d(0););

MISTAKE(INVALID_ARGUMENT, "groups that do not divide the channels",
        "[GroupNorm] 5 channels in 2 groups: expected equal groups (at {line})",
        nn::GroupNorm(2, 5););

MISTAKE(INVALID_ARGUMENT, "a kernel of three extents",
        "[Conv2d] kernel_size is [1, 2, 3], expected one or two extents (at {line})",
        nn::Conv2d(3, 4, {1, 2, 3}););

MISTAKE(INVALID_ARGUMENT, "a padding row that the table does not have",
        "[Embedding] 4 rows of 2, padding_idx 4: expected at least 1, and a row's number (at "
        "{line})",
        nn::Embedding(4, 2, nn::Normal(), 4););

MISTAKE(INVALID_ARGUMENT, "a loss reduced by an unknown word",
        "[loss] reduction is \"average\", expected mean, sum or none (at {line})",
        nn::MSELoss("average")(f32({2}), f32({2})););

MISTAKE(INVALID_ARGUMENT, "a loss function reduced by an unknown word",
        "[l1_loss] reduction is \"average\", expected mean, sum or none (at {line})",
        ops::l1_loss(f32({2}), f32({2}), "average"););

MISTAKE(INVALID_ARGUMENT, "a Huber loss without its parabola",
        "[huber_loss] delta is 0, expected more than 0 (at {line})",
        ops::huber_loss(f32({2}), f32({2}), 0););

MISTAKE(INVALID_ARGUMENT, "labels of another batch",
        "[nll_loss] labels are i32[1], expected i32[3] beside the input f32[3, 2] (at {line})",
        ops::nll_loss(f32({3, 2}), Tensor::zeros({1}, DType::kI32)););

MISTAKE(INVALID_ARGUMENT, "weights for other classes",
        "[cross_entropy] weight is f32[4], expected f32[2] beside the input f32[3, 2] (at {line})",
        ops::cross_entropy(f32({3, 2}), Tensor::zeros({3}, DType::kI32),
                           ops::ClassLossOptions{"mean", f32({4})}););

MISTAKE(INVALID_ARGUMENT, "a label to ignore among probabilities",
        "[cross_entropy] ignore_index is 1, but labels f32[3, 2] are probabilities (at {line})",
        ops::cross_entropy(f32({3, 2}), f32({3, 2}), ops::ClassLossOptions{"mean", {}, 1}););

MISTAKE(INVALID_ARGUMENT, "a loss of classes without their axis",
        "[cross_entropy] input is f32[3], expected [B, C] or [B, C, ...] (at {line})",
        ops::cross_entropy(f32({3}), Tensor::zeros({3}, DType::kI32)););

MISTAKE(INVALID_ARGUMENT, "weights of more losses than there are",
        "[binary_cross_entropy] weight is f32[2, 3], expected what broadcasts to the losses' shape "
        "[3] (at {line})",
        ops::binary_cross_entropy(f32({3}), f32({3}),
                                  ops::BinaryLossOptions{"mean", f32({2, 3})}););

// ---- parameters and optimizers

MISTAKE(INVALID_ARGUMENT, "a parameter assigned another shape",
        "[assign] parameter fc.weight is f32[2, 3], the new value is f32[3] (at {line})",
        Parameter w(f32({2, 3}), "fc.weight");
        w.assign(f32({3})););

MISTAKE(INVALID_ARGUMENT, "an undefined parameter",
        "[parameter] the parameter is undefined\n  hint: a layer without bias has none; defined() "
        "tells",
        ops::exp(nn::Dense(2, 2, /*has_bias=*/false).bias()););

MISTAKE(INVALID_ARGUMENT, "the shape of an undefined parameter",
        "[parameter] the parameter is undefined\n  hint: a layer without bias has none; defined() "
        "tells",
        nn::Dense(2, 2, /*has_bias=*/false).bias().shape(););

MISTAKE(INVALID_ARGUMENT, "an optimizer given a parameter twice",
        "[optimizer] parameter weight is given twice (at {line})", nn::Dense net(2, 1);
        nn::SGD({net.weight(), net.bias(), net.weight()}););

MISTAKE(INVALID_ARGUMENT, "an optimizer given frozen parameters",
        "[optimizer] parameter moving_mean is frozen: its requires_grad is off (at {line})\n  "
        "hint: Cell::trainable_params() leaves such parameters out",
        nn::BatchNorm2d net(3);
        nn::SGD(net.parameters()););

MISTAKE(INVALID_ARGUMENT, "an optimizer given nothing to train",
        "[optimizer] there are no parameters to train (at {line})",
        nn::SGD(nn::ReLU().trainable_params()););

MISTAKE(INVALID_ARGUMENT, "a gradient too few",
        "[optimizer] given 1 gradients for 2 parameters (at {line})\n  hint: a gradient for each "
        "of parameters(), in their order, as value_and_grad returns",
        nn::SGD optimizer(nn::Dense(2, 1).trainable_params());
        optimizer({f32({1, 2})}););

MISTAKE(INVALID_ARGUMENT, "gradients in the wrong order",
        "[apply_gradient_descent] grad (input 1) needs the parameter's type f32[1, 2]; inputs are "
        "f32[1, 2], f32[1], f32[1], f32[1, 2], f32[] (at {line})\n  hint: gradients come in the "
        "order of parameters()",
        nn::SGD optimizer(nn::Dense(2, 1).trainable_params());
        optimizer({f32({1}), f32({1, 2})}););

MISTAKE(FAILED_PRECONDITION, "a learning rate set where a schedule decides",
        "[set_learning_rate] the learning rate is a schedule, not a number (at {line})\n  "
        "hint: change it through the schedule, or begin with a number",
        nn::SGD optimizer(nn::Dense(2, 1).trainable_params(), nn::ExponentialDecayLR(0.1, 0.9, 10));
        optimizer.set_learning_rate(0.01););

MISTAKE(INVALID_ARGUMENT, "Nesterov without a momentum",
        "[SGD] Nesterov with momentum 0 and dampening 0: expected a momentum, no dampening (at "
        "{line})",
        nn::SGD(nn::Dense(2, 1).trainable_params(), 0.1, 0, 0, 0, /*nesterov=*/true););

MISTAKE(INVALID_ARGUMENT, "gradients clipped to nothing",
        "[clip_by_global_norm] clip_norm is 0, expected it positive (at {line})",
        ops::clip_by_global_norm({f32({2})}, 0););

// ---- mixed precision

MISTAKE(INVALID_ARGUMENT, "mixed precision in full precision",
        "[auto_mixed_precision] f32 is not bf16 or f16 (at {line})",
        amp::auto_mixed_precision(nn::Dense(2, 1), DType::kF32)(f32({3, 2})););

MISTAKE(INVALID_ARGUMENT, "a loss scale that is not a number",
        "[StaticLossScaler] the scale is nan, expected it finite and more than 0 (at {line})\n "
        " hint: where gradients overflow, a smaller power of two, or DynamicLossScaler, which "
        "finds one",
        amp::StaticLossScaler(NAN););

MISTAKE(INVALID_ARGUMENT, "a loss scale of zero",
        "[StaticLossScaler] the scale is 0, expected it finite and more than 0 (at {line})\n  "
        "hint: where gradients overflow, a smaller power of two, or DynamicLossScaler, which "
        "finds one",
        amp::StaticLossScaler(0););

MISTAKE(INVALID_ARGUMENT, "a dynamic loss scale that never grows",
        "[DynamicLossScaler] value 1024, factor 1, window 1000: expected at least 1, more than "
        "1, at least 1 (at {line})",
        amp::DynamicLossScaler(1024, /*scale_factor=*/1););

// ---- data and the sink

MISTAKE(INVALID_ARGUMENT, "columns of unequal lengths",
        "[ArrayDataset] column 1 is f32[7], column 0 is f32[8, 2]: they must share their "
        "leading extent (at {line})",
        data::ArrayDataset({f32({8, 2}), f32({7})}););

MISTAKE(INVALID_ARGUMENT, "batches of nothing",
        "[batch] size is 0, expected at least 1 (at {line})",
        data::ArrayDataset({f32({8, 2})}).batch(0););

MISTAKE(INVALID_ARGUMENT, "a shard that there is not",
        "[shard] number 4 of 4 (at {line})\n  hint: shards count from 0",
        data::ArrayDataset({f32({8, 2})}).shard(4, 4););

MISTAKE(INVALID_ARGUMENT, "a dataset with columns that the step does not take",
        "[data_sink] the dataset has 2 columns, the step takes 1 (at {line})\n  hint: "
        "data_sink<columns>(step, dataset, sink_size)",
        auto data = data::ArrayDataset({f32({8, 2}), f32({8})}).batch(4);
        data_sink<1>(jit([](Tensor x) { return ops::sum(x); }), data, 2););

MISTAKE(INVALID_ARGUMENT, "a batch size larger than the data",
        "[data_sink] nothing to run: sink size 2, 0 batches per epoch (at {line})\n  hint: a "
        "smaller batch, or batch(size, /*drop_remainder=*/false)",
        auto data = data::ArrayDataset({f32({8, 2})}).batch(16);
        data_sink<1>(jit([](Tensor x) { return ops::sum(x); }), data, 2););

MISTAKE(INVALID_ARGUMENT, "a queue with too few steps",
        "[sink] queue 0 is f32[4, 2]: too short for 5 steps (at {line})\n  hint: each(x) needs "
        "a row along axis 0 for every step; repeat(x) gives the same x to all",
        auto loop = sink(jit([](Tensor x) { return ops::sum(x); }));
        loop(5, each(f32({4, 2}))););

MISTAKE(INVALID_ARGUMENT, "a sink of no steps",
        "[sink] a run of 0 steps was asked for, expected 1 or more (at {line})",
        auto loop = sink(jit([](Tensor x) { return ops::sum(x); }));
        loop(0, repeat(f32({}))););

MISTAKE(INVALID_ARGUMENT, "a queue without an axis of steps",
        "[sink] a queue of f32[] has no leading axis to step along (at {line})\n  hint: "
        "repeat(x) gives the same x to every step",
        auto loop = sink(jit([](Tensor x) { return ops::sum(x); }));
        loop(5, each(f32({}))););

}  // namespace
}  // namespace ballast::tests
