// Runs plans on the device under test and brings back what they wrote; for tests only.
#pragma once

#include "device/buffer.h"
#include "device/stream.h"
#include "kernels/kernels.h"
#include "kernels/plan/registers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace ballast::kernels::testing {

inline std::string class_name(DeviceClass c) { return c == DeviceClass::kCpu ? "cpu" : "gpu"; }

inline bool is_simulated() {
  static const char* device = std::getenv("BALLAST_DEVICE");
  return device != nullptr && std::string(device) == "oclgrind";
}

inline const device::DevicePtr& test_device() {
  device::DeviceOptions options;
  // The simulator sees accesses outside of a driver's block, and its detector of races goes over
  // every byte of all of them after each launch: with no room for large blocks, buffers have blocks
  // of their own.
  if (is_simulated()) options.memory_limit = 1 << 20;
  // Never destroyed: at exit the OpenCL runtime may be gone before our statics.
  static const auto* device = new device::DevicePtr(device::Device::open("", options));
  return *device;
}

// Whose kernels the device under test runs. A GPU those of its class alone: the others' work-groups
// of one item, with vectors and stacks of a CPU's, would take it minutes. The simulator, which says
// that it is both, all.
inline const std::vector<DeviceClass>& device_classes() {
  const device::DeviceInfo& info = test_device()->info();
  static const std::vector<DeviceClass> classes =
      info.device_class == DeviceClass::kGpu && info.platform != "Oclgrind"
          ? std::vector<DeviceClass>{DeviceClass::kGpu}
          : std::vector<DeviceClass>{DeviceClass::kCpu, DeviceClass::kGpu};
  return classes;
}

// Whether tests take kernels of other CPUs too. A second compiler, which is asked whether the first
// one's habits became our assumptions, need not see all.
inline bool tests_other_cpus() { return test_device()->info().is_pocl() || is_simulated(); }
// Those that this CPU does not have.
inline int64_t other_registers() {
  return has_wide_registers() ? kNarrowRegisters : kWideRegisters;
}
// The registers whose kernels they take.
inline std::vector<int64_t> tested_registers() {
  if (!tests_other_cpus()) return {vector_register_bytes()};
  return {kWideRegisters, kNarrowRegisters};
}

// Some kernels of CPUs ask for more than a GPU's work-group may have.
inline bool runs_cpu_class() { return device_classes().front() == DeviceClass::kCpu; }

struct HostTensor {
  TensorType type;
  std::vector<uint8_t> bytes;

  explicit HostTensor(TensorType t) : type(std::move(t)), bytes(type.bytes()) {}
  template <class T>
  HostTensor(DType dtype, Shape shape, const std::vector<T>& values)
      : type{dtype, std::move(shape)}, bytes(values.size() * sizeof(T)) {
    EXPECT_EQ(bytes.size(), type.bytes());
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  template <class T>
  std::vector<T> as() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

inline HostTensor f32(Shape shape, const std::vector<float>& values) {
  return {DType::kF32, std::move(shape), values};
}
inline HostTensor i32(Shape shape, const std::vector<int32_t>& values) {
  return {DType::kI32, std::move(shape), values};
}

inline int64_t elements(const Shape& shape) { return TensorType{DType::kF32, shape}.elements(); }

// The simulator runs some hundred thousand instructions a second: cases that compute many elements,
// all their runs taken together, are left out there.
inline bool is_too_large(int64_t n) { return n > 5000 && is_simulated(); }

// Where compiling takes many times as long: tests that compile a kernel for each case take fewer.
inline bool compiles_slowly() { return BALLAST_IS_SANITIZED || is_simulated(); }

// What a step of a chain reads.
inline FusedStep::Ref input(uint32_t index) { return {true, index}; }
inline FusedStep::Ref step(uint32_t index) { return {false, index}; }

inline float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

inline std::vector<float> special_values() {
  using L = std::numeric_limits<float>;
  return {0.0f,     -0.0f,         1.0f,           -1.0f,          0.5f,     -2.5f,
          3.0f,     L::infinity(), -L::infinity(), L::quiet_NaN(), L::min(), L::denorm_min(),
          L::max(), -L::max(),     88.7f,          -88.7f,         -100.0f,  1e-3f,
          0.624f,   0.626f,        -0.3f,          9.5f,           1e30f,    1e-30f};
}

inline HostTensor random_f32(const Shape& shape, uint32_t seed, float low = -2, float high = 2) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(elements(shape));
  for (float& v : values) v = uniform(engine);
  return f32(shape, values);
}

inline bool is_of_intel() { return test_device()->info().platform == "Intel(R) OpenCL"; }

// Intel's compiler for CPUs takes six times as long to optimize kernels of GPUs as to translate
// them.
inline device::Launch quickly_compiled(device::Launch launch) {
  const auto [x, y, z] = launch.local;
  if (!is_of_intel() || x * y * z == 1) return launch;
  const device::Source& source = *launch.source;
  launch.source =
      device::make_source(source.text, source.options + " -cl-opt-disable", source.packs_scalars);
  return launch;
}

// It runs some ten million products a second of what it only translated: large cases of kernels of
// GPUs, all of which have smaller ones, are left to PoCL.
inline bool is_too_slow(DeviceClass device_class, int64_t products) {
  return device_class == DeviceClass::kGpu && products > 5000000 && is_of_intel();
}

// Uploads the inputs, runs the plan, reads the outputs. Output i uses the buffer of input
// `in_place[i]` where that is not negative. Every buffer ends in bytes that must stay untouched; on
// the simulator it ends with what it holds, so that reads beyond are seen too.
inline std::vector<HostTensor> run_plan(const Plan& plan, const std::vector<HostTensor>& inputs,
                                        const std::vector<TensorType>& output_types,
                                        const std::vector<int>& in_place = {}) {
  const size_t guard_size = is_simulated() ? 0 : 256;
  constexpr uint8_t kPattern = 0xa5;
  if (is_simulated()) test_device()->pool().trim();
  device::Stream& stream = test_device()->default_stream();
  std::vector<device::BufferPtr> buffers;
  const auto add = [&](std::vector<uint8_t> bytes) {
    bytes.resize(bytes.size() + guard_size, kPattern);
    buffers.push_back(device::Buffer::create(test_device(), bytes.size()));
    stream.write(*buffers.back(), 0, bytes.data(), bytes.size());
  };
  for (const HostTensor& input : inputs) add(input.bytes);
  for (size_t i = 0; i < output_types.size(); ++i) {
    if (i < in_place.size() && in_place[i] >= 0) {
      buffers.push_back(buffers[in_place[i]]);
    } else {
      add(std::vector<uint8_t>(output_types[i].bytes(), kPattern));
    }
  }
  if (plan.workspace_bytes > 0) add(std::vector<uint8_t>(plan.workspace_bytes, kPattern));
  const size_t owned = buffers.size();
  for (const Region& region : plan.regions) {
    buffers.push_back(device::Buffer::view(buffers[owned - 1], region.offset, region.bytes));
  }
  std::vector<device::Buffer*> slots;
  for (const device::BufferPtr& buffer : buffers) slots.push_back(buffer.get());
  for (const device::Launch& launch : plan.launches) {
    stream.submit(quickly_compiled(launch), slots.data(), slots.size());
  }
  std::vector<HostTensor> outputs;
  for (size_t i = 0; i < output_types.size(); ++i) {
    outputs.emplace_back(output_types[i]);
    stream.read(outputs.back().bytes.data(), *slots[inputs.size() + i], 0,
                outputs.back().bytes.size());
  }
  for (size_t i = 0; i < owned; ++i) {
    std::vector<uint8_t> guard(guard_size);
    stream.read(guard.data(), *slots[i], slots[i]->size() - guard_size, guard_size);
    for (uint8_t byte : guard) EXPECT_EQ(byte, kPattern) << "slot " << i << " was overrun";
  }
  return outputs;
}

inline HostTensor run_plan(const Plan& plan, const std::vector<HostTensor>& inputs,
                           const TensorType& output, int in_place = -1) {
  return run_plan(plan, inputs, std::vector<TensorType>{output}, {in_place})[0];
}

// Distance in units of the last place of the float nearest to `expected`; 0 for equal, both NaN, or
// equal infinities.
inline double ulps(float got, double expected) {
  if (std::isnan(got) || std::isnan(expected)) {
    return std::isnan(got) && std::isnan(expected) ? 0 : INFINITY;
  }
  const auto nearest = static_cast<float>(expected);
  if (got == nearest) return 0;
  if (std::isinf(got) || std::isinf(nearest)) return INFINITY;
  const float above = std::nextafterf(std::fabs(nearest), INFINITY);
  return std::fabs(got - expected) / (double{above} - std::fabs(nearest));
}

// Calls f(index of each operand element) for every element of `shape` in row-major order.
inline void for_each_index(const Shape& shape,
                           const std::function<void(const std::vector<int64_t>&)>& f) {
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t n = elements(shape); n > 0; --n) {
    f(index);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

// Where the broadcast element of `shape` lies for an index into the result.
inline int64_t broadcast_offset(const Shape& shape, const std::vector<int64_t>& index) {
  int64_t offset = 0;
  const size_t lead = index.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    offset = offset * shape[d] + (shape[d] == 1 ? 0 : index[lead + d]);
  }
  return offset;
}

inline bool same_launches(const Plan& a, const Plan& b) {
  if (a.launches.size() != b.launches.size() || a.workspace_bytes != b.workspace_bytes) {
    return false;
  }
  for (size_t i = 0; i < a.launches.size(); ++i) {
    const device::Launch &x = a.launches[i], &y = b.launches[i];
    if (x.source->id != y.source->id || x.kernel != y.kernel || x.label != y.label ||
        x.global != y.global || x.local != y.local || x.args.size() != y.args.size()) {
      return false;
    }
    for (size_t k = 0; k < x.args.size(); ++k) {
      if (x.args[k].kind != y.args[k].kind || x.args[k].slot != y.args[k].slot ||
          x.args[k].bits != y.args[k].bits || x.args[k].size != y.args[k].size) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace ballast::kernels::testing
