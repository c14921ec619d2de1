// CLBlast on the same OpenCL device: products and transposes, on buffers of its own queue.
#include "bench/rivals/worker.h"
#include "device/device.h"

#include <clblast.h>

#include <memory>
#include <stdexcept>

namespace ballast::bench {
namespace {

const device::DevicePtr& opened() {
  static const auto* made = new device::DevicePtr(device::Device::open("", {}));
  return *made;
}

cl_command_queue queue() {
  static cl_command_queue made =
      clCreateCommandQueueWithProperties(opened()->context(), opened()->id(), nullptr, nullptr);
  return made;
}

class Memory {
 public:
  explicit Memory(size_t elements)
      : size_(elements * sizeof(float)),
        mem_(clCreateBuffer(opened()->context(), CL_MEM_READ_WRITE, size_, nullptr, nullptr)) {}
  explicit Memory(const std::vector<float>& values) : Memory(values.size()) {
    clEnqueueWriteBuffer(queue(), mem_, CL_TRUE, 0, size_, values.data(), 0, nullptr, nullptr);
  }
  ~Memory() { clReleaseMemObject(mem_); }
  Memory(const Memory&) = delete;

  cl_mem mem() const { return mem_; }
  std::vector<float> read() const {
    std::vector<float> values(size_ / sizeof(float));
    clEnqueueReadBuffer(queue(), mem_, CL_TRUE, 0, size_, values.data(), 0, nullptr, nullptr);
    return values;
  }

 private:
  size_t size_;
  cl_mem mem_;
};
using MemoryPtr = std::shared_ptr<Memory>;

MemoryPtr input(const Case& c, size_t number) {
  return std::make_shared<Memory>(values_of(c.inputs[number], number));
}

Variant variant(const std::function<clblast::StatusCode()>& call, const MemoryPtr& y) {
  const auto run = [call](int count) {
    for (int i = 0; i < count; ++i) {
      const clblast::StatusCode status = call();
      if (status != clblast::StatusCode::kSuccess) {
        throw std::runtime_error("CLBlast's status " + std::to_string(static_cast<int>(status)));
      }
    }
    clFinish(queue());
  };
  return {"clblast", run, [y] { return std::vector<std::vector<float>>{y->read()}; }};
}

clblast::Transpose flag(bool is_transposed) {
  return is_transposed ? clblast::Transpose::kYes : clblast::Transpose::kNo;
}

std::vector<Variant> matmul(const Case& c) {
  // It has no epilogues; a product with one is left to those that do.
  if (c.inputs.size() != 2) return {};
  const auto &a_shape = c.inputs[0].shape, &b_shape = c.inputs[1].shape;
  const bool ta = int_of(c, "transpose_a") != 0, tb = int_of(c, "transpose_b") != 0;
  const size_t k = a_shape[a_shape.size() - (ta ? 2 : 1)],
               n = b_shape[b_shape.size() - (tb ? 2 : 1)];
  const size_t batch = b_shape.size() > 2 ? c.inputs[1].elements() / (k * n) : 1;
  const size_t m = c.inputs[0].elements() / (batch * k);
  const MemoryPtr a = input(c, 0), b = input(c, 1), y = std::make_shared<Memory>(batch * m * n);
  const auto call = [=] {
    cl_command_queue q = queue();
    return clblast::GemmStridedBatched<float>(
        clblast::Layout::kRowMajor, flag(ta), flag(tb), m, n, k, 1.0f, a->mem(), 0, ta ? m : k,
        m * k, b->mem(), 0, tb ? k : n, k * n, 0.0f, y->mem(), 0, n, m * n, batch, &q);
  };
  const auto single = [=] {
    cl_command_queue q = queue();
    return clblast::Gemm<float>(clblast::Layout::kRowMajor, flag(ta), flag(tb), m, n, k, 1.0f,
                                a->mem(), 0, ta ? m : k, b->mem(), 0, tb ? k : n, 0.0f, y->mem(), 0,
                                n, &q);
  };
  if (batch > 1) return {variant(call, y)};
  return {variant(single, y)};
}

std::vector<Variant> transpose(const Case& c) {
  if (ints_of(c, "perm") != std::vector<int64_t>{1, 0} || c.inputs[0].dtype != "f32") return {};
  const size_t rows = c.inputs[0].shape[0], columns = c.inputs[0].shape[1];
  const MemoryPtr x = input(c, 0), y = std::make_shared<Memory>(rows * columns);
  const auto call = [=] {
    cl_command_queue q = queue();
    return clblast::Omatcopy<float>(clblast::Layout::kRowMajor, clblast::Transpose::kYes, rows,
                                    columns, 1.0f, x->mem(), 0, columns, y->mem(), 0, rows, &q);
  };
  return {variant(call, y)};
}

}  // namespace
}  // namespace ballast::bench

int main() {
  using namespace ballast::bench;
  const std::string version = "on " + opened()->info().platform;
  return serve("clblast", version, [](const Case& c) -> std::vector<Variant> {
    if (c.op == "matmul") return matmul(c);
    if (c.op == "transpose") return transpose(c);
    return {};
  });
}
