#include "kernels/pointwise/pointwise_recipe.h"

#include "kernels/pointwise/pointwise_math.h"

namespace ballast::kernels {

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
      return Halide::UInt(16);  // only moved, never computed with
    case DType::kU8:
    case DType::kBool:
      return Halide::UInt(8);
  }
  return {};
}

Expr loaded(const Expr& stored, DType dtype) {
  return dtype == DType::kBool ? stored != Halide::Internal::make_zero(stored.type()) : stored;
}

Expr stored(const Expr& value) {
  return value.type().is_bool() ? cast(Halide::UInt(8), value) : value;
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
  const Type result = type == DType::kBool ? Halide::Bool() : storage_type(type);
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

void schedule_values(Outputs outputs, const Nest& nest) {
  if (outputs.values.outputs() == 1) return;
  outputs.values.compute_at(outputs.out, nest.lane).store_in(Halide::MemoryType::Stack);
}

}  // namespace ballast::kernels
