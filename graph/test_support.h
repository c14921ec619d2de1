// Small graphs and host data for the tests of this folder.
#pragma once

#include "device/stream.h"
#include "graph/graph.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace ballast::graph::testing {

inline TensorType f32(Shape shape) { return {DType::kF32, std::move(shape)}; }
inline TensorType i32(Shape shape) { return {DType::kI32, std::move(shape)}; }

template <class T>
std::shared_ptr<const std::vector<uint8_t>> bytes_of(const std::vector<T>& values) {
  auto bytes = std::make_shared<std::vector<uint8_t>>(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes->data(), values.data(), bytes->size());
  return bytes;
}

inline device::DevicePtr test_device() {
  static const device::DevicePtr device = device::Device::open("", {});
  return device;
}

inline device::BufferPtr upload(const std::vector<float>& values) {
  auto buffer = device::Buffer::create(test_device(), values.size() * sizeof(float));
  test_device()->default_stream().write(*buffer, 0, values.data(), buffer->size());
  return buffer;
}

inline std::vector<float> download(const device::BufferPtr& buffer) {
  std::vector<float> values(buffer->size() / sizeof(float));
  test_device()->default_stream().read(values.data(), *buffer, 0, buffer->size());
  return values;
}

// Expects `call` to throw a device::Error whose message contains `part`.
template <class Call>
void expect_error(device::Code code, const std::string& part, Call&& call) {
  try {
    call();
    ADD_FAILURE() << "no error; expected one with: " << part;
  } catch (const device::Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

// The nodes of a graph as "op op op".
std::string ops(const Graph& g);
// A graph's text without its first line.
Graph parse_nodes(const std::string& lines);

// Linear regression with momentum: y = x w^T + b, loss = mean((y - t)^2); as a frontend lowers it.
Graph linear_regression(int64_t batch, int64_t features);

}  // namespace ballast::graph::testing
