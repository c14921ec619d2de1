#include "tests/mistakes/table.h"

namespace ballast::tests {
namespace {

Tensor f32(const Shape& shape) { return Tensor::zeros(shape); }
Tensor i32(const Shape& shape) { return Tensor::zeros(shape, DType::kI32); }

MISTAKE(INVALID_ARGUMENT, "shapes that do not broadcast",
        "[add] shapes [3, 4] and [3] do not broadcast; inputs are f32[3, 4], f32[3] (at {line})\n  "
        "hint: extents are compared from the last axis on and must be equal or 1; ops::expand_dims "
        "and ops::reshape align them",
        f32({3, 4}) + f32({3}););

MISTAKE(INVALID_ARGUMENT, "a matrix product of the wrong way round",
        "[matmul] inner extents differ: 4 of input 0 (plain), 5 of input 1 (plain); inputs are "
        "f32[3, 4], f32[5, 4] (at {line})\n  hint: the last axis of input 0 meets the last but one "
        "of input 1; transpose_a and transpose_b, or ops::transpose, turn one round",
        ops::matmul(f32({3, 4}), f32({5, 4})););

MISTAKE(INVALID_ARGUMENT, "operands of two dtypes",
        "[mul] does not take these dtypes; inputs are f32[2], i32[2] (at {line})\n  hint: "
        "ops::cast converts one of them",
        f32({2}) * i32({2}););

MISTAKE(INVALID_ARGUMENT, "a fraction beside whole numbers",
        "[operand] 0.5 stands beside a tensor of i32 (at {line})\n  hint: ops::cast(x, "
        "DType::kF32) makes room for a fraction",
        i32({2}) * 0.5f;);

MISTAKE(INVALID_ARGUMENT, "a number that the dtype cannot hold",
        "[operand] 300 does not fit the tensor of u8 beside it (at {line})\n  hint: ops::cast(x, "
        "DType::kI64) makes room for it",
        ops::less(Tensor::zeros({2}, DType::kU8), 300););

MISTAKE(
    INVALID_ARGUMENT, "a tensor of a negative extent",
    "[full] f32[2, -3] has a negative extent\n  hint: extents count elements; only reshape takes "
    "a -1, and one at most",
    f32({2, -3}););

MISTAKE(INVALID_ARGUMENT, "a reshape to another number of elements",
        "[reshape] cannot reshape to [4, 2]; inputs are f32[2, 3] (at {line})\n  hint: the number "
        "of elements stays as it is; one extent may be -1, which is what is left",
        ops::reshape(f32({2, 3}), {4, 2}););

MISTAKE(INVALID_ARGUMENT, "a reshape with two free extents",
        "[reshape] f32[1, -1] has a negative extent; inputs are f32[2, 3] (at {line})\n  hint: "
        "extents count elements; only reshape takes a -1, and one at most",
        ops::reshape(f32({2, 3}), {-1, -1}););

MISTAKE(INVALID_ARGUMENT, "a reshape to too many dimensions",
        "[reshape] shape [1, 1, 1, 1, 1, 1, 1, 1, 2] has rank 9, at most 8 is possible (at {line})",
        ops::reshape(f32({2}), {1, 1, 1, 1, 1, 1, 1, 1, 2}););

MISTAKE(INVALID_ARGUMENT, "a broadcast to a smaller shape",
        "[broadcast_to] cannot broadcast to [3]; inputs are f32[2, 3] (at {line})",
        ops::broadcast_to(f32({2, 3}), {3}););

MISTAKE(INVALID_ARGUMENT, "an axis out of range",
        "[reduce_sum] axis 2 is out of range for rank 2; inputs are f32[2, 3] (at {line})\n  hint: "
        "axes count from 0, or backwards from -1",
        ops::sum(f32({2, 3}), {2}););

MISTAKE(INVALID_ARGUMENT, "axes that repeat",
        "[flip] axes [1, 1] are not different axes of rank 2; inputs are f32[2, 3] (at {line})",
        ops::flip(f32({2, 3}), {1, -1}););

MISTAKE(
    INVALID_ARGUMENT, "a transpose that leaves out an axis",
    "[transpose] perm [1, 0] is not a permutation of the axes; inputs are f32[2, 3, 4] (at {line})",
    ops::transpose(f32({2, 3, 4}), {1, 0}););

MISTAKE(INVALID_ARGUMENT, "a squeeze of an axis that is longer than 1",
        "[squeeze] axis 0 of f32[2, 3] is not of extent 1 (at {line})",
        ops::squeeze(f32({2, 3}), {0}););

MISTAKE(INVALID_ARGUMENT, "a new axis too far out",
        "[expand_dims] axis 4 is out of range for rank 2 (at {line})\n  hint: axes count from 0, "
        "or backwards from -1",
        ops::expand_dims(f32({2, 3}), 4););

MISTAKE(INVALID_ARGUMENT, "a concatenation of parts that differ",
        "[concat] input 1 differs from input 0 in more than axis 0; inputs are f32[2, 3], f32[2, "
        "4] (at {line})\n  hint: parts share their dtype and all other extents; ops::cast and "
        "ops::reshape bring them there",
        ops::concat({f32({2, 3}), f32({2, 4})}, 0););

MISTAKE(INVALID_ARGUMENT, "a concatenation of parts of two dtypes",
        "[concat] input 1 differs from input 0 in more than axis 0; inputs are f32[2, 3], i32[2, "
        "3] (at {line})\n  hint: parts share their dtype and all other extents; ops::cast and "
        "ops::reshape bring them there",
        ops::concat({f32({2, 3}), i32({2, 3})}, 0););

MISTAKE(INVALID_ARGUMENT, "a concatenation of nothing",
        "[concat] there are no tensors to put together (at {line})", ops::concat({}););

MISTAKE(INVALID_ARGUMENT, "a stack of parts that differ",
        "[stack] f32[2, 3] and f32[3] differ (at {line})", ops::stack({f32({2, 3}), f32({3})}););

MISTAKE(INVALID_ARGUMENT, "a split into parts that are not equal",
        "[split] extent 3 of axis 1 does not divide into 2 equal parts (at {line})\n  hint: "
        "ops::split(x, {sizes...}, axis)",
        ops::split(f32({2, 3}), 2, 1););

MISTAKE(
    INVALID_ARGUMENT, "a split into parts that do not make up the whole",
    "[split] sizes [1, 1] do not make up the extent 3 of axis 1; inputs are f32[2, 3] (at {line})",
    ops::split(f32({2, 3}), {1, 1}, 1););

MISTAKE(INVALID_ARGUMENT, "a slice beyond the end",
        "[slice] 2 elements from 2 on in steps of 1 leave axis 1 of extent 3; inputs are f32[2, 3] "
        "(at {line})",
        ops::slice(f32({2, 3}), {0, 2}, {1, 2}););

MISTAKE(INVALID_ARGUMENT, "a slice by steps of zero",
        "[strided_slice] begin [0], end [1] and strides [0] need equally many numbers, at most one "
        "for each axis of f32[2, 3], and strides that are not 0 (at {line})",
        ops::strided_slice(f32({2, 3}), {0}, {1}, {0}););

MISTAKE(INVALID_ARGUMENT, "paddings for some axes only",
        "[pad] 1 paddings are given for f32[2, 3] (at {line})", ops::pad(f32({2, 3}), {{1, 1}}););

MISTAKE(INVALID_ARGUMENT, "a padding below zero",
        "[pad] a padding is -1; inputs are f32[2, 3] (at {line})",
        ops::pad(f32({2, 3}), {{-1, 1}, {0, 0}}););

MISTAKE(INVALID_ARGUMENT, "a reflection longer than the axis",
        "[pad] 2 and 0 elements cannot be taken from axis 0 of f32[2, 3] (at {line})",
        ops::pad(f32({2, 3}), {{2, 0}, {0, 0}}, 0, "reflect"););

MISTAKE(INVALID_ARGUMENT, "a way to pad that does not exist",
        "[pad] mode is \"mirror\", expected constant, edge, reflect, symmetric or wrap (at {line})",
        ops::pad(f32({2, 3}), {{1, 0}, {0, 0}}, 0, "mirror"););

MISTAKE(INVALID_ARGUMENT, "a range by steps of zero", "[arange] 0 to 1 in steps of 0 (at {line})",
        ops::arange(0, 1, 0););

MISTAKE(INVALID_ARGUMENT, "a range of booleans",
        "[arange] dtype is bool, expected f32, i32 or i64 (at {line})",
        ops::arange(0, 2, 1, DType::kBool););

MISTAKE(INVALID_ARGUMENT, "indices that are no whole numbers",
        "[gather] indices are f32, expected i32 or i64; inputs are f32[2, 3], f32[4] (at {line})\n "
        " hint: ops::cast(indices, DType::kI32)",
        ops::gather(f32({2, 3}), f32({4})););

MISTAKE(INVALID_ARGUMENT, "token ids as floats",
        "[gather] indices are f32, expected i32 or i64; inputs are f32[10, 4], f32[2, 3] (at "
        "{line})\n  hint: ops::cast(indices, DType::kI32)",
        nn::Embedding(10, 4)(f32({2, 3})););

MISTAKE(INVALID_ARGUMENT, "an axis out of range to gather along",
        "[gather] axis 2 is not in [0, 2); inputs are f32[2, 3], i32[] (at {line})\n  hint: axes "
        "count from 0, or backwards from -1",
        ops::gather(f32({2, 3}), i32({}), 2););

MISTAKE(INVALID_ARGUMENT, "updates that do not fit the rows",
        "[index_add] updates are f32[2], expected f32[3]; inputs are f32[2, 3], i32[], f32[2] (at "
        "{line})",
        ops::index_add(f32({2, 3}), i32({}), f32({2})););

MISTAKE(INVALID_ARGUMENT, "a convolution with weights of rank 3",
        "[conv2d] weight is f32[4, 3, 3], expected rank 4 (at {line})",
        ops::conv2d(f32({1, 3, 8, 8}), f32({4, 3, 3})););

MISTAKE(INVALID_ARGUMENT, "a way to pad a convolution that does not exist",
        "[conv2d] pad_mode is \"full\", expected valid, same or pad (at {line})",
        ops::conv2d(f32({1, 3, 8, 8}), f32({4, 3, 3, 3}), ops::Window2d{{1}, "full"}););

MISTAKE(INVALID_ARGUMENT, "padding that the pad_mode does not use",
        "[conv2d] padding is [1, 1, 1, 1], which needs pad_mode \"pad\", not \"valid\" (at {line})",
        ops::conv2d(f32({1, 3, 8, 8}), f32({4, 3, 3, 3}), ops::Window2d{{1}, "valid", {1}}););

MISTAKE(INVALID_ARGUMENT, "an image without its batch axis, padded to its own size",
        "[conv2d] pad_mode \"same\" needs rank 4, two strides of at least 1 and two dilations, got "
        "shape [3, 8, 8], stride [1, 1], dilation [1, 1] (at {line})\n  hint: images are [batch, "
        "channels, height, width]; ops::expand_dims(x, 0) adds a batch",
        ops::conv2d(f32({3, 8, 8}), f32({4, 3, 3, 3}), ops::Window2d{{1}, "same"}););

MISTAKE(INVALID_ARGUMENT, "a pooling kernel of three extents",
        "[max_pool2d] kernel_size is [2, 2, 2], expected one or two numbers (at {line})",
        ops::max_pool2d(f32({1, 3, 4, 4}), {2, 2, 2}););

MISTAKE(INVALID_ARGUMENT, "adaptive pooling to one extent",
        "[adaptive_avg_pool2d] input is f32[1, 3, 4, 4], output_size [2]; expected planes with "
        "elements and two extents of at least 1, or -1 for the input's (at {line})",
        ops::adaptive_avg_pool2d(f32({1, 3, 4, 4}), {2}););

MISTAKE(INVALID_ARGUMENT, "a convolution with weights for other channels",
        "[conv2d] the weights [4, 3, 3, 3] are for 3 channels per group, the input has 6; inputs "
        "are f32[1, 6, 8, 8], f32[4, 3, 3, 3] (at {line})\n  hint: weights are [out, in / group, "
        "height, width]",
        ops::conv2d(f32({1, 6, 8, 8}), f32({4, 3, 3, 3})););

MISTAKE(INVALID_ARGUMENT, "a convolution of channels that no group divides",
        "[conv2d] group is 3, expected a divisor of the 6 input and 4 output channels; inputs are "
        "f32[1, 6, 8, 8], f32[4, 2, 3, 3] (at {line})",
        ops::conv2d(f32({1, 6, 8, 8}), f32({4, 2, 3, 3}), {}, 3););

MISTAKE(INVALID_ARGUMENT, "a convolution by a stride of zero",
        "[conv2d] stride is [0, 0], expected 2 numbers of at least 1; inputs are f32[1, 3, 8, 8], "
        "f32[4, 3, 3, 3] (at {line})",
        ops::conv2d(f32({1, 3, 8, 8}), f32({4, 3, 3, 3}), ops::Window2d{{0}}););

MISTAKE(INVALID_ARGUMENT, "an image without its batch axis",
        "[conv2d] input 0 needs rank 4, got f32[3, 8, 8]; inputs are f32[3, 8, 8], f32[4, 3, 3, 3] "
        "(at {line})\n  hint: images are [batch, channels, height, width]; ops::expand_dims(x, 0) "
        "adds a batch",
        ops::conv2d(f32({3, 8, 8}), f32({4, 3, 3, 3})););

MISTAKE(INVALID_ARGUMENT, "a kernel larger than the image",
        "[max_pool2d] the kernel covers 5 by 5 elements, but the padded input has 4 by 4; inputs "
        "are f32[1, 3, 4, 4] (at {line})",
        ops::max_pool2d(f32({1, 3, 4, 4}), {5}););

MISTAKE(INVALID_ARGUMENT, "a convolution whose windows reach beyond the padding",
        "[conv2d] ceil_mode is set, which only pooling has (at {line})",
        ops::conv2d(f32({1, 3, 8, 8}), f32({4, 3, 3, 3}),
                    ops::Window2d{{1}, "valid", {0}, {1}, true}););

MISTAKE(INVALID_ARGUMENT, "a transposed convolution padded by more than its stride",
        "[conv2d_transpose] output_padding is [2, 2], expected less than the stride [2, 2] (at "
        "{line})",
        ops::conv2d_transpose(f32({1, 3, 8, 8}), f32({3, 4, 3, 3}), ops::Window2d{{2}}, 1, {2}););

MISTAKE(INVALID_ARGUMENT, "a norm by a negative power",
        "[norm] ord is -2, expected at least 0 or an infinity (at {line})",
        ops::norm(f32({3}), -2););

MISTAKE(INVALID_ARGUMENT, "a length of whole numbers",
        "[normalize] input is i32[2, 3], expected floats (at {line})",
        ops::normalize(i32({2, 3})););

MISTAKE(INVALID_ARGUMENT, "an angle between a row and rows",
        "[cosine_similarity] f32[2, 3] and f32[3] differ in dtype or rank (at {line})",
        ops::cosine_similarity(f32({2, 3}), f32({3})););

MISTAKE(INVALID_ARGUMENT, "lines without their channels",
        "[max_pool1d] input is f32[3, 8], expected [N, C, L] (at {line})",
        ops::max_pool1d(f32({3, 8}), 2););

MISTAKE(INVALID_ARGUMENT, "a convolution of lines with weights for planes",
        "[conv1d] weight is f32[4, 3, 1, 3], expected rank 3 (at {line})",
        ops::conv1d(f32({1, 3, 8}), f32({4, 3, 1, 3})););

MISTAKE(INVALID_ARGUMENT, "three paddings of a line",
        "[conv1d] padding is [1, 1, 1], expected one or two numbers (at {line})",
        ops::conv1d(f32({1, 3, 8}), f32({4, 3, 3}), ops::Window1d{1, "pad", {1, 1, 1}}););

MISTAKE(INVALID_ARGUMENT, "keys of another width than the queries",
        "[scaled_dot_product_attention] k is f32[2, 5, 6], expected f32[2, 5, 8] beside q f32[2, "
        "4, 8]; inputs are f32[2, 4, 8], f32[2, 5, 6], f32[2, 5, 6] (at {line})",
        ops::scaled_dot_product_attention(f32({2, 4, 8}), f32({2, 5, 6}), f32({2, 5, 6})););

MISTAKE(INVALID_ARGUMENT, "class numbers as floats",
        "[cross_entropy] labels need i32[4] beside the input f32[4, 3], got f32[4] (at {line})\n  "
        "hint: labels are class numbers; ops::cast(labels, DType::kI32), and ops::argmax of rows "
        "with a one for the class",
        nn::CrossEntropyLoss()(f32({4, 3}), f32({4})););

MISTAKE(INVALID_ARGUMENT, "a target of another shape",
        "[sub] shapes [4, 2] and [3] do not broadcast; inputs are f32[4, 2], f32[3] (at {line})\n  "
        "hint: extents are compared from the last axis on and must be equal or 1; ops::expand_dims "
        "and ops::reshape align them",
        nn::MSELoss()(f32({4, 2}), f32({3})););

MISTAKE(
    INVALID_ARGUMENT, "a random key that is no key",
    "[random_normal] the key (input 0) needs i64[2]: seed, offset; inputs are f32[2] (at {line})\n "
    " hint: leave the key out to draw from default_generator(), or take one from Generator::next()",
    ops::random_normal(f32({2}), {3}););

MISTAKE(INVALID_ARGUMENT, "a layer given rows of another width",
        "[matmul] inner extents differ: 4 of input 0 (plain), 7 of input 1 (transposed); inputs "
        "are f32[3, 4], f32[2, 7] (at {line})\n  hint: the last axis of input 0 meets the last but "
        "one of input 1; transpose_a and transpose_b, or ops::transpose, turn one round",
        nn::Dense(7, 2)(f32({3, 4})););

MISTAKE(INVALID_ARGUMENT, "an undefined tensor",
        "[exp] input 0 is an undefined tensor (at {line})\n  hint: a Tensor declared without a "
        "value is undefined: assign it first",
        ops::exp(Tensor()););

MISTAKE(NOT_FOUND, "an op's name with a slip of the pen",
        "[rellu] unknown op; did you mean gelu, relu? (at {line})",
        ops::call("rellu", {f32({2})}););

MISTAKE(INVALID_ARGUMENT, "values that do not fill the shape",
        "[from_host] 3 values given for f32[2, 2] (at {line})",
        Tensor::from_host<float>({1, 2, 3}, {2, 2}););

MISTAKE(INVALID_ARGUMENT, "elements read as another type",
        "[to_host] the tensor is f32[2], asked for as i32 (at {line})\n  hint: to_host and item "
        "take the C++ type of the elements; ops::cast converts them",
        f32({2}).to_host<int32_t>(););

MISTAKE(INVALID_ARGUMENT, "one number from many",
        "[item] the tensor is f32[2, 3], expected one element (at {line})",
        f32({2, 3}).item<float>(););

}  // namespace
}  // namespace ballast::tests
