// Tensor: an immutable dense row-major array, shared by its copies. Its value lies on the device,
// in host memory (a batch: handed to the device where it is used), or does not exist yet (it stands
// for a variable of a function being traced). Device work is asynchronous; reading a value waits.
// Threads may share tensors; only donating one is for a thread that alone uses it.
#pragma once

#include "frontend/backend/backend.h"
#include "frontend/tensor/error.h"
#include "frontend/tensor/types.h"

#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace ballast {

struct Variable;
class Trace;

class Tensor {
 public:
  Tensor() = default;

  // A copy on the device.
  template <class T>
  static Tensor from_host(const std::vector<T>& values, Shape shape, Where where = Where::here()) {
    return on_host(values, std::move(shape), where).to_device();
  }
  // Converted on the host first, e.g. floats to bf16 (to nearest even).
  template <class T>
  static Tensor from_host(const std::vector<T>& values, Shape shape, DType dtype,
                          Where where = Where::here()) {
    return on_host(values, std::move(shape), where).as_host(dtype).to_device();
  }
  // A value kept in host memory; jit and sink take it from there within their one call.
  template <class T>
  static Tensor on_host(const std::vector<T>& values, Shape shape, Where where = Where::here());
  // As above; `type` describes the bytes.
  static Tensor on_host_bytes(std::vector<uint8_t> bytes, TensorType type);

  static Tensor zeros(const Shape& shape, DType dtype = DType::kF32);
  static Tensor ones(const Shape& shape, DType dtype = DType::kF32);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::kF32);
  static Tensor scalar(double value, DType dtype = DType::kF32);
  static Tensor whole(int64_t value, DType dtype);  // a scalar; exact where an i64 is meant

  bool defined() const { return node_ != nullptr; }
  const TensorType& type() const;
  const SharedType& shared_type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  int64_t elements() const { return type().elements(); }

  // The elements; waits for them. The type must fit the dtype (uint8_t reads bool too, float reads
  // bf16 and f16).
  template <class T>
  std::vector<T> to_host(Where where = Where::here()) const;
  template <class T>
  T item(Where where = Where::here()) const;   // of a tensor with one element
  std::vector<uint8_t> to_host_bytes() const;  // elements as they lie in memory
  Tensor to_device() const;                    // itself if it is there
  void sync() const;                           // waits until the value is computed
  std::string to_string() const;               // "f32[2, 2] [[1, 2], [3, 4]]"

  // For the frontend's own layers.
  bool is_traced() const;
  bool is_on_host() const;
  const void* host_data() const;  // of a host tensor, else null
  bool has_buffer() const;        // on the current device, without uploading
  BufferPtr buffer() const;       // uploads a host tensor once
  // The buffer of a value that lies on the device, for as long as the tensor lives; null for
  // others.
  const Buffer* resident() const;
  static Tensor of_buffer(TensorType type, BufferPtr buffer);
  static Tensor of_buffer(SharedType type, BufferPtr buffer);
  static Tensor of_variable(std::shared_ptr<const Variable> variable, std::shared_ptr<Trace> trace);
  const std::shared_ptr<const Variable>& variable() const;          // of a traced tensor, else null
  const std::shared_ptr<Trace>& owner() const;                      // the trace it belongs to
  void check_live() const;                                          // throws if it was donated
  bool is_same(const Tensor& o) const { return node_ == o.node_; }  // one tensor, not its equal
  // buffer(), to be written over: a copy of it if anyone else holds its value.
  BufferPtr buffer_to_donate() const;
  // Its memory is another's from now on, and reading it, here or through a copy, an error. `by`
  // says what took it: "argument 0 of the function jitted at train.cpp:12"; `where`: the call.
  void donate(const std::shared_ptr<const std::string>& by, const Where& where) const;

 private:
  struct Node;
  static Tensor of_host(std::vector<uint8_t> bytes, SharedType type);
  explicit Tensor(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  const Node& node() const;  // throws for an undefined tensor
  const Node& live() const;  // ... and for one that was donated
  // The elements in host memory, ready to be read as `wanted`.
  std::vector<uint8_t> host_bytes_as(DType wanted, const Where& where) const;
  Tensor as_host(DType dtype) const;  // converted, in host memory

  std::shared_ptr<Node> node_;
};

std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

std::vector<TensorType> types_of(const std::vector<Tensor>& tensors);

template <class T>
Tensor Tensor::on_host(const std::vector<T>& values, Shape shape, Where where) {
  TensorType type{dtype_of<T>(), std::move(shape)};
  if (static_cast<int64_t>(values.size()) != type.elements()) {
    fail(BALLAST_INVALID_ARGUMENT, "[from_host] {} values given for {} (at {})", values.size(),
         ballast::to_string(type), ballast::to_string(where));
  }
  std::vector<uint8_t> bytes(type.bytes());
  if constexpr (std::is_same_v<T, bool>) {
    for (size_t i = 0; i < values.size(); ++i) bytes[i] = values[i];
  } else if (!bytes.empty()) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  return on_host_bytes(std::move(bytes), std::move(type));
}

template <class T>
std::vector<T> Tensor::to_host(Where where) const {
  std::vector<uint8_t> bytes = host_bytes_as(dtype_of<T>(), where);
  if constexpr (std::is_same_v<T, bool>) {
    return std::vector<bool>(bytes.begin(), bytes.end());
  } else {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
}

template <class T>
T Tensor::item(Where where) const {
  if (elements() != 1) {
    fail(BALLAST_INVALID_ARGUMENT, "[item] the tensor is {}, expected one element (at {})",
         ballast::to_string(type()), ballast::to_string(where));
  }
  return to_host<T>(where)[0];
}

}  // namespace ballast
