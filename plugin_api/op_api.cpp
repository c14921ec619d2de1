#include "device/short_array.h"
#include "plugin_api/api.h"
#include "plugin_api/guard.h"
#include "plugin_api/objects.h"
#include "plugin_api/structs.h"

namespace ballast::plugin_api {

namespace {

using device::Code;
using device::fail;

graph::OpCall to_call(const ballast_op_call* given) {
  const ballast_op_call call = read_struct(given, "call");
  const std::string name = to_string(call.name);
  std::vector<kernels::TensorType> inputs;
  for (const ballast_tensor_desc& desc :
       read_array(call.inputs, call.input_count, call.input_stride, "inputs")) {
    inputs.push_back(to_type(desc, name.c_str()));
  }
  return graph::make_call(name, to_attrs(call), std::move(inputs));
}

ballast_error* op_count(uint64_t* out_count) {
  return guard_out(out_count, "out_count", [] { return uint64_t{graph::list_ops().size()}; });
}

ballast_error* op_name(uint64_t index, ballast_str* out_name) {
  return guard_out(out_name, "out_name", [&] {
    const auto& ops = graph::list_ops();
    if (index >= ops.size()) fail(Code::kNotFound, "[op_name] op {} of {}", index, ops.size());
    return to_str(ops[index]->name);
  });
}

ballast_error* op_infer(const ballast_op_call* call, ballast_tensor_desc* out_descs,
                        uint64_t capacity, uint64_t* out_count) {
  return guard_out(out_count, "out_count", [&] {
    const graph::OpCall op_call = to_call(call);
    const auto outputs = graph::infer(op_call);
    if (outputs.size() > capacity) {
      fail(Code::kInvalidArgument, "[{}] has {} outputs, out_descs holds {}", op_call.op->name,
           outputs.size(), capacity);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      // The caller's elements may be larger than ours.
      const uint64_t offset = i == 0 ? 0 : i * out_descs->struct_size;
      auto* desc = reinterpret_cast<char*>(out_descs) + offset;
      write_struct(reinterpret_cast<ballast_tensor_desc*>(desc), to_desc(outputs[i]), "out_descs");
    }
    return uint64_t{outputs.size()};
  });
}

ballast_error* op_prepare(ballast_device* device, const ballast_op_call* call,
                          ballast_op** out_op) {
  return guard_out(out_op, "out_op", [&] {
    return Ops::instance().add(std::make_shared<graph::PreparedOp>(
        Devices::instance().get(device, "device"), to_call(call)));
  });
}

ballast_error* op_info(ballast_op* op, ballast_op_info* out_info) {
  return guard_call([&] {
    const auto object = Ops::instance().get(op, "op");
    ballast_op_info out{};
    out.input_count = object->call().inputs.size();
    out.output_count = object->outputs().size();
    out.workspace_size = object->plan().workspace_bytes;
    out.launch_count = object->plan().launches.size();
    write_struct(out_info, out, "out_info");
  });
}

ballast_error* op_launch(ballast_op* op, ballast_stream* stream, const ballast_launch* launch) {
  return guard_call([&] {
    const auto object = Ops::instance().get(op, "op");
    const auto on = Streams::instance().get(stream, "stream");
    const ballast_launch given = read_struct(launch, "launch");
    const std::string& name = object->call().op->name;
    if (given.input_count != object->call().inputs.size() ||
        given.output_count != object->outputs().size()) {
      fail(Code::kInvalidArgument, "[{}] takes {} inputs and {} outputs, got {} and {}", name,
           object->call().inputs.size(), object->outputs().size(), given.input_count,
           given.output_count);
    }
    const bool has_workspace = object->plan().workspace_bytes > 0;
    const uint64_t operands = given.input_count + given.output_count;
    device::ShortArray<device::BufferPtr> buffers(operands + has_workspace);
    Buffers& table = Buffers::instance();
    table.get_all(given.inputs, given.input_count, "input buffer", buffers.data());
    table.get_all(given.outputs, given.output_count, "output buffer",
                  buffers.data() + given.input_count);
    if (has_workspace) buffers[operands] = table.get(given.workspace, "workspace");
    count_host_call(on->device());
    object->launch(*on, buffers.data(), buffers.size());
  });
}

ballast_error* op_release(ballast_op* op) {
  return guard_call([&] { Ops::instance().release(op, "op"); });
}

}  // namespace

const ballast_op_api kOpApi = {sizeof(ballast_op_api),
                               op_count,
                               op_name,
                               op_infer,
                               op_prepare,
                               op_info,
                               op_launch,
                               op_release};

}  // namespace ballast::plugin_api
