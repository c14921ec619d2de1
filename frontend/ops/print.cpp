#include "frontend/ops/print.h"

#include "frontend/modes/eager.h"
#include "frontend/program/token.h"
#include "frontend/program/trace.h"
#include "frontend/transforms/vjp_rules.h"

namespace ballast {

namespace {

// The plugin's print, its text with "{}" for tensors.
std::vector<Tensor> run_print(const std::vector<Tensor>& inputs, const Attrs& attrs,
                              const Bodies&) {
  const std::shared_ptr<Device> where = inputs.size() > 1 ? inputs[1].buffer()->device() : device();
  std::vector<Tensor> operands = inputs;
  operands[0] = Tensor::of_buffer(inputs[0].shared_type(), where->allocate(0));
  launch_op("print", operands, attrs);
  return {inputs[0]};
}

std::vector<TensorType> infer_print(const std::vector<TensorType>& inputs, const Attrs& attrs,
                                    const Bodies&) {
  if (inputs.empty() || !is_token(inputs[0])) {
    fail(BALLAST_INVALID_ARGUMENT, "[print] input 0 is {}, expected a token",
         inputs.empty() ? "missing" : to_string(inputs[0]));
  }
  infer("print", inputs, attrs);  // the plugin checks the rest
  return {token_type()};
}

// Prints have no derivative and no part in that of others.
std::vector<Tensor> vjp_print(const VjpArgs& args) { return vjp_rules::zero(args); }
std::vector<Tensor> jvp_print(const JvpArgs& args) {
  return std::vector<Tensor>(args.outputs.size());
}

std::string with_doubled_braces(const std::string& text) {
  std::string result;
  for (char c : text) {
    result += c;
    if (c == '{' || c == '}') result += c;
  }
  return result;
}

}  // namespace

const Parameter& io_token() {
  // Its value never changes, so threads share it without a lock.
  static const Parameter token(Tensor::of_buffer(token_type(), nullptr), "io",
                               /*requires_grad=*/false);
  return token;
}

std::vector<Primitive> print_primitives() {
  Primitive print{"print", vjp_print, jvp_print};
  print.infer = infer_print;
  print.run = run_print;
  return {print};
}

namespace ops {

void print_items(const std::vector<PrintItem>& items) {
  std::string text;
  std::vector<Tensor> inputs{io_token().value()};
  for (const PrintItem& item : items) {
    if (item.is_text()) text += with_doubled_braces(item.text()) + "\n";
    for (const Tensor& tensor : item.tensors()) {
      text += "{}\n";
      inputs.push_back(tensor);
    }
  }
  text.pop_back();  // the plugin ends the last line
  io_token().assign(apply_primitive("print", inputs, {{"text", text}}, items[0].where())[0]);
}

}  // namespace ops

}  // namespace ballast
