#include "frontend/ops/random.h"

#include "frontend/ops/call.h"
#include "frontend/ops/shape.h"

namespace ballast::ops {

namespace {

int64_t elements(const Shape& shape) { return TensorType{DType::kF32, shape}.elements(); }

Tensor draw(const char* op, const Operand& key, const Shape& shape, Attrs attrs) {
  attrs.emplace_back("shape", shape);
  return unary(op, key, attrs);
}

}  // namespace

Tensor random_bits(const Operand& key, const Shape& shape) {
  return draw("random_bits", key, shape, {});
}

Tensor random_uniform(const Operand& key, const Shape& shape, double low, double high) {
  return draw("random_uniform", key, shape, {{"low", low}, {"high", high}});
}
Tensor random_uniform(const Shape& shape, double low, double high, Generator generator,
                      Where where) {
  CallScope scope(where);
  return random_uniform(generator.next(elements(shape)), shape, low, high);
}

Tensor random_normal(const Operand& key, const Shape& shape, double mean, double stddev) {
  return draw("random_normal", key, shape, {{"mean", mean}, {"stddev", stddev}});
}
Tensor random_normal(const Shape& shape, double mean, double stddev, Generator generator,
                     Where where) {
  CallScope scope(where);
  return random_normal(generator.next(elements(shape)), shape, mean, stddev);
}

Tensor truncated_normal(const Operand& key, const Shape& shape, double mean, double stddev) {
  return draw("truncated_normal", key, shape, {{"mean", mean}, {"stddev", stddev}});
}
Tensor truncated_normal(const Shape& shape, double mean, double stddev, Generator generator,
                        Where where) {
  CallScope scope(where);
  return truncated_normal(generator.next(elements(shape)), shape, mean, stddev);
}

Tensor randint(const Operand& key, const Shape& shape, int64_t low, int64_t high) {
  return draw("randint", key, shape, {{"low", low}, {"high", high}});
}
Tensor randint(const Shape& shape, int64_t low, int64_t high, Generator generator, Where where) {
  CallScope scope(where);
  return randint(generator.next(elements(shape)), shape, low, high);
}

Tensor bernoulli(const Operand& key, const Shape& shape, double p) {
  return draw("bernoulli", key, shape, {{"p", p}});
}
Tensor bernoulli(const Shape& shape, double p, Generator generator, Where where) {
  CallScope scope(where);
  return bernoulli(generator.next(elements(shape)), shape, p);
}

Tensor bernoulli_of(const Operand& key, const Operand& p) {
  return apply_primitive("bernoulli", {key.tensor(), p.tensor()}, {}, key.where())[0];
}

Tensor random_permutation(const Operand& key, int64_t n) {
  return unary("random_permutation", key, {{"n", n}});
}
Tensor random_permutation(int64_t n, Generator generator, Where where) {
  CallScope scope(where);
  return random_permutation(generator.next(1), n);
}

Tensor random_advance(const Operand& key, int64_t blocks) {
  return unary("random_advance", key, {{"blocks", blocks}});
}

Tensor dropout_with(const Operand& x, const Operand& key, double keep_prob) {
  return apply_primitive("dropout", {x.tensor(), key.tensor()}, {{"keep_prob", keep_prob}},
                         x.where())[0];
}

std::vector<Tensor> dropout_with_mask(const Operand& x, const Operand& key, double keep_prob) {
  CallScope scope(x.where());
  Tensor y = dropout_with(x, key, keep_prob);
  return {y, bernoulli(key, y.shape(), keep_prob)};
}

Tensor dropout(const Operand& x, double p, Generator generator) {
  CallScope scope(x.where());
  const Tensor tensor = x.tensor();
  if (p == 0 && is_float(tensor.dtype())) return tensor;
  if (p == 1 && is_float(tensor.dtype())) return zeros_like(tensor);
  return dropout_with(tensor, generator.next(tensor.elements()), 1 - p);
}

}  // namespace ballast::ops
