#include "frontend/ops/shape.h"

#include "frontend/ops/call.h"
#include "frontend/ops/ops.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace ballast::ops {

namespace {

void check_rank(const char* op, const Shape& shape, const Where& where) {
  if (shape.size() <= BALLAST_MAX_RANK) return;
  refuse(where, "[{}] shape {} has rank {}, at most {} is possible", op, to_string(shape),
         shape.size(), BALLAST_MAX_RANK);
}

}  // namespace

Tensor broadcast_to(const Operand& x, const Shape& shape) {
  check_rank("broadcast_to", shape, x.where());
  return unary("broadcast_to", x, {{"shape", shape}});
}

Tensor reshape(const Operand& x, Shape shape) {
  Tensor tensor = x.tensor();
  check_rank("reshape", shape, x.where());
  auto open = std::find(shape.begin(), shape.end(), -1);
  if (open != shape.end()) {
    *open = 1;
    int64_t rest = TensorType{tensor.dtype(), shape}.elements();
    // Left as -1 where nothing fits, for the op to refuse.
    *open = rest > 0 && tensor.elements() % rest == 0 ? tensor.elements() / rest : -1;
  }
  return apply_primitive("reshape", {tensor}, {{"shape", std::move(shape)}}, x.where())[0];
}

Tensor transpose(const Operand& x, const std::vector<int64_t>& perm) {
  Tensor tensor = x.tensor();
  std::vector<int64_t> order = perm;
  for (int64_t& axis : order) axis = from_start(axis, tensor.rank());
  for (int64_t axis = tensor.rank(); perm.empty() && axis > 0; --axis) order.push_back(axis - 1);
  return apply_primitive("transpose", {tensor}, {{"perm", std::move(order)}}, x.where())[0];
}

Tensor flatten(const Operand& x) {
  Tensor tensor = x.tensor();
  if (tensor.rank() < 1) {
    refuse(x.where(), "[flatten] the input is {}, expected at least rank 1",
           to_string(tensor.type()));
  }
  TensorType row{tensor.dtype(), Shape(tensor.shape().begin() + 1, tensor.shape().end())};
  Shape shape{tensor.shape()[0], row.elements()};
  return apply_primitive("reshape", {tensor}, {{"shape", std::move(shape)}}, x.where())[0];
}

Tensor expand_dims(const Operand& x, int64_t axis) {
  const Tensor tensor = x.tensor();
  const int64_t at = from_start(axis, tensor.rank() + 1);
  if (at < 0 || at > tensor.rank()) {
    refuse(x.where(), "[expand_dims] axis {} is out of range for rank {}", axis, tensor.rank());
  }
  Shape shape = tensor.shape();
  shape.insert(shape.begin() + at, 1);
  check_rank("expand_dims", shape, x.where());
  return apply_primitive("reshape", {tensor}, {{"shape", std::move(shape)}}, x.where())[0];
}

Tensor squeeze(const Operand& x, std::vector<int64_t> axes) {
  const Tensor tensor = x.tensor();
  std::vector<bool> is_dropped(tensor.shape().size(), false);
  for (int64_t axis = 0; axes.empty() && axis < tensor.rank(); ++axis) {
    is_dropped[static_cast<size_t>(axis)] = tensor.shape()[static_cast<size_t>(axis)] == 1;
  }
  for (int64_t axis : axes) {
    const int64_t at = from_start(axis, tensor.rank());
    if (at < 0 || at >= tensor.rank() || tensor.shape()[static_cast<size_t>(at)] != 1) {
      refuse(x.where(), "[squeeze] axis {} of {} is not of extent 1", axis,
             to_string(tensor.type()));
    }
    is_dropped[static_cast<size_t>(at)] = true;
  }
  Shape shape;
  for (size_t d = 0; d < is_dropped.size(); ++d) {
    if (!is_dropped[d]) shape.push_back(tensor.shape()[d]);
  }
  return apply_primitive("reshape", {tensor}, {{"shape", std::move(shape)}}, x.where())[0];
}

namespace {

void check_repetitions(const char* op, int64_t repetitions, const Where& where) {
  if (repetitions < 0) refuse(where, "[{}] {} repetitions, expected at least 0", op, repetitions);
}

int64_t elements_between(const Shape& shape, size_t first, size_t last) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(first),
                         shape.begin() + static_cast<std::ptrdiff_t>(last), int64_t{1},
                         std::multiplies<>());
}

// An axis more comes before each that is repeated; those before and behind are joined to one each,
// which makes no more axes than a tensor may have.
constexpr size_t kTiledAxes = 3;

Tensor tile_axes(const Tensor& x, const std::vector<int64_t>& repetitions, size_t first,
                 size_t last) {
  const Shape& from = x.shape();
  Shape apart = {elements_between(from, 0, first)}, result = from;
  Shape repeated = apart;
  for (size_t d = first; d < last; ++d) {
    apart.insert(apart.end(), {1, from[d]});
    repeated.insert(repeated.end(), {repetitions[d], from[d]});
    result[d] *= repetitions[d];
  }
  apart.push_back(elements_between(from, last, from.size()));
  repeated.push_back(apart.back());
  return repeated == apart ? x : reshape(broadcast_to(reshape(x, apart), repeated), result);
}

}  // namespace

Tensor tile(const Operand& x, std::vector<int64_t> repetitions) {
  CallScope scope(x.where());
  const Tensor tensor = x.tensor();
  for (int64_t count : repetitions) check_repetitions("tile", count, x.where());
  Shape from = tensor.shape();
  const size_t rank = std::max(from.size(), repetitions.size());
  from.insert(from.begin(), rank - from.size(), 1);
  repetitions.insert(repetitions.begin(), rank - repetitions.size(), 1);
  Tensor tiled = reshape(tensor, from);
  for (size_t first = 0; first < rank; first += kTiledAxes) {
    const size_t last = std::min(first + kTiledAxes, rank);
    tiled = tile_axes(tiled, repetitions, first, last);
  }
  return tiled;
}

Tensor repeat(const Operand& x, int64_t repetitions, int64_t axis) {
  CallScope scope(x.where());
  const Tensor tensor = x.tensor();
  check_repetitions("repeat", repetitions, x.where());
  const int64_t at = checked_axis("repeat", axis, tensor.rank(), x.where());
  const auto behind = static_cast<size_t>(at) + 1;
  Shape result = tensor.shape();
  const int64_t outer = elements_between(result, 0, behind),
                inner = elements_between(result, behind, result.size());
  result[behind - 1] *= repetitions;
  return reshape(broadcast_to(reshape(tensor, {outer, 1, inner}), {outer, repetitions, inner}),
                 result);
}

Tensor full_like(const Operand& x, double value) {
  const TensorType type = x.tensor().type();
  return Tensor::full(type.shape, value, type.dtype);
}

Tensor zeros_like(const Operand& x) { return full_like(x, 0); }

Tensor ones_like(const Operand& x) { return full_like(x, 1); }

namespace {

// column - row compared with k.
Tensor triangle(const char* op, const Operand& x, int64_t k, bool is_lower) {
  CallScope scope(x.where());
  const Tensor tensor = x.tensor();
  if (tensor.rank() < 2) {
    refuse(x.where(), "[{}] the input is {}, expected at least rank 2", op,
           to_string(tensor.type()));
  }
  const auto numbers = [](int64_t count) {
    return arange(0, static_cast<double>(count), 1, DType::kI32);
  };
  const int64_t rows = tensor.shape()[tensor.shape().size() - 2], columns = tensor.shape().back();
  const Tensor edge = reshape(numbers(rows), {rows, 1}) + k;
  const Tensor keep =
      is_lower ? less_equal(numbers(columns), edge) : greater_equal(numbers(columns), edge);
  return select(keep, tensor, 0);
}

}  // namespace

Tensor tril(const Operand& x, int64_t k) { return triangle("tril", x, k, true); }

Tensor triu(const Operand& x, int64_t k) { return triangle("triu", x, k, false); }

}  // namespace ballast::ops
