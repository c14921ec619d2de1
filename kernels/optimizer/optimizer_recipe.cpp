#include "kernels/optimizer/optimizer_recipe.h"

namespace ballast::kernels {

using Halide::Expr;
using Exprs = std::vector<Expr>;

namespace {

// {rate, beta1, 1 - beta1, beta2, 1 - beta2, epsilon, what the parameter is multiplied with first,
// the factor of sqrt(v)}; a step is param * keep - rate m / (sqrt(v) correction + epsilon).
Exprs adam_scalars(const std::string& rule, const Exprs& s) {
  const Expr one = 1.0f;
  if (rule == "adam_weight_decay") {
    return {s[0], s[1], one - s[1], s[2], one - s[2], s[3], one - s[0] * s[4], one};
  }
  const Expr rest1 = one - s[0], rest2 = one - s[1], rate = s[2];
  const bool is_decoupled = rule == "adamw";
  return {is_decoupled ? rate / rest1 : rate * sqrt(rest2) / rest1,
          s[3],
          one - s[3],
          s[4],
          one - s[4],
          s[5],
          is_decoupled ? one - rate * s[6] : one,
          is_decoupled ? one / sqrt(rest2) : one};
}

Exprs adam(const std::string& rule, const Expr& param, const Exprs& states, const Expr& gradient,
           const Exprs& p) {
  const Expr m = p[1] * states[0] + p[2] * gradient;
  const Expr v = p[3] * states[1] + (p[4] * gradient) * gradient;
  const bool has_decay = rule == "adam_weight_decay" || rule == "adamw";
  const Expr direction = rule == "adam_nesterov" ? p[1] * m + p[2] * gradient : m;
  const Expr scale = rule == "adamw" ? sqrt(v) * p[7] + p[5] : sqrt(v) + p[5];
  return {(has_decay ? param * p[6] : param) - p[0] * direction / scale, m, v};
}

bool is_adam(const std::string& rule) { return rule.rfind("adam", 0) == 0; }

}  // namespace

Exprs prepare_scalars(const std::string& rule, const Exprs& scalars) {
  Exprs result = is_adam(rule) ? adam_scalars(rule, scalars) : scalars;
  if (rule == "rmsprop") result.push_back(1.0f - scalars[1]);
  for (Expr& e : result) e = strict_float(e);
  return result;
}

Exprs step_values(const std::string& rule, const Expr& param, const Exprs& states,
                  const Expr& gradient, const Exprs& p) {
  Exprs result;
  if (is_adam(rule)) {
    result = adam(rule, param, states, gradient, p);
  } else if (rule == "scale") {
    result = {param * p[0]};
  } else if (rule == "sgd") {
    result = {param - p[0] * gradient};
  } else if (rule == "adagrad") {
    const Expr accum = states[0] + gradient * gradient;
    result = {param - p[0] * gradient / sqrt(accum), accum};
  } else if (rule == "rmsprop") {
    const Expr square = p[1] * states[0] + p[4] * gradient * gradient;
    const Expr moment = p[2] * states[1] + p[0] * gradient / sqrt(square + p[3]);
    result = {param - moment, square, moment};
  } else {
    const Expr accum = p[1] * states[0] + gradient;
    const Expr step = rule == "momentum_nesterov" ? gradient + p[1] * accum : accum;
    result = {param - p[0] * step, accum};
  }
  for (Expr& e : result) e = strict_float(e);
  return result;
}

}  // namespace ballast::kernels
