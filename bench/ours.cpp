#include "bench/ours.h"

#include "graph/prepared_op.h"
#include "graph/sink.h"

#include <chrono>
#include <cstring>
#include <numeric>

namespace ballast::bench {

using graph::DType;
using graph::TensorType;

namespace {

device::DeviceOptions& options() {
  static device::DeviceOptions options;
  return options;
}

}  // namespace

const device::DevicePtr& device() {
  // Never destroyed: at exit the OpenCL runtime may be gone before our statics.
  static const auto* opened = new device::DevicePtr(device::Device::open("", options()));
  return *opened;
}

void open_as_gpu() { options().device_class = static_cast<int>(device::DeviceClass::kGpu); }

namespace {

uint16_t half_of(float value) {
  // Within [-1.5, 1.5] and multiples of 2^-24: cutting the mantissa is exact enough for a timing.
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = bits >> 16 & 0x8000, exponent = bits >> 23 & 0xff;
  if (exponent < 113) return static_cast<uint16_t>(sign);
  return static_cast<uint16_t>(sign | (exponent - 112) << 10 | (bits >> 13 & 0x3ff));
}

template <class T>
void convert(const std::vector<float>& values, std::vector<uint8_t>& bytes) {
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

std::vector<uint8_t> encode(DType dtype, const std::vector<float>& values) {
  std::vector<uint8_t> bytes(values.size() * kernels::size_of(dtype));
  switch (dtype) {
    case DType::kF32:
      convert<float>(values, bytes);
      break;
    case DType::kF64:
      convert<double>(values, bytes);
      break;
    case DType::kI32:
      convert<int32_t>(values, bytes);
      break;
    case DType::kI64:
      convert<int64_t>(values, bytes);
      break;
    case DType::kU8:
    case DType::kBool:
      convert<uint8_t>(values, bytes);
      break;
    case DType::kBF16:
    case DType::kF16:
      for (size_t i = 0; i < values.size(); ++i) {
        uint32_t bits;
        std::memcpy(&bits, &values[i], sizeof(bits));
        const uint16_t half =
            dtype == DType::kF16 ? half_of(values[i]) : static_cast<uint16_t>(bits >> 16);
        std::memcpy(bytes.data() + 2 * i, &half, sizeof(half));
      }
      break;
  }
  return bytes;
}

template <class T>
std::vector<float> widen(const std::vector<uint8_t>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<float>(value);
  }
  return values;
}

// Empty for types that no rival is compared in.
std::vector<float> decode(DType dtype, const std::vector<uint8_t>& bytes) {
  switch (dtype) {
    case DType::kF32:
      return widen<float>(bytes);
    case DType::kF64:
      return widen<double>(bytes);
    case DType::kI32:
      return widen<int32_t>(bytes);
    case DType::kI64:
      return widen<int64_t>(bytes);
    case DType::kU8:
    case DType::kBool:
      return widen<uint8_t>(bytes);
    case DType::kBF16:
    case DType::kF16:
      return {};
  }
  return {};
}

class OpRun final : public Ours {
 public:
  explicit OpRun(const Case& c)
      : Ours(c), op_(device(), graph::make_call(c.op, c.attrs, input_types_)) {
    allocate(op_.outputs());
    operands_ = inputs_;
    operands_.insert(operands_.end(), outputs_.begin(), outputs_.end());
    if (const uint64_t bytes = op_.plan().workspace_bytes; bytes > 0) {
      operands_.push_back(device::Buffer::create(device(), bytes));
    }
  }

 private:
  void submit(int count) override {
    device::Stream& stream = device()->default_stream();
    for (int i = 0; i < count; ++i) op_.launch(stream, operands_.data(), operands_.size());
  }

  graph::PreparedOp op_;
  std::vector<device::BufferPtr> operands_;
};

graph::ValueId add_scalar(graph::Graph& graph, double value) {
  const auto scalar = static_cast<float>(value);
  auto bytes = std::make_shared<std::vector<uint8_t>>(sizeof(scalar));
  std::memcpy(bytes->data(), &scalar, sizeof(scalar));
  return graph.add_constant({DType::kF32, {}}, bytes);
}

graph::Graph graph_of(const std::vector<TensorType>& inputs, const std::vector<Step>& steps) {
  graph::Graph graph;
  std::vector<graph::ValueId> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    values.push_back(graph.add_input("x" + std::to_string(i), inputs[i]));
  }
  std::vector<bool> is_read(inputs.size(), true);  // inputs are no results
  for (const Step& step : steps) {
    std::vector<graph::ValueId> operands, results;
    for (uint32_t number : step.inputs) {
      operands.push_back(values.at(number));
      is_read[number] = true;
    }
    if (step.op == "constant") {
      results = {add_scalar(graph, std::get<double>(step.attrs.at("value")))};
    } else {
      results = graph.add_node(step.op, step.attrs, operands);
    }
    values.insert(values.end(), results.begin(), results.end());
    is_read.resize(values.size(), false);
  }
  std::vector<graph::ValueId> outputs;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!is_read[i]) outputs.push_back(values[i]);
  }
  graph.set_outputs(outputs);
  return graph;
}

class GraphRun final : public Ours {
 public:
  GraphRun(const Case& c, const std::vector<Step>& steps, graph::Level level)
      : Ours(c),
        executable_(device(), graph_of(input_types_, steps), {level, device::Replay::kAuto}) {
    const graph::Graph& graph = executable_.graph();
    allocate(graph.types(graph.outputs()));
    for (const device::BufferPtr& buffer : inputs_) bindings_.push_back({buffer, nullptr});
  }

 private:
  void submit(int count) override {
    for (int i = 0; i < count; ++i) {
      executable_.run(device()->default_stream(), bindings_, outputs_);
    }
  }

  graph::Executable executable_;
  std::vector<graph::InputBinding> bindings_;
};

std::vector<Step> steps_of(const Case& c) {
  if (!c.steps.empty()) return c.steps;
  Step step{c.op, std::vector<uint32_t>(c.inputs.size()), c.attrs};
  std::iota(step.inputs.begin(), step.inputs.end(), 0);
  return {step};
}

device::Replay replay_of_sunk() {
  const bool is_cpu = device()->info().device_class == device::DeviceClass::kCpu;
  return is_cpu ? device::Replay::kStitch : device::Replay::kAuto;
}

class SunkRun final : public Ours {
 public:
  explicit SunkRun(const Case& c)
      : Ours(c),
        sink_(std::make_shared<graph::Executable>(
            device(), graph_of(input_types_, steps_of(c)),
            graph::CompileOptions{graph::Level::kO1, replay_of_sunk()})) {
    const graph::Graph& graph = sink_.executable().graph();
    allocate(graph.types(graph.outputs()));
    for (const device::BufferPtr& buffer : inputs_) from_.push_back({buffer});
    for (const device::BufferPtr& buffer : outputs_) to_.push_back({buffer});
  }

 private:
  void submit(int count) override { sink_.run(device()->default_stream(), count, from_, to_); }

  graph::Sink sink_;
  std::vector<graph::Queue> from_, to_;
};

uint64_t total(const std::vector<TensorType>& types) {
  uint64_t bytes = 0;
  for (const TensorType& type : types) bytes += type.bytes();
  return bytes;
}

}  // namespace

Ours::Ours(const Case& c) {
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Operand& input = c.inputs[i];
    input_types_.push_back({kernels::dtype_named(input.dtype), input.shape});
    const std::vector<uint8_t> bytes = encode(input_types_[i].dtype, values_of(input, i));
    inputs_.push_back(device::Buffer::create(device(), bytes.size()));
    device()->default_stream().write(*inputs_[i], 0, bytes.data(), bytes.size());
  }
}

void Ours::allocate(std::vector<TensorType> outputs) {
  output_types_ = std::move(outputs);
  for (const TensorType& type : output_types_) {
    outputs_.push_back(device::Buffer::create(device(), type.bytes()));
  }
}

double Ours::run(int count) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  submit(count);
  device()->default_stream().sync();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<Checksum> Ours::check() {
  std::vector<Checksum> sums;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    std::vector<uint8_t> bytes(output_types_[i].bytes());
    device()->default_stream().read(bytes.data(), *outputs_[i], 0, bytes.size());
    sums.push_back(checksum_of(decode(output_types_[i].dtype, bytes)));
  }
  return sums;
}

uint64_t Ours::input_bytes() const { return total(input_types_); }
uint64_t Ours::output_bytes() const { return total(output_types_); }

std::unique_ptr<Ours> Ours::of_op(const Case& c) { return std::make_unique<OpRun>(c); }

std::unique_ptr<Ours> Ours::sunk(const Case& c) { return std::make_unique<SunkRun>(c); }

std::unique_ptr<Ours> Ours::of_graph(const Case& c, const std::vector<Step>& steps,
                                     graph::Level level) {
  return std::make_unique<GraphRun>(c, steps, level);
}

}  // namespace ballast::bench
