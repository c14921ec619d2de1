#include "frontend/tensor/error.h"

#include <algorithm>
#include <iterator>

namespace ballast {

namespace {

constexpr char kHint[] = "\n  hint: ";

// What is said of a mistake, in any op, and what may be done about it. The plugin speaks of types
// and attributes; how to mend them is a matter of the frontend.
struct Hint {
  const char* said;
  const char* text;
};
constexpr Hint kHints[] = {
    {"do not broadcast",
     "extents are compared from the last axis on and must be equal or 1; ops::expand_dims and "
     "ops::reshape align them"},
    {"inner extents differ",
     "the last axis of input 0 meets the last but one of input 1; transpose_a and transpose_b, or "
     "ops::transpose, turn one round"},
    {"float inputs need one dtype", "ops::cast converts one of them"},
    {"does not take these dtypes", "ops::cast converts one of them"},
    {"does not fit the tensor of", "ops::cast(x, DType::kI64) makes room for it"},
    {"[operand]", "ops::cast(x, DType::kF32) makes room for a fraction"},
    {"cannot reshape to",
     "the number of elements stays as it is; one extent may be -1, which is what is left"},
    {"out of range for rank", "axes count from 0, or backwards from -1"},
    {"is not in [0, ", "axes count from 0, or backwards from -1"},
    {"expected i32 or i64", "ops::cast(indices, DType::kI32)"},
    {"labels need i32",
     "labels are class numbers; ops::cast(labels, DType::kI32), and ops::argmax of rows with a one "
     "for the class"},
    {"needs rank 4",
     "images are [batch, channels, height, width]; ops::expand_dims(x, 0) adds a batch"},
    {"takes [N, C, H, W]",
     "images are [batch, channels, height, width]; rows [N, C] become such as [N, C, 1, 1]"},
    {"the key (input ",
     "leave the key out to draw from default_generator(), or take one from Generator::next()"},
    {"whose trace has ended",
     "return it from the traced function, or assign it to a Parameter to keep it"},
    {"its tangent is an undefined tensor", "Tensor() stands for it"},
    {"was donated", "use what that call returned, or leave the argument out of donate()"},
    {"is the same tensor", "leave it out of donate(), or give a copy: x + 0"},
    {"the function closes over it", "pass it as an argument, or leave it out of donate()"},
    {"is to donate argument", "arguments count from 0"},
    {"which cannot be donated",
     "a parameter that the function assigns is updated in place without it"},
    {"a queue keeps its values",
     "jit it without donate(); what goes from step to step is a Parameter"},
    {"undefined tensor", "a Tensor declared without a value is undefined: assign it first"},
    {"the tensor is undefined", "a Tensor declared without a value is undefined: assign it first"},
    {"the loss is", "ops::mean or ops::sum makes it one; jacrev differentiates all elements"},
    {"pass has_aux for more",
     "value_and_grad(f, position, /*has_aux=*/true) differentiates the first of them"},
    {"the op has no gradient", "stop_gradient around it if none is meant, custom_vjp to give one"},
    {"the op has no derivative",
     "stop_gradient around it if none is meant, custom_vjp to give one"},
    {"expected a bool scalar",
     "ops::less and its like compare, ops::reduce_any and ops::reduce_all make one bool of many; "
     "ops::select chooses element by element"},
    {"where the predicate is true, else",
     "both branches are compiled, so they must agree; ops::cast and ops::broadcast_to help"},
    {"one branch returns", "both branches are compiled, so they must return trees of one form"},
    {"of the carry is",
     "a loop's carry keeps its types from step to step; ops::cast and ops::reshape what the body "
     "returns"},
    {"without xs a length is needed", "scan(body, carry, std::tuple<>(), /*length=*/n)"},
    {"a bound is", "ops::cast(bound, DType::kI32)"},
    {"a value that differs by example",
     "return it instead, and assign what is made of all examples: their mean, their sum"},
    {"is an example's is not known",
     "draw in a fori_loop or scan and outside of checkpoints, or map over keys of the examples' "
     "own"},
    {"examples along axis",
     "arguments that are the same for all examples have std::nullopt in in_axes"},
    {"there is no axis to step along", "ops::broadcast_to or ops::expand_dims gives it one"},
    {"] the backward pass ",
     "it is differentiated, transposed and mapped in its turn, so it has no effects; print what "
     "the "
     "pullback or grad returns"},
    {"[custom_vjp] backward gives",
     "backward(residuals, cotangents) returns a tensor for each tensor of the arguments, of its "
     "type"},
    {"[optimizer] given",
     "a gradient for each of parameters(), in their order, as value_and_grad returns"},
    {"the dataset has", "data_sink<columns>(step, dataset, sink_size)"},
    {"too short for",
     "each(x) needs a row along axis 0 for every step; repeat(x) gives the same x to all"},
    {"has no leading axis to step along", "repeat(x) gives the same x to every step"},
    {"bytes do not fit",
     "a smaller batch, checkpoint() around layers, or trim_memory(), which returns what the pool "
     "keeps"},
    {"needs the parameter's type", "gradients come in the order of parameters()"},
    {"has a negative extent", "extents count elements; only reshape takes a -1, and one at most"},
    {"in more than axis",
     "parts share their dtype and all other extents; ops::cast and ops::reshape bring them there"},
    {"the weights ", "weights are [out, in / group, height, width]"},
    {"does not divide into", "ops::split(x, {sizes...}, axis)"},
    {"[shard] number", "shards count from 0"},
    {"nothing to run", "a smaller batch, or batch(size, /*drop_remainder=*/false)"},
    {"cannot load", "BALLAST_PLUGIN or set_plugin_path() names the plugin's file"},
    {"comes too late", "call it before the first tensor is made"},
    {"no device matches", "BALLAST_DEVICE and set_device() take a number or a part of a name"},
    {"[StateDict] the name", "a prefix tells them apart: state.add(\"other.\", cell)"},
    {"[Cell] two parameters", "sub-cells added under names of their own prefix theirs"},
    {"the learning rate is a schedule", "change it through the schedule, or begin with a number"},
    {"[parameter] the parameter is undefined", "a layer without bias has none; defined() tells"},
    {"called while a function is traced", "call it outside of jit, grad and the like"},
    {"does not fit: ", "LoadMode::kPartial loads what fits"},
};

std::string with_hint(const std::string& message) {
  if (message.find(kHint) != std::string::npos) return message;
  const auto* found = std::find_if(std::begin(kHints), std::end(kHints), [&](const Hint& hint) {
    return message.find(hint.said) != std::string::npos;
  });
  return found == std::end(kHints) ? message : message + kHint + found->text;
}

}  // namespace

Error::Error(int32_t code, const std::string& message)
    : std::runtime_error(with_hint(message)), code_(code) {}

Error located(const Error& error, const Where& where) {
  std::string message = error.what();
  if (message.find(" (at ") != std::string::npos) return error;
  message.insert(std::min(message.find(kHint), message.size()),
                 fmt::format(" (at {})", to_string(where)));
  return {error.code(), message};
}

}  // namespace ballast
