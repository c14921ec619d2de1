#include "tests/reference.h"

#include "tests/op_table.h"

#include <cmath>
#include <stdexcept>
#include <unordered_map>

namespace ballast::tests {

HostArray to_array(const Tensor& tensor) {
  HostArray array{tensor.type(), {}};
  std::vector<uint8_t> bytes = tensor.to_host_bytes();
  uint64_t size = size_of(tensor.dtype());
  for (size_t at = 0; at < bytes.size(); at += size) {
    array.values.push_back(decode(bytes.data() + at, tensor.dtype()));
  }
  return array;
}

Tensor to_tensor(const HostArray& array) {
  const uint64_t size = size_of(array.type.dtype);
  std::vector<uint8_t> bytes(array.values.size() * size);
  for (size_t i = 0; i < array.values.size(); ++i) {
    encode(array.values[i], array.type.dtype, &bytes[i * size]);
  }
  return Tensor::on_host_bytes(std::move(bytes), array.type).to_device();
}

std::vector<HostArray> reference_eval(const Program& program,
                                      const std::vector<HostArray>& inputs) {
  std::unordered_map<const Variable*, HostArray> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[program.inputs[i].get()] = inputs[i];
  for (const auto& captured : program.captured) {
    values[captured.var.get()] = to_array(captured.value);
  }
  for (const auto& state : program.states) {
    values[state.var.get()] = to_array(state.parameter.value());
  }
  auto value_of = [&](const Atom& atom) {
    return atom.var ? values.at(atom.var.get()) : to_array(atom.literal);
  };
  for (const Equation& equation : program.equations) {
    std::vector<HostArray> arguments;
    for (const Atom& atom : equation.inputs) arguments.push_back(value_of(atom));
    std::vector<TensorType> types;
    for (const Var& var : equation.outputs) types.push_back(var->type);
    auto results = reference_op(equation.primitive, arguments, equation.attrs, types);
    for (size_t i = 0; i < results.size(); ++i) {
      values[equation.outputs[i].get()] = std::move(results[i]);
    }
  }
  std::vector<HostArray> outputs;
  for (const Atom& atom : program.outputs) outputs.push_back(value_of(atom));
  return outputs;
}

std::vector<HostArray> reference_op(const std::string& name, const std::vector<HostArray>& inputs,
                                    const Attrs& attrs,
                                    const std::vector<TensorType>& output_types) {
  auto row = reference_ops().find(name);
  if (row == reference_ops().end()) throw std::runtime_error("no reference for op " + name);
  std::vector<HostArray> outputs;
  for (const TensorType& type : output_types) {
    outputs.push_back({type, std::vector<double>(static_cast<size_t>(type.elements()))});
  }
  row->second(inputs, attrs, outputs);
  return outputs;
}

std::vector<TensorType> expected_types(const std::string& name,
                                       const std::vector<HostArray>& inputs, const Attrs& attrs) {
  std::vector<TensorType> types;
  for (const HostArray& input : inputs) types.push_back(input.type);
  return op_families().types.at(name)(types, attrs);
}

double rounded(double value, DType dtype) { return decode(encode(value, dtype).data(), dtype); }

std::string difference(const HostArray& actual, const HostArray& expected, double rtol, double atol,
                       Zeros zeros) {
  if (actual.type != expected.type) {
    return fmt::format("the result is {}, expected {}", to_string(actual.type),
                       to_string(expected.type));
  }
  for (size_t i = 0; i < actual.values.size(); ++i) {
    double a = actual.values[i];
    double e = expected.values[i];
    const bool is_real = is_float(expected.type.dtype);
    const double nearest = is_real ? rounded(e, expected.type.dtype) : e;
    if (std::isinf(nearest)) e = nearest;
    bool is_same = (std::isnan(a) && std::isnan(e)) || a == nearest;
    if (zeros == Zeros::kSigned && is_real && a == 0 && nearest == 0 &&
        std::signbit(a) != std::signbit(nearest)) {
      return fmt::format("element {} of {} is {}, expected {}", i, to_string(expected.type), a,
                         nearest);
    }
    if (!is_same && !(std::abs(a - e) <= atol + rtol * std::abs(e))) {
      return fmt::format("element {} of {} is {:.9g}, expected {:.9g}", i, to_string(expected.type),
                         a, e);
    }
  }
  return {};
}

}  // namespace ballast::tests
