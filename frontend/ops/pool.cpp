#include "frontend/ops/pool.h"

#include "frontend/ops/call.h"
#include "frontend/ops/matmul.h"
#include "frontend/ops/reduce.h"
#include "frontend/ops/shape.h"

namespace ballast::ops {

namespace {

Attrs pool_attrs(const char* op, const Tensor& x, std::vector<int64_t> kernel,
                 const Window2d& window) {
  if (kernel.size() == 1) kernel.push_back(kernel[0]);
  if (kernel.size() != 2) {
    fail(BALLAST_INVALID_ARGUMENT, "[{}] kernel_size is {}, expected one or two numbers", op,
         ballast::to_string(kernel));
  }
  Attrs attrs = window_attrs(op, window, x.shape(), kernel[0], kernel[1]);
  attrs.emplace_back("kernel_size", kernel);
  return attrs;
}

// The matrix [extent, count] that averages over the windows of adaptive pooling.
Tensor averaging_matrix(int64_t extent, int64_t count) {
  std::vector<float> matrix(static_cast<size_t>(extent * count), 0.0f);
  for (int64_t i = 0; i < count; ++i) {
    int64_t begin = i * extent / count, end = ((i + 1) * extent + count - 1) / count;
    for (int64_t at = begin; at < end; ++at) {
      matrix[static_cast<size_t>(at * count + i)] = 1.0f / static_cast<float>(end - begin);
    }
  }
  return Tensor::on_host(matrix, {extent, count});
}

}  // namespace

Tensor max_pool2d(const Operand& x, const std::vector<int64_t>& kernel_size,
                  const Window2d& window) {
  Tensor tensor = x.tensor();
  return apply_primitive("max_pool2d", {tensor},
                         pool_attrs("max_pool2d", tensor, kernel_size, window), x.where())[0];
}

Tensor avg_pool2d(const Operand& x, const std::vector<int64_t>& kernel_size, const Window2d& window,
                  bool count_include_pad) {
  Tensor tensor = x.tensor();
  Attrs attrs = pool_attrs("avg_pool2d", tensor, kernel_size, window);
  attrs.emplace_back("count_include_pad", int64_t{count_include_pad});
  return apply_primitive("avg_pool2d", {tensor}, attrs, x.where())[0];
}

Tensor adaptive_avg_pool2d(const Operand& x, const std::vector<int64_t>& output_size) {
  CallScope scope(x.where());
  Tensor tensor = x.tensor();
  const Shape& shape = tensor.shape();
  if (shape.size() != 4 || output_size.size() != 2 || output_size[0] < 1 || output_size[1] < 1 ||
      shape[2] < 1 || shape[3] < 1) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[adaptive_avg_pool2d] input is {}, output_size {}; expected planes with elements and two "
         "extents of at least 1",
         ballast::to_string(tensor.type()), ballast::to_string(output_size));
  }
  int64_t h = output_size[0], w = output_size[1];
  if (h == 1 && w == 1) return reduce_mean(tensor, {2, 3}, true);
  if (shape[2] % h == 0 && shape[3] % w == 0) {
    Window2d window;
    window.stride = {shape[2] / h, shape[3] / w};
    return avg_pool2d(tensor, window.stride, window);
  }
  Tensor across = matmul(tensor, averaging_matrix(shape[3], w));
  Tensor down = matmul(transpose(across, {0, 1, 3, 2}), averaging_matrix(shape[2], h));
  return transpose(down, {0, 1, 3, 2});
}

}  // namespace ballast::ops
