// print: an effect that writes a text with tensors in it.
//   inputs: a token, tensors; {text}: "{}" stands for a tensor, "{{" and "}}" for braces
//   output: a token
#include "graph/effect.h"
#include "graph/print_sink.h"
#include "graph/tensor_text.h"

namespace ballast::graph {

using device::Code;
using device::fail;

namespace {

constexpr size_t kMostTensors = 256;

// The text with what `tensor(i)` gives in the place of the i-th "{}"; returns how many there are.
template <class Tensor>
size_t fill_in(const std::string& text, std::string& out, const Tensor& tensor) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_brace = text[i] == '{' || text[i] == '}';
    if (!is_brace) {
      out += text[i];
      continue;
    }
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (next == text[i]) {
      out += next;
    } else if (text[i] == '{' && next == '}') {
      out += tensor(count++);
    } else {
      fail(Code::kInvalidArgument, "text: a lone '{}' at {}; write {{}} for a tensor, {}{} for it",
           text[i], i, text[i], text[i]);
    }
    ++i;
  }
  return count;
}

std::vector<TensorType> infer_print(const OpCall& call) {
  if (call.inputs[0] != token_type()) {
    fail(Code::kInvalidArgument, "input 0 is {}, expected a token, u8[0]",
         to_string(call.inputs[0]));
  }
  std::string ignored;
  const size_t places =
      fill_in(string_attr(call.attrs, "text"), ignored, [](size_t) { return std::string(); });
  if (places != call.inputs.size() - 1) {
    fail(Code::kInvalidArgument, "text has {} places for {} tensors", places,
         call.inputs.size() - 1);
  }
  return {token_type()};
}

void print(const OpCall& call, const std::vector<std::vector<uint8_t>>& inputs) {
  std::string line;
  fill_in(string_attr(call.attrs, "text"), line,
          [&](size_t i) { return tensor_text(call.inputs[i + 1], inputs[i + 1].data()); });
  print_text(line + "\n");
}

}  // namespace

std::vector<OpDef> print_ops() {
  OpDef op;
  op.name = "print";
  op.max_inputs = 1 + kMostTensors;
  op.attrs = {{"text", std::string(), true}};
  op.infer = infer_print;
  op.effect = print;
  return {op};
}

}  // namespace ballast::graph
