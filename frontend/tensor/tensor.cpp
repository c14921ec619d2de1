#include "frontend/tensor/tensor.h"

#include "frontend/ops/ops.h"
#include "frontend/program/program.h"
#include "frontend/program/trace.h"

#include <algorithm>
#include <array>
#include <mutex>

namespace ballast {

struct Tensor::Node {
  // What took its memory, and where.
  struct Donation {
    std::shared_ptr<const std::string> by;
    Where where;
  };
  SharedType type;
  bool is_on_host = false;
  std::vector<uint8_t> host;
  BufferPtr buffer;
  Var variable;
  std::shared_ptr<Trace> owner;
  std::unique_ptr<const Donation> donation;
};

namespace {

std::mutex upload_mutex;

// One for all numbers of a dtype: ops are found by the types they are given (op_cache.h).
const SharedType& scalar_type(DType dtype) {
  static const auto types = [] {
    std::array<SharedType, BALLAST_BOOL + 1> made;
    for (size_t i = 0; i < made.size(); ++i) {
      made[i] = std::make_shared<const TensorType>(TensorType{static_cast<DType>(i), {}});
    }
    return made;
  }();
  return types.at(static_cast<size_t>(dtype));
}

void check_extents(const char* name, const TensorType& type) {
  if (std::all_of(type.shape.begin(), type.shape.end(), [](int64_t n) { return n >= 0; })) return;
  fail(BALLAST_INVALID_ARGUMENT, "[{}] {} has a negative extent", name, to_string(type));
}

}  // namespace

Tensor Tensor::on_host_bytes(std::vector<uint8_t> bytes, TensorType type) {
  check_extents("on_host", type);
  if (bytes.size() != type.bytes()) {
    fail(BALLAST_INVALID_ARGUMENT, "[on_host] {} bytes given, {} needs {}", bytes.size(),
         ballast::to_string(type), type.bytes());
  }
  return of_host(std::move(bytes), std::make_shared<const TensorType>(std::move(type)));
}

Tensor Tensor::of_host(std::vector<uint8_t> bytes, SharedType type) {
  auto node = std::make_shared<Node>();
  node->type = std::move(type);
  node->is_on_host = true;
  node->host = std::move(bytes);
  return Tensor(std::move(node));
}

Tensor Tensor::of_buffer(TensorType type, BufferPtr buffer) {
  return of_buffer(std::make_shared<const TensorType>(std::move(type)), std::move(buffer));
}

Tensor Tensor::of_buffer(SharedType type, BufferPtr buffer) {
  auto node = std::make_shared<Node>();
  node->type = std::move(type);
  node->buffer = std::move(buffer);
  return Tensor(std::move(node));
}

Tensor Tensor::of_variable(std::shared_ptr<const Variable> variable, std::shared_ptr<Trace> trace) {
  auto node = std::make_shared<Node>();
  // The variable owns its type and the node owns the variable.
  node->type = SharedType(variable, &variable->type);
  node->variable = std::move(variable);
  node->owner = std::move(trace);
  return Tensor(std::move(node));
}

Tensor Tensor::zeros(const Shape& shape, DType dtype) { return full(shape, 0, dtype); }

Tensor Tensor::ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }

Tensor Tensor::full(const Shape& shape, double value, DType dtype) {
  if (shape.empty()) return scalar(value, dtype);
  if (Trace::current()) return ops::broadcast_to(scalar(value, dtype), shape);
  TensorType type{dtype, shape};
  check_extents("full", type);
  BufferPtr buffer = device()->allocate(type.bytes());
  buffer->device()->fill(*buffer, encode(value, dtype));
  return of_buffer(std::move(type), std::move(buffer));
}

Tensor Tensor::scalar(double value, DType dtype) {
  return of_host(encode(value, dtype), scalar_type(dtype));
}

Tensor Tensor::whole(int64_t value, DType dtype) {
  if (dtype != DType::kI64) return scalar(static_cast<double>(value), dtype);
  std::vector<uint8_t> bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return of_host(std::move(bytes), scalar_type(dtype));
}

const Tensor::Node& Tensor::node() const {
  if (!node_) fail(BALLAST_INVALID_ARGUMENT, "[tensor] the tensor is undefined");
  return *node_;
}

const Tensor::Node& Tensor::live() const {
  const Node& self = node();
  if (self.donation) {
    fail(BALLAST_FAILED_PRECONDITION, "[tensor] the {} was donated at {}, as {}",
         ballast::to_string(*self.type), ballast::to_string(self.donation->where),
         *self.donation->by);
  }
  return self;
}

const TensorType& Tensor::type() const { return *node().type; }

const SharedType& Tensor::shared_type() const { return node().type; }

void Tensor::check_live() const { live(); }

bool Tensor::is_traced() const { return node().variable != nullptr; }

bool Tensor::is_on_host() const { return node().is_on_host; }

const void* Tensor::host_data() const { return is_on_host() ? live().host.data() : nullptr; }

const std::shared_ptr<const Variable>& Tensor::variable() const { return node().variable; }

const std::shared_ptr<Trace>& Tensor::owner() const { return node().owner; }

bool Tensor::has_buffer() const {
  const Node& self = live();
  if (!self.is_on_host) return self.buffer != nullptr;
  std::lock_guard lock(upload_mutex);
  return self.buffer && self.buffer->device() == device();
}

const Buffer* Tensor::resident() const {
  const Node& self = live();
  return self.is_on_host ? nullptr : self.buffer.get();
}

BufferPtr Tensor::buffer() const {
  const Node& self = live();
  if (self.variable) {
    fail(BALLAST_FAILED_PRECONDITION,
         "[tensor] a traced {} has no value: it stands for a variable while a function is traced\n"
         "  hint: where its value decides what is computed, use cond, while_loop or ops::select; "
         "to see it, ops::print",
         ballast::to_string(*self.type));
  }
  if (!self.is_on_host) return self.buffer;
  std::shared_ptr<Device> target = device();
  std::lock_guard lock(upload_mutex);
  if (!node_->buffer || node_->buffer->device() != target) {
    if (self.type->elements() == 1) {
      node_->buffer = target->scalar(self.host);
    } else {
      node_->buffer = target->allocate(self.host.size());
      target->upload(*node_->buffer, self.host.data(), self.host.size());
    }
  }
  return self.buffer;
}

BufferPtr Tensor::buffer_to_donate() const {
  buffer();  // uploads
  return is_shared(node_->buffer) ? copy_of(*node_->buffer) : node_->buffer;
}

void Tensor::donate(const std::shared_ptr<const std::string>& by, const Where& where) const {
  node_->donation = std::make_unique<const Node::Donation>(Node::Donation{by, where});
  node_->buffer = nullptr;
  node_->host = {};
}

Tensor Tensor::to_device() const {
  if (!is_on_host()) return *this;
  return of_buffer(shared_type(), buffer());
}

std::vector<uint8_t> Tensor::to_host_bytes() const {
  if (is_on_host()) return live().host;
  BufferPtr source = buffer();
  std::vector<uint8_t> bytes(type().bytes());
  source->device()->download(bytes.data(), *source, bytes.size());
  return bytes;
}

void Tensor::sync() const {
  if (!is_on_host()) buffer()->device()->sync();
}

std::vector<uint8_t> Tensor::host_bytes_as(DType wanted, const Where& where) const {
  return at_line(where, [&] {
    const bool is_narrow = dtype() == DType::kBF16 || dtype() == DType::kF16;
    if (wanted == DType::kF32 && is_narrow) return as_host(wanted).to_host_bytes();
    const bool is_byte = wanted == DType::kU8 && dtype() == DType::kBool;
    if (dtype() != wanted && !is_byte) {
      fail(
          BALLAST_INVALID_ARGUMENT,
          "[to_host] the tensor is {}, asked for as {}\n  hint: to_host and item take the C++ type "
          "of the elements; ops::cast converts them",
          ballast::to_string(type()), name_of(wanted));
    }
    return to_host_bytes();
  });
}

Tensor Tensor::as_host(DType to) const {
  const std::vector<uint8_t> from = to_host_bytes();
  const size_t step = size_of(dtype()), step_to = size_of(to);
  std::vector<uint8_t> converted(from.size() / step * step_to);
  for (size_t i = 0; i < from.size() / step; ++i) {
    encode(decode(from.data() + i * step, dtype()), to, converted.data() + i * step_to);
  }
  return on_host_bytes(std::move(converted), {to, shape()});
}

namespace {

void append_element(std::string& out, const uint8_t* bytes, DType dtype) {
  if (dtype == DType::kI64) {
    int64_t value = 0;
    std::memcpy(&value, bytes, sizeof(value));
    out += std::to_string(value);
  } else if (is_float(dtype)) {
    out += fmt::format("{:g}", decode(bytes, dtype));
  } else {
    out += std::to_string(static_cast<int64_t>(decode(bytes, dtype)));
  }
}

void print(std::string& out, const uint8_t* bytes, const TensorType& type, size_t axis,
           int64_t offset) {
  if (axis == type.shape.size()) {
    append_element(out, bytes + static_cast<uint64_t>(offset) * size_of(type.dtype), type.dtype);
    return;
  }
  constexpr int64_t kShown = 8;  // per axis
  int64_t extent = type.shape[axis];
  out += '[';
  for (int64_t i = 0; i < extent; ++i) {
    if (i > 0) out += ", ";
    if (i == kShown && extent > kShown) {
      out += "...";
      break;
    }
    print(out, bytes, type, axis + 1, offset * extent + i);
  }
  out += ']';
}

}  // namespace

std::string Tensor::to_string() const {
  if (!defined()) return "undefined";
  if (is_traced()) return "traced " + ballast::to_string(type());
  if (node().donation) return "donated " + ballast::to_string(type());
  std::vector<uint8_t> bytes = to_host_bytes();
  std::string text = ballast::to_string(type()) + " ";
  print(text, bytes.data(), type(), 0, 0);
  return text;
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << tensor.to_string();
}

std::vector<TensorType> types_of(const std::vector<Tensor>& tensors) {
  std::vector<TensorType> types;
  types.reserve(tensors.size());
  for (const Tensor& tensor : tensors) types.push_back(tensor.type());
  return types;
}

}  // namespace ballast
