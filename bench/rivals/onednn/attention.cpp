// Attention through oneDNN's graph API, which fuses the four ops where it can.
#include "bench/rivals/onednn/onednn.h"

#include <oneapi/dnnl/dnnl_graph.hpp>

#include <cmath>
#include <cstring>
#include <memory>

namespace ballast::bench::onednn {
namespace {

namespace dg = dnnl::graph;
using dg::logical_tensor;
using dg::op;

logical_tensor described(size_t id, const Dims& dims) {
  return logical_tensor(id, logical_tensor::data_type::f32, dims,
                        logical_tensor::layout_type::strided);
}

// Tensors lie in the caller's memory.
struct Call {
  std::vector<std::vector<float>> memory;
  std::vector<dg::compiled_partition> partitions;
  std::vector<std::vector<dg::tensor>> inputs, outputs;
};

std::vector<Variant> attention(const Case& c) {
  if (int_of(c, "causal") || c.inputs.size() != 3) return {};
  const Dims q = c.inputs[0].shape, k = c.inputs[1].shape, v = c.inputs[2].shape;
  Dims scores = q, result = q;
  scores[3] = k[2];
  result[3] = v[3];
  enum { kQ, kK, kV, kScale, kScores, kScaled, kWeights, kOut };
  const std::vector<Dims> shapes = {q, k, v, {1}, scores, scores, scores, result};
  std::vector<logical_tensor> tensors;
  for (size_t i = 0; i < shapes.size(); ++i) tensors.push_back(described(i, shapes[i]));

  op first(0, op::kind::MatMul, {tensors[kQ], tensors[kK]}, {tensors[kScores]}, "scores");
  first.set_attr<bool>(op::attr::transpose_b, true);
  op scaling(1, op::kind::Multiply, {tensors[kScores], tensors[kScale]}, {tensors[kScaled]},
             "scale");
  op softmax(2, op::kind::SoftMax, {tensors[kScaled]}, {tensors[kWeights]}, "softmax");
  softmax.set_attr<int64_t>(op::attr::axis, -1);
  op second(3, op::kind::MatMul, {tensors[kWeights], tensors[kV]}, {tensors[kOut]}, "values");
  dg::graph graph(engine().get_kind());
  for (const op& node : {first, scaling, softmax, second}) graph.add_op(node);
  graph.finalize();

  const auto call = std::make_shared<Call>();
  for (size_t i = 0; i < shapes.size(); ++i) {
    int64_t elements = 1;
    for (int64_t extent : shapes[i]) elements *= extent;
    call->memory.emplace_back(elements);
    if (i < 3) call->memory[i] = values_of(c.inputs[i], i);
  }
  call->memory[kScale][0] = 1 / std::sqrt(static_cast<float>(q[3]));
  const auto bind = [&](const std::vector<logical_tensor>& ports) {
    std::vector<dg::tensor> bound;
    for (const logical_tensor& port : ports) {
      bound.emplace_back(tensors[port.get_id()], engine(), call->memory[port.get_id()].data());
    }
    return bound;
  };
  const auto typed = [&](const std::vector<logical_tensor>& ports) {
    std::vector<logical_tensor> known;
    for (const logical_tensor& port : ports) known.push_back(tensors[port.get_id()]);
    return known;
  };
  for (const dg::partition& part : graph.get_partitions()) {
    if (!part.is_supported()) return {};
    const auto inputs = part.get_input_ports(), outputs = part.get_output_ports();
    call->partitions.push_back(part.compile(typed(inputs), typed(outputs), engine()));
    call->inputs.push_back(bind(inputs));
    call->outputs.push_back(bind(outputs));
  }
  Variant variant;
  variant.name = std::string(BALLAST_RIVAL_NAME) + " graph";
  variant.run = [call](int count) {
    for (int i = 0; i < count; ++i) {
      for (size_t p = 0; p < call->partitions.size(); ++p) {
        call->partitions[p].execute(stream(), call->inputs[p], call->outputs[p]);
      }
    }
    stream().wait();
  };
  variant.results = [call] { return std::vector<std::vector<float>>{call->memory[kOut]}; };
  return {variant};
}

}  // namespace

void add_attention(Makers& makers) { makers["scaled_dot_product_attention"] = attention; }

}  // namespace ballast::bench::onednn
