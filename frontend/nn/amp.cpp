#include "frontend/nn/amp.h"

#include "frontend/ops/ops.h"

#include <cmath>
#include <map>
#include <set>
#include <string>

namespace ballast::amp {

namespace {

const std::set<std::string>& low_precision() {
  static const std::set<std::string> names = {"matmul", "conv2d", "scaled_dot_product_attention"};
  return names;
}

// Ops that lose nothing in the narrow type that their operands have already lost.
const std::set<std::string>& either() {
  static const std::set<std::string> names = {
      "reshape",    "broadcast_to", "transpose", "slice",        "pad",     "concat",
      "split",      "flip",         "gather",    "select",       "add",     "sub",
      "mul",        "neg",          "abs",       "maximum",      "minimum", "relu",
      "gelu",       "gelu_tanh",    "silu",      "tanh",         "sigmoid", "max_pool2d",
      "avg_pool2d", "dropout",      "depend",    "stop_gradient"};
  return names;
}

const std::set<std::string>& control_flow() {
  static const std::set<std::string> names = {"cond", "while", "scan"};
  return names;
}

// One evaluation: every variable's value, and its casts.
class Mixed {
 public:
  Mixed(const Program& program, DType dtype) : program_(program), low_(dtype) {}

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    values_.enter(program_, inputs);
    for (const Equation& equation : program_.equations) {
      CallScope scope(equation.where, /*is_override=*/true);
      const std::vector<Tensor> results = apply_primitive(
          equation.primitive, operands(equation), equation.attrs, equation.where, bodies(equation));
      for (size_t i = 0; i < results.size(); ++i) values_.set(equation.outputs[i], results[i]);
    }
    std::vector<Tensor> outputs;
    for (const Atom& atom : program_.outputs) outputs.push_back(as(atom, atom.type().dtype));
    for (const auto& effect : program_.effects) {
      effect.parameter.assign(as(effect.value, effect.parameter.type().dtype));
    }
    return outputs;
  }

 private:
  // Bodies of control flow in mixed precision too; they keep their types, as a carry must. Others
  // (backward passes) stay as they are.
  Bodies bodies(const Equation& equation) const {
    if (control_flow().count(equation.primitive) == 0) return equation.bodies;
    Bodies mixed;
    for (const auto& body : equation.bodies) {
      auto run = [&](const std::vector<Tensor>& inputs) { return Mixed(*body, low_).run(inputs); };
      mixed.push_back(
          std::make_shared<Program>(eliminate_dead_code(trace(run, input_types(*body)))));
    }
    return mixed;
  }

  std::vector<Tensor> operands(const Equation& equation) {
    const bool is_low = low_precision().count(equation.primitive) > 0;
    const bool is_either = either().count(equation.primitive) > 0 && all_low(equation.inputs);
    std::vector<Tensor> tensors;
    for (const Atom& atom : equation.inputs) {
      const bool is_cast = (is_low || is_either) && atom.type().dtype == DType::kF32;
      tensors.push_back(as(atom, is_cast ? low_ : atom.type().dtype));
    }
    return tensors;
  }

  // Literals go along with whatever is beside them.
  bool all_low(const std::vector<Atom>& atoms) const {
    bool has_low = false;
    for (const Atom& atom : atoms) {
      if (!atom.var || atom.type().dtype != DType::kF32) continue;
      if (values_.get(atom).dtype() != low_) return false;
      has_low = true;
    }
    return has_low;
  }

  Tensor as(const Atom& atom, DType dtype) {
    const Tensor value = values_.get(atom);
    if (value.dtype() == dtype) return value;
    if (!atom.var) {
      const std::vector<uint8_t> bytes = value.to_host_bytes();
      return Tensor::on_host_bytes(encode(decode(bytes.data(), value.dtype()), dtype),
                                   {dtype, value.shape()});
    }
    Tensor& cast = casts_[{atom.var.get(), dtype}];
    if (!cast.defined()) cast = ops::cast(value, dtype);
    return cast;
  }

  const Program& program_;
  DType low_;
  Environment values_;
  std::map<std::pair<const Variable*, DType>, Tensor> casts_;
};

}  // namespace

std::vector<Tensor> eval_mixed(const Program& program, const std::vector<Tensor>& inputs,
                               DType dtype) {
  if (dtype != DType::kBF16 && dtype != DType::kF16) {
    fail(BALLAST_INVALID_ARGUMENT, "[auto_mixed_precision] {} is not bf16 or f16", name_of(dtype));
  }
  return Mixed(program, dtype).run(inputs);
}

MixedCell::MixedCell(std::shared_ptr<nn::Cell> cell, DType dtype)
    : cell_(std::move(cell)), dtype_(dtype) {
  add(*cell_);
}

Tensor MixedCell::run(const std::vector<Tensor>& inputs) {
  auto call = [this](const std::vector<Tensor>& arguments) {
    return cell_->call({arguments.begin(), arguments.end()});
  };
  return MixedFunction(call, dtype_)(inputs);
}

Tensor LossScaler::scale(const Tensor& loss) const { return loss * scale_value(); }

StaticLossScaler::StaticLossScaler(float scale_value, Where where) : scale_value_(scale_value) {
  if (!(scale_value > 0) || !std::isfinite(scale_value)) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[StaticLossScaler] the scale is {}, expected it finite and more than 0 (at {})\n  hint: "
         "where "
         "gradients overflow, a smaller power of two, or DynamicLossScaler, which finds one",
         scale_value, to_string(where));
  }
}

std::vector<Tensor> LossScaler::unscale(const std::vector<Tensor>& gradients) const {
  return ops::scale_tensors(gradients, ops::reciprocal(scale_value()));
}

DynamicLossScaler::DynamicLossScaler(float scale_value, float scale_factor, int32_t scale_window,
                                     Where where)
    : scale_factor_(scale_factor), scale_window_(scale_window) {
  if (!(scale_value >= 1) || !(scale_factor > 1) || scale_window < 1) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[DynamicLossScaler] value {}, factor {}, window {}: expected at least 1, more than 1, at "
         "least 1 (at {})",
         scale_value, scale_factor, scale_window, to_string(where));
  }
  scale_value_ = Parameter(Tensor::scalar(scale_value), "scale_value", /*requires_grad=*/false);
  counter_ = Parameter(Tensor::scalar(0, DType::kI32), "scale_counter", /*requires_grad=*/false);
}

void DynamicLossScaler::adjust(const Tensor& is_finite) {
  const Tensor now = scale_value_, counter = counter_;
  const Tensor grown = now * scale_factor_;
  const Tensor may_grow =
      ops::logical_and(ops::equal(counter, scale_window_ - 1), ops::isfinite(grown));
  const Tensor shrunk = ops::maximum(now / scale_factor_, 1.0);
  scale_value_.assign(ops::select(is_finite, ops::select(may_grow, grown, now), shrunk));
  const Tensor next = ops::select(ops::less(counter, scale_window_ - 1), counter + 1, 0);
  counter_.assign(ops::select(is_finite, next, 0));
}

TrainOneStepWithLossScaleCell::TrainOneStepWithLossScaleCell(
    std::shared_ptr<nn::Cell> network, std::shared_ptr<nn::Optimizer> optimizer,
    std::shared_ptr<LossScaler> scaler, nn::GradientTransform transform)
    : TrainOneStepCell(std::move(network), std::move(optimizer), 1, std::move(transform)),
      scaler_(std::move(scaler)) {
  for (const Parameter& state : scaler_->states()) add(state.name(), state);
}

Tensor TrainOneStepWithLossScaleCell::train(const std::vector<Tensor>& inputs) {
  auto [loss, scaled] = differentiate(inputs, scaler_->scale_value());
  const Tensor is_finite = ops::all_finite(scaled);
  std::vector<Parameter> changing = optimizer().parameters();
  changing.insert(changing.end(), optimizer().states().begin(), optimizer().states().end());
  std::vector<Tensor> before;
  for (const Parameter& parameter : changing) before.push_back(parameter);
  update(scaler_->unscale(scaled));
  std::vector<Tensor> after;
  for (size_t i = 0; i < changing.size(); ++i) {
    after.push_back(ops::select(is_finite, changing[i], before[i]));
    changing[i].assign(after.back());
  }
  scaler_->adjust(is_finite);
  return depend(loss, after);
}

}  // namespace ballast::amp
