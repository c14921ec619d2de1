#include "kernels/pointwise/pointwise_recipe.h"

#include "kernels/pointwise/pointwise_math.h"

#include <limits>

namespace ballast::kernels {

using Halide::cast;
using Halide::Expr;
using Halide::Func;
using Halide::TailStrategy;
using Halide::Type;
using Halide::Var;

Type storage_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return Halide::Float(32);
    case DType::kF64:
      return Halide::Float(64);
    case DType::kI32:
      return Halide::Int(32);
    case DType::kI64:
      return Halide::Int(64);
    case DType::kF16:
    case DType::kBF16:
      return Halide::UInt(16);
    case DType::kU8:
    case DType::kBool:
      return Halide::UInt(8);
  }
  return {};
}

namespace {

Expr bits_of(const Expr& x) { return reinterpret(Halide::UInt(32), x); }
Expr word(uint32_t bits) { return Halide::Internal::make_const(Halide::UInt(32), bits); }

// The upper half of an f32 that was rounded to it, as the f32's bits.
Expr bf16_bits(const Expr& x) {
  const Expr bits = bits_of(x);
  const Expr is_nan = (bits & word(0x7fffffff)) > word(0x7f800000);
  const Expr nearest = bits + word(0x7fff) + ((bits >> 16) & word(1));
  return select(is_nan, bits | word(0x00400000), nearest) & word(0xffff0000);
}

// Exponents are rebased (15 to 127) in the upper bits; a denormal is a whole number of 2^-24.
Expr from_f16(const Expr& half) {
  const Expr bits = cast<uint32_t>(half);
  const Expr magnitude = bits & word(0x7fff);
  const Expr shifted = magnitude << 13;
  const Expr normal =
      shifted + select(magnitude >= word(0x7c00), word(224u << 23), word(112u << 23));
  const Expr tiny = bits_of(cast<float>(cast<int32_t>(magnitude)) * 5.9604644775390625e-8f);
  const Expr sign = (bits & word(0x8000)) << 16;
  return reinterpret(Halide::Float(32), select(magnitude < word(0x400), tiny, normal) | sign);
}

Expr to_f16(const Expr& x) {
  const Expr bits = bits_of(x);
  const Expr magnitude = bits & word(0x7fffffff);
  // Adding 1/2 makes the last bit 2^-24, a denormal's unit, and rounds to it.
  const Expr tiny = bits_of(reinterpret(Halide::Float(32), magnitude) + 0.5f) - word(0x3f000000);
  const Expr odd = (magnitude >> 13) & word(1);
  const Expr normal = (magnitude - word(112u << 23) + word(0xfff) + odd) >> 13;
  const Expr nan = word(0x7e00) | ((magnitude >> 13) & word(0x1ff));
  const Expr half = select(magnitude > word(0x7f800000), nan,            //
                           magnitude >= word(0x47800000), word(0x7c00),  // 2^16
                           magnitude < word(0x38800000), tiny, normal);  // 2^-14
  return cast<uint16_t>(half | ((bits >> 16) & word(0x8000)));
}

}  // namespace

Expr loaded(const Expr& stored, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return stored != Halide::Internal::make_zero(stored.type());
    case DType::kBF16:
      return reinterpret(Halide::Float(32), cast<uint32_t>(stored) << 16);
    case DType::kF16:
      return Halide::strict_float(from_f16(stored));
    default:
      return stored;
  }
}

Expr stored(const Expr& value, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return cast<uint8_t>(value);
    case DType::kBF16:
      return cast<uint16_t>(bf16_bits(value) >> 16);
    case DType::kF16:
      return Halide::strict_float(to_f16(value));
    default:
      return value;
  }
}

Expr rounded(const Expr& value, DType dtype) {
  if (dtype == DType::kBF16) return reinterpret(Halide::Float(32), bf16_bits(value));
  return is_narrow_float(dtype) ? loaded(stored(value, dtype), dtype) : value;
}

namespace {

Expr expression(const std::string& op, const Type& type, const Expr& a, const Expr& b,
                const Expr& c) {
  using Halide::Internal::make_const;
  const auto one = [](const Type& t) { return Halide::Internal::make_one(t); };
  const auto zero = [](const Type& t) { return Halide::Internal::make_zero(t); };
#define POINTWISE(name, arity, rule, ...) \
  if (op == #name) return __VA_ARGS__;
#include "kernels/pointwise/pointwise_ops.inc"
#undef POINTWISE
  return {};
}

}  // namespace

Expr apply_pointwise(const std::string& op, DType type, const std::vector<Expr>& args) {
  const Type result = type == DType::kBool    ? Halide::Bool()
                      : is_narrow_float(type) ? Halide::Float(32)
                                              : storage_type(type);
  const auto arg = [&](size_t i) { return i < args.size() ? args[i] : Expr(); };
  return Halide::strict_float(expression(op, result, arg(0), arg(1), arg(2)));
}

std::vector<Var> Nest::vars() const {
  std::vector<Var> all = {lane, x, y};
  all.insert(all.end(), outer.begin(), outer.end());
  return all;
}

Nest make_nest(int dimensions) {
  Nest nest;
  for (int i = 3; i < dimensions; ++i) nest.outer.emplace_back("z" + std::to_string(i));
  return nest;
}

void schedule_nest(Func func, const Nest& nest, const Expr& chunk_x, const Expr& chunk_y,
                   bool is_gpu) {
  const Var xo("xo"), yo("yo"), xi("xi"), yi("yi");
  func.split(nest.x, xo, xi, chunk_x, TailStrategy::GuardWithIf)
      .split(nest.y, yo, yi, chunk_y, TailStrategy::GuardWithIf);
  Var z = nest.outer.at(0);
  for (size_t i = 1; i < nest.outer.size(); ++i) {
    const Var fused("z_to_" + std::to_string(i));
    func.fuse(z, nest.outer[i], fused);
    z = fused;
  }
  func.reorder(nest.lane, xi, yi, xo, yo, z).gpu_blocks(xo, yo, z);
  if (is_gpu) func.gpu_threads(xi, yi);
}

Outputs make_outputs(const Nest& nest, const std::vector<Expr>& results) {
  Outputs outputs{Func("values"), Func("result")};
  outputs.values(nest.vars()) = Halide::Tuple(results);
  std::vector<Expr> copies;
  for (size_t i = 0; i < results.size(); ++i) {
    const Halide::FuncRef value = outputs.values(nest.vars());
    copies.push_back(results.size() == 1 ? Expr(value) : Expr(value[static_cast<int>(i)]));
  }
  outputs.out(nest.vars()) = Halide::Tuple(copies);
  return outputs;
}

}  // namespace ballast::kernels
