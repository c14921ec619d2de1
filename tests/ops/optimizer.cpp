#include "tests/op_table.h"
#include "tests/samples.h"

#include <cmath>
#include <functional>
#include <limits>

namespace ballast::tests {

namespace {

// One element of one tensor: its operands param, states..., gradient; the scalars; attributes.
// Returns the new param and states.
using Step = std::function<Elements(const Elements& x, const Elements& s, bool is_nesterov)>;

// A step over a list: of each tensor in turn `ins` operands, then `scalars`.
ReferenceOp stepped(size_t ins, size_t outs, size_t scalars, Step step) {
  return [=](const std::vector<HostArray>& inputs, const Attrs& attrs,
             std::vector<HostArray>& outputs) {
    Elements s;
    for (size_t k = inputs.size() - scalars; k < inputs.size(); ++k) {
      s.push_back(inputs[k].values[0]);
    }
    const bool is_nesterov = !attrs.empty() && int_attr(attrs, "use_nesterov") != 0;
    for (size_t t = 0; t < (inputs.size() - scalars) / ins; ++t) {
      for (size_t i = 0; i < inputs[t * ins].values.size(); ++i) {
        Elements x;
        for (size_t k = 0; k < ins; ++k) x.push_back(inputs[t * ins + k].values[i]);
        const Elements results = step(x, s, is_nesterov);
        for (size_t k = 0; k < outs; ++k) outputs[t * outs + k].values[i] = results[k];
      }
    }
  };
}

Elements momentum(const Elements& x, const Elements& s, bool is_nesterov) {
  const double accum = s[1] * x[1] + x[2];
  return {x[0] - s[0] * (is_nesterov ? x[2] + s[1] * accum : accum), accum};
}

// Moments from beta1, beta2.
Elements moments(const Elements& x, double beta1, double beta2) {
  return {beta1 * x[1] + (1 - beta1) * x[3], beta2 * x[2] + (1 - beta2) * x[3] * x[3]};
}

Elements adam(const Elements& x, const Elements& s, bool is_nesterov) {
  const Elements n = moments(x, s[3], s[4]);
  const double rate = s[2] * std::sqrt(1 - s[1]) / (1 - s[0]);
  const double direction = is_nesterov ? s[3] * n[0] + (1 - s[3]) * x[3] : n[0];
  return {x[0] - rate * direction / (std::sqrt(n[1]) + s[5]), n[0], n[1]};
}

Elements adam_weight_decay(const Elements& x, const Elements& s, bool) {
  const Elements n = moments(x, s[1], s[2]);
  const double update = n[0] / (std::sqrt(n[1]) + s[3]) + s[4] * x[0];
  return {x[0] - s[0] * update, n[0], n[1]};
}

// Loshchilov and Hutter's algorithm 2.
Elements adamw(const Elements& x, const Elements& s, bool) {
  const Elements n = moments(x, s[3], s[4]);
  const double m_hat = n[0] / (1 - s[0]), v_hat = n[1] / (1 - s[1]);
  return {x[0] - s[2] * (m_hat / (std::sqrt(v_hat) + s[5]) + s[6] * x[0]), n[0], n[1]};
}

Elements rms_prop(const Elements& x, const Elements& s, bool) {
  const double square = s[1] * x[1] + (1 - s[1]) * x[3] * x[3];
  const double moment = s[2] * x[2] + s[0] * x[3] / std::sqrt(square + s[3]);
  return {x[0] - moment, square, moment};
}

Elements adagrad(const Elements& x, const Elements& s, bool) {
  const double accum = x[1] + x[2] * x[2];
  return {x[0] - s[0] * x[2] / std::sqrt(accum), accum};
}

void global_norm(const std::vector<HostArray>& inputs, const Attrs&,
                 std::vector<HostArray>& outputs) {
  double sum = 0;
  for (const HostArray& input : inputs) {
    for (double value : input.values) sum += value * value;
  }
  outputs[0].values[0] = std::sqrt(sum);
}

void all_finite(const std::vector<HostArray>& inputs, const Attrs&,
                std::vector<HostArray>& outputs) {
  outputs[0].values[0] = 1;
  for (const HostArray& input : inputs) {
    for (double value : input.values) {
      if (!std::isfinite(value)) outputs[0].values[0] = 0;
    }
  }
}

const std::vector<std::vector<Shape>> kLists = {
    {{3, 4}}, {{}},      {{1029}},      {{0}},
    {{16}},   {{5, 13}}, {{2, 2}, {3}}, {{7}, {0}, {16, 3}, {1}, {33}}};

// Operands of every tensor in turn: param, states (positive), gradient; then the scalars.
std::vector<HostArray> operands(const std::vector<Shape>& shapes, size_t states, bool has_gradient,
                                const Elements& scalars) {
  std::vector<HostArray> inputs;
  for (const Shape& shape : shapes) {
    inputs.push_back(real(shape, -1, 1));
    for (size_t k = 0; k < states; ++k) inputs.push_back(real(shape, 0.1, 1));
    if (has_gradient) inputs.push_back(real(shape, -1, 1));
  }
  for (double value : scalars) inputs.push_back(scalar(value));
  return inputs;
}

// Of every tensor `ins` operands and `outs` results, the first of both the parameter; whether its
// states are f32 beside narrow parameters.
struct StepTypes {
  const char* op;
  size_t ins, outs, scalars;
  bool has_f32_states;
};
constexpr StepTypes kStepTypes[] = {
    {"apply_gradient_descent", 2, 1, 1, false}, {"scale_tensors", 1, 1, 1, false},
    {"apply_momentum", 3, 2, 2, false},         {"apply_adam", 4, 3, 6, true},
    {"apply_adam_weight_decay", 4, 3, 5, true}, {"apply_adamw", 4, 3, 7, true},
    {"apply_rms_prop", 4, 3, 4, true},          {"apply_adagrad", 3, 2, 1, true}};

// The tolerance leaves room for one rounding to f16 of values far below 1.
void add_step(OpFamilies& table, const std::string& op, std::vector<HostArray> inputs,
              const Attrs& attrs = {}) {
  table.add(op, std::move(inputs), attrs).atol = 1e-5;
}

void add_steps(OpFamilies& table, const std::vector<Shape>& list) {
  const Elements adam_scalars = {0.81, 0.98, 0.05, 0.9, 0.99, 1e-6};
  Elements adamw_scalars = adam_scalars;
  adamw_scalars.push_back(0.1);
  int64_t elements = 0;
  for (const Shape& shape : list) elements += TensorType{DType::kF32, shape}.elements();
  const bool is_small = elements < 20;
  table.add("apply_gradient_descent", operands(list, 0, true, {0.1}), {}, is_small);
  table.add("scale_tensors", operands(list, 0, false, {-1.5}), {}, is_small);
  add_step(table, "apply_adam_weight_decay", operands(list, 2, true, {0.05, 0.9, 0.99, 1e-6, 0.1}));
  add_step(table, "apply_adamw", operands(list, 2, true, adamw_scalars));
  add_step(table, "apply_rms_prop", operands(list, 2, true, {0.05, 0.9, 0.5, 1e-6}));
  add_step(table, "apply_adagrad", operands(list, 1, true, {0.05}));
  for (int64_t nesterov : {0, 1}) {
    const Attrs attrs = {{"use_nesterov", nesterov}};
    table.add("apply_momentum", operands(list, 1, true, {0.1, 0.9}), attrs, is_small);
    add_step(table, "apply_adam", operands(list, 2, true, adam_scalars), attrs);
  }
  // The norm has no gradient where it is 0.
  table.add("global_norm", operands(list, 0, false, {}), {}, is_small && elements > 0);
  table.add("all_finite", operands(list, 0, false, {}));
}

void add_optimizer_steps(OpFamilies& table) {
  for (const std::vector<Shape>& list : kLists) add_steps(table, list);
  table.add("global_norm", {special()});
  table.add("all_finite", {real({40}, -1, 1), special()});
  HostArray huge = real({20}, 1e38, 3e38);
  table.add("all_finite", {huge});
  huge.values[17] = -std::numeric_limits<double>::infinity();
  table.add("all_finite", {huge});
}

}  // namespace

void add_optimizer(OpFamilies& table) {
  table.references.insert({
      {"apply_gradient_descent", stepped(2, 1, 1,
                                         [](const Elements& x, const Elements& s, bool) {
                                           return Elements{x[0] - s[0] * x[1]};
                                         })},
      {"scale_tensors",
       stepped(1, 1, 1,
               [](const Elements& x, const Elements& s, bool) { return Elements{x[0] * s[0]}; })},
      {"apply_momentum", stepped(3, 2, 2, momentum)},
      {"apply_adam", stepped(4, 3, 6, adam)},
      {"apply_adam_weight_decay", stepped(4, 3, 5, adam_weight_decay)},
      {"apply_adamw", stepped(4, 3, 7, adamw)},
      {"apply_rms_prop", stepped(4, 3, 4, rms_prop)},
      {"apply_adagrad", stepped(3, 2, 1, adagrad)},
      {"global_norm", global_norm},
      {"all_finite", all_finite},
  });
  for (const StepTypes& step : kStepTypes) {
    table.types[step.op] = [step](const Types& in, const Attrs&) {
      Types results;
      for (size_t t = 0; t + step.scalars < in.size(); t += step.ins) {
        results.push_back(in[t]);
        const DType dtype = step.has_f32_states ? DType::kF32 : in[t].dtype;
        for (size_t k = 1; k < step.outs; ++k) results.push_back({dtype, in[t].shape});
      }
      return results;
    };
    table.wide_operands[step.op] = [step](size_t operand, size_t operands) {
      const size_t at = operand % step.ins;
      const bool is_scalar = operand + step.scalars >= operands;
      return is_scalar || (step.has_f32_states && at > 0 && at < step.outs);
    };
  }
  table.types["global_norm"] = [](const Types&, const Attrs&) { return Types{{DType::kF32, {}}}; };
  table.types["all_finite"] = [](const Types&, const Attrs&) { return Types{{DType::kBool, {}}}; };
  add_optimizer_steps(table);
}

void draw_optimizer(OpFamilies& table, Draw& draw) {
  std::vector<Shape> list;
  const int64_t tensors = draw.extent(30);
  for (int64_t t = 0; t < tensors; ++t) list.push_back(draw.shape(draw.below(4), 30000 / tensors));
  add_steps(table, list);
}

}  // namespace ballast::tests
