// cond, while and scan as primitives: types, and eager runs on the host.
//   cond   inputs: predicate, operands; bodies: true, false, each operands -> results
//   while  inputs: constants, carry; bodies: condition and body, each of both
//   scan   inputs: constants, carry, stacked xs; body: (constants, carry, xs) -> (carry, ys)
#include "frontend/control_flow/control_flow_rules.h"
#include "frontend/program/primitive.h"
#include "frontend/transforms/vjp_rules.h"

#include <algorithm>

namespace ballast {

namespace {

void check_bodies(const char* name, const Bodies& bodies, size_t count) {
  if (bodies.size() == count) return;
  fail(BALLAST_INVALID_ARGUMENT, "[{}] has {} bodies, got {}: use the function of control_flow.h",
       name, count, bodies.size());
}

void check_operands(const char* name, const Program& body, std::vector<TensorType> operands) {
  if (input_types(body) == operands) return;
  fail(BALLAST_INTERNAL, "[{}] a body takes {} operands of other types than the {} given", name,
       body.inputs.size(), operands.size());
}

void check_predicate(const char* name, const std::vector<TensorType>& types) {
  if (types == std::vector<TensorType>{{DType::kBool, {}}}) return;
  fail(BALLAST_INVALID_ARGUMENT, "[{}] decides by {} tensors, expected one bool[]", name,
       types.size());
}

// The types of a loop's carry before and after its body.
void check_carry(const char* name, const std::vector<TensorType>& before,
                 const std::vector<TensorType>& after) {
  if (before == after) return;
  fail(BALLAST_INVALID_ARGUMENT,
       "[{}] the carry is {} tensors before the body, after it {} or of "
       "other types",
       name, before.size(), after.size());
}

size_t checked_count(const char* name, int64_t count, size_t most) {
  if (count >= 0 && static_cast<uint64_t>(count) <= most) return static_cast<size_t>(count);
  fail(BALLAST_INVALID_ARGUMENT, "[{}] an attribute counts {} of {} inputs", name, count, most);
}

std::vector<TensorType> part_of(const std::vector<TensorType>& types, size_t begin, size_t end) {
  const auto first = types.begin();
  return {first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end)};
}

std::vector<TensorType> infer_cond(const std::vector<TensorType>& inputs, const Attrs&,
                                   const Bodies& bodies) {
  check_bodies("cond", bodies, 2);
  check_predicate("cond", part_of(inputs, 0, std::min<size_t>(inputs.size(), 1)));
  for (const auto& body : bodies) check_operands("cond", *body, {inputs.begin() + 1, inputs.end()});
  std::vector<TensorType> results = output_types(*bodies[0]);
  if (results != output_types(*bodies[1])) {
    fail(BALLAST_INVALID_ARGUMENT, "[cond] the branches return other types");
  }
  return results;
}

std::vector<TensorType> infer_while(const std::vector<TensorType>& inputs, const Attrs& attrs,
                                    const Bodies& bodies) {
  check_bodies("while", bodies, 2);
  for (const auto& body : bodies) check_operands("while", *body, inputs);
  check_predicate("while", output_types(*bodies[0]));
  const size_t consts = checked_count("while", int_attr(attrs, "consts"), inputs.size());
  std::vector<TensorType> results = output_types(*bodies[1]);
  check_carry("while", part_of(inputs, consts, inputs.size()), results);
  return results;
}

std::vector<TensorType> infer_scan(const std::vector<TensorType>& inputs, const Attrs& attrs,
                                   const Bodies& bodies) {
  check_bodies("scan", bodies, 1);
  const size_t consts = checked_count("scan", int_attr(attrs, "consts"), inputs.size());
  const size_t carried = checked_count("scan", int_attr(attrs, "carried"), inputs.size() - consts);
  const int64_t length = ScanForm(attrs).length;
  if (length < 0) fail(BALLAST_INVALID_ARGUMENT, "[scan] the length is {}", length);
  std::vector<TensorType> operands = inputs;
  for (size_t i = consts + carried; i < operands.size(); ++i) {
    Shape& shape = operands[i].shape;
    if (shape.empty() || shape[0] != length) {
      fail(BALLAST_INVALID_ARGUMENT, "[scan] input {} is {}, expected {} steps along axis 0", i,
           to_string(inputs[i]), length);
    }
    shape.erase(shape.begin());
  }
  check_operands("scan", *bodies[0], operands);
  std::vector<TensorType> outputs = output_types(*bodies[0]);
  check_carry("scan", part_of(operands, consts, consts + carried),
              part_of(outputs, 0, std::min(carried, outputs.size())));
  for (size_t i = carried; i < outputs.size(); ++i) {
    outputs[i].shape.insert(outputs[i].shape.begin(), length);
  }
  return outputs;
}

std::vector<Tensor> run_cond(const std::vector<Tensor>& inputs, const Attrs&,
                             const Bodies& bodies) {
  check_bodies("cond", bodies, 2);
  bool is_true = inputs[0].item<bool>();
  return eval(*bodies[is_true ? 0 : 1], {inputs.begin() + 1, inputs.end()});
}

std::vector<Tensor> run_while(const std::vector<Tensor>& inputs, const Attrs& attrs,
                              const Bodies& bodies) {
  check_bodies("while", bodies, 2);
  auto consts = static_cast<std::ptrdiff_t>(int_attr(attrs, "consts"));
  std::vector<Tensor> operands = inputs;
  while (eval(*bodies[0], operands)[0].item<bool>()) {
    std::vector<Tensor> next = eval(*bodies[1], operands);
    std::copy(next.begin(), next.end(), operands.begin() + consts);
  }
  return {operands.begin() + consts, operands.end()};
}

Tensor slice_of(const Tensor& stacked, int64_t number) {
  TensorType type{stacked.dtype(), Shape(stacked.shape().begin() + 1, stacked.shape().end())};
  BufferPtr source = stacked.buffer();
  BufferPtr target = source->device()->allocate(type.bytes());
  source->device()->copy(*target, 0, *source, static_cast<uint64_t>(number) * type.bytes(),
                         type.bytes());
  return Tensor::of_buffer(std::move(type), std::move(target));
}

std::vector<Tensor> run_scan(const std::vector<Tensor>& inputs, const Attrs& attrs,
                             const Bodies& bodies) {
  ScanForm form(attrs);
  std::vector<TensorType> types;
  for (const Tensor& input : inputs) types.push_back(input.type());
  types = infer_scan(types, attrs, bodies);
  std::vector<Tensor> ys;
  for (size_t i = form.carried; i < types.size(); ++i) {
    ys.push_back(Tensor::of_buffer(types[i], device()->allocate(types[i].bytes())));
  }
  std::vector<Tensor> operands = inputs;
  for (int64_t step = 0; step < form.length; ++step) {
    int64_t number = form.is_reverse ? form.length - 1 - step : step;
    for (size_t i = form.consts + form.carried; i < inputs.size(); ++i) {
      operands[i] = slice_of(inputs[i], number);
    }
    std::vector<Tensor> results = eval(*bodies[0], operands);
    for (size_t i = 0; i < form.carried; ++i) operands[form.consts + i] = results[i];
    for (size_t i = 0; i < ys.size(); ++i) {
      const Tensor& y = results[form.carried + i];
      uint64_t bytes = y.type().bytes();
      ys[i].buffer()->device()->copy(*ys[i].buffer(), static_cast<uint64_t>(number) * bytes,
                                     *y.buffer(), 0, bytes);
    }
  }
  auto carry = operands.begin() + static_cast<std::ptrdiff_t>(form.consts);
  std::vector<Tensor> results(carry, carry + static_cast<std::ptrdiff_t>(form.carried));
  results.insert(results.end(), ys.begin(), ys.end());
  return results;
}

}  // namespace

ScanForm::ScanForm(const Attrs& attrs)
    : consts(static_cast<size_t>(int_attr(attrs, "consts"))),
      carried(static_cast<size_t>(int_attr(attrs, "carried"))),
      length(int_attr(attrs, "length")),
      is_reverse(int_attr(attrs, "reverse") != 0) {}

std::vector<Primitive> control_flow_primitives() {
  Primitive cond{"cond", vjp_cond, jvp_cond, vmap_cond};
  cond.infer = infer_cond;
  cond.run = run_cond;
  Primitive loop{"while", vjp_while, jvp_while, vmap_while};
  loop.infer = infer_while;
  loop.run = run_while;
  loop.augment = augment_while;
  Primitive scan{"scan", vjp_scan, jvp_scan, vmap_scan};
  scan.infer = infer_scan;
  scan.run = run_scan;
  scan.augment = augment_scan;
  return {cond, loop, scan};
}

}  // namespace ballast
