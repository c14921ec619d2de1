#include "frontend/modes/eager.h"

#include "frontend/backend/plugin.h"
#include "frontend/program/primitive.h"

namespace ballast {

namespace {

void check_value(const std::string& primitive, size_t i, const Tensor& input) {
  check_defined(primitive, i, input);
  if (input.is_traced()) {
    fail(BALLAST_FAILED_PRECONDITION,
         "[{}] input {} is a traced {} whose trace has ended: it leaked out of a traced function",
         primitive, i, to_string(input.type()));
  }
}

}  // namespace

std::vector<Tensor> run_eagerly(const std::string& primitive, const std::vector<Tensor>& inputs,
                                const Attrs& attrs, const Bodies& bodies) {
  for (size_t i = 0; i < inputs.size(); ++i) check_value(primitive, i, inputs[i]);
  const Primitive* row = find_primitive(primitive);
  if (row && row->run) return row->run(inputs, attrs, bodies);
  if (row && row->is_identity) return {inputs[0]};
  if (row && row->is_view) {
    return {Tensor::of_buffer(infer(primitive, types_of(inputs), attrs)[0], inputs[0].buffer())};
  }
  return launch_op(primitive, inputs, attrs);
}

std::vector<Tensor> launch_op(const std::string& name, const std::vector<Tensor>& inputs,
                              const Attrs& attrs) {
  // On the way of every op: the handles are borrowed, so their memory is kept between calls.
  thread_local std::vector<ballast_buffer*> handles;
  handles.clear();
  std::vector<BufferPtr> uploaded;  // keeps alive what only this call may hold
  std::shared_ptr<Device> current;
  Device* target = nullptr;
  for (const Tensor& input : inputs) {
    const Buffer* buffer = input.resident();
    if (!buffer) buffer = uploaded.emplace_back(input.buffer()).get();
    if (!target) target = buffer->device().get();
    handles.push_back(buffer->handle());
  }
  if (!target) target = (current = device()).get();

  const PreparedOp& op = target->prepared(name, inputs, attrs);
  std::vector<Tensor> outputs;
  outputs.reserve(op.outputs.size());
  for (const SharedType& type : op.outputs) {
    BufferPtr buffer = target->allocate(type->bytes());
    handles.push_back(buffer->handle());
    outputs.push_back(Tensor::of_buffer(type, std::move(buffer)));
  }
  const BufferPtr workspace = op.workspace_size ? target->allocate(op.workspace_size) : nullptr;
  ballast_launch launch = BALLAST_INIT(ballast_launch);
  launch.inputs = handles.data();
  launch.input_count = inputs.size();
  launch.outputs = handles.data() + inputs.size();
  launch.output_count = outputs.size();
  launch.workspace = workspace ? workspace->handle() : nullptr;
  check(plugin().op->op_launch(op.op, target->stream(), &launch));
  return outputs;
}

}  // namespace ballast
