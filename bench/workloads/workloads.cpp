#include "bench/workloads/workloads.h"

#include "bench/workloads/vit.h"
#include "frontend/ballast_frontend.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

namespace workloads {
namespace {

using namespace ballast;

// Steps of one sunk run: fewer where a step takes long.
uint64_t sink_steps(const std::string& name) { return name == "vit_train" ? 5 : 100; }

constexpr float kLearningRate = 0.01f, kMomentum = 0.9f, kAdamLearningRate = 1e-4f;

using Forward = std::function<Tensor(const std::vector<Tensor>&)>;
using TrainStep = std::function<Tensor(const Tensor&, const Tensor&)>;

struct Definition {
  bool is_training;
  std::vector<std::string> arrays;  // in the order in which the function below takes them
};

const std::map<std::string, Definition>& definitions() {
  static const std::vector<std::string> kMlp = {"w0", "b0", "w1", "b1", "w2", "b2"};
  static const std::map<std::string, Definition> kAll = {
      {"eager_add_mul_1024", {false, {"x", "y"}}},
      {"fused_add_mul_1024", {false, {"x", "y"}}},
      {"gemm_1024", {false, {"x", "w"}}},
      {"gemm_bias_relu_1024", {false, {"x", "w", "b"}}},
      {"mlp_infer", {false, {"x", "w0", "b0", "w1", "b1", "w2", "b2"}}},
      {"mlp_train", {true, kMlp}},
      {"linreg_train", {true, {"w", "b"}}},
      {"dense1024_train", {true, {"w", "b"}}},
      {"eager_mlp_train", {true, kMlp}},
      {"vit_train", {true, vit_parameters()}},
  };
  return kAll;
}

const Definition& definition_of(const std::string& name) {
  auto found = definitions().find(name);
  if (found != definitions().end()) return found->second;
  fail(BALLAST_NOT_FOUND, "[workloads] there is no workload {}", name);
}

const Tensor& array_of(const Arrays& arrays, const std::string& name) {
  auto found = arrays.find(name);
  if (found != arrays.end()) return found->second;
  fail(BALLAST_NOT_FOUND, "[workloads] the inputs hold no {}.npy", name);
}

bool is_eager_workload(const std::string& name) { return name.rfind("eager_", 0) == 0; }

// Weights are [out, in].
Tensor dense(const Operand& x, const Operand& weight, const Operand& bias) {
  return ops::matmul(x, weight, false, true) + bias;
}

template <class T>
Tensor mlp(const Tensor& x, const std::vector<T>& p, size_t first) {
  Tensor h = ops::relu(dense(x, p[first], p[first + 1]));
  h = ops::relu(dense(h, p[first + 2], p[first + 3]));
  return dense(h, p[first + 4], p[first + 5]);
}

Forward make_forward(const std::string& name) {
  if (name == "gemm_1024") return [](const auto& a) { return ops::matmul(a[0], a[1]); };
  if (name == "gemm_bias_relu_1024") {
    return [](const auto& a) { return ops::relu(ops::matmul(a[0], a[1]) + a[2]); };
  }
  if (name == "mlp_infer") return [](const auto& a) { return mlp(a[0], a, 1); };
  return [](const auto& a) { return (a[0] + a[1]) * a[0]; };
}

Tensor loss_of(const std::string& name, const std::vector<Parameter>& p, const Tensor& x,
               const Tensor& y) {
  if (name == "linreg_train") return nn::MSELoss()(dense(x, p[0], p[1]), y);
  if (name == "dense1024_train") return nn::MSELoss()(ops::relu(dense(x, p[0], p[1])), y);
  return nn::CrossEntropyLoss()(name == "vit_train" ? vit(p, x) : mlp(x, p, 0), y);
}

std::vector<Parameter> make_parameters(const std::string& name, const Arrays& arrays) {
  std::vector<Parameter> parameters;
  for (const std::string& array : definition_of(name).arrays) {
    parameters.emplace_back(array_of(arrays, array), array);
  }
  return parameters;
}

TrainStep make_train_step(const std::string& name, const Arrays& arrays) {
  const std::vector<Parameter> parameters = make_parameters(name, arrays);
  std::shared_ptr<nn::Optimizer> optimizer;
  if (name == "linreg_train") {
    optimizer = std::make_shared<nn::Momentum>(parameters, kLearningRate, kMomentum);
  } else if (name == "vit_train") {
    optimizer = std::make_shared<nn::Adam>(parameters, kAdamLearningRate);
  } else {
    optimizer = std::make_shared<nn::SGD>(parameters, kLearningRate);
  }
  auto forward = [name, parameters](const Tensor& x, const Tensor& y) {
    return loss_of(name, parameters, x, y);
  };
  auto grad_fn = value_and_grad(forward, std::nullopt, parameters);
  return [grad_fn, optimizer](const Tensor& x, const Tensor& y) mutable {
    auto [loss, gradients] = grad_fn(x, y);
    return depend(loss, (*optimizer)(gradients));
  };
}

Run run_forward(const std::string& name, Mode mode, const Arrays& arrays) {
  std::vector<Tensor> inputs;
  for (const std::string& array : definition_of(name).arrays) {
    inputs.push_back(array_of(arrays, array));
  }
  Forward forward = make_forward(name);
  auto last = std::make_shared<Tensor>();
  Run run;
  if (mode == Mode::kSink) {
    auto of_x = [forward, inputs](const Tensor& x) {
      std::vector<Tensor> all = inputs;
      all[0] = x;
      return forward(all);
    };
    const uint64_t steps = run.steps_per_call = sink_steps(name);
    run.call = [loop = sink(jit(of_x)), last, inputs, steps]() mutable {
      *last = loop(steps, repeat(inputs[0]));
      synchronize();
    };
    run.output = [last, steps] {
      std::vector<float> all = last->to_host<float>();
      return std::vector<float>(all.end() - all.size() / steps, all.end());
    };
    return run;
  }
  if (mode == Mode::kJit) forward = jit(forward);
  run.call = [forward, last, inputs] {
    *last = forward(inputs);
    synchronize();
  };
  run.output = [last] { return last->to_host<float>(); };
  return run;
}

Run run_training(const std::string& name, Mode mode, const Arrays& arrays) {
  Tensor x = array_of(arrays, "x"), y = array_of(arrays, "y");
  TrainStep step = make_train_step(name, arrays);
  Run run;
  if (mode == Mode::kSink) {
    auto loop = std::make_shared<Sink<TrainStep>>(jit(step));
    const uint64_t steps = run.steps_per_call = sink_steps(name);
    run.call = [loop, x, y, steps] {
      (*loop)(steps, repeat(x), repeat(y));
      synchronize();
    };
    run.first_losses = [loop, x, y] {
      return (*loop)(3, repeat(x), repeat(y)).template to_host<float>();
    };
    return run;
  }
  if (mode == Mode::kJit) step = jit(step);
  run.call = [step, x, y] {
    step(x, y);
    synchronize();
  };
  run.first_losses = [step, x, y] {
    std::vector<float> losses;
    for (int i = 0; i < 3; ++i) losses.push_back(step(x, y).template item<float>());
    return losses;
  };
  return run;
}

}  // namespace

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, definition] : definitions()) all.push_back(name);
  return all;
}

bool is_training(const std::string& name) { return definition_of(name).is_training; }

std::string why_not(const std::string& name, Mode mode) {
  definition_of(name);
  if (is_eager_workload(name) && mode != Mode::kEager) return "for the eager mode";
  // A sink keeps every step's output: 100 of a 1024 x 1024 result would measure memory traffic.
  bool is_small = is_training(name) || name == "mlp_infer";
  if (mode == Mode::kSink && !is_small) return "one large result per step";
  return "";
}

Run make_run(const std::string& name, Mode mode, const Arrays& arrays) {
  return is_training(name) ? run_training(name, mode, arrays) : run_forward(name, mode, arrays);
}

std::vector<Phase> compile_phases(const std::string& name, const Arrays& arrays) {
  std::vector<Phase> phases;
  auto timed = [&](const char* phase, auto&& work) {
    const auto start = std::chrono::steady_clock::now();
    auto result = work();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    phases.push_back({phase, time.count()});
    return result;
  };
  const std::vector<Parameter> parameters = make_parameters(name, arrays);
  const TrainStep step = make_train_step(name, arrays);
  const std::vector<TensorType> types = types_of({array_of(arrays, "x"), array_of(arrays, "y")});
  JitOptions options;
  options.level = default_jit_level();
  for (int round = 0; round < 2; ++round) {
    timed("trace the forward pass", [&] {
      return trace(
          [&](const std::vector<Tensor>& inputs) {
            return std::vector<Tensor>{loss_of(name, parameters, inputs[0], inputs[1])};
          },
          types);
    });
    const Program program = timed("trace and differentiate a step", [&] {
      return trace(
          [&](const std::vector<Tensor>& inputs) {
            return std::vector<Tensor>{step(inputs[0], inputs[1])};
          },
          types);
    });
    const Program pruned = timed("drop dead code", [&] { return eliminate_dead_code(program); });
    timed("lower and compile", [&] { return std::make_unique<Compiled>(pruned, options); });
  }
  return phases;
}

Arrays load_arrays(const std::string& folder) {
  Arrays arrays;
  if (!std::filesystem::is_directory(folder)) {
    fail(BALLAST_NOT_FOUND, "[workloads] there is no folder {}", folder);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".npy") continue;
    arrays[entry.path().stem().string()] = data::load_npy(entry.path().string()).to_device();
  }
  return arrays;
}

std::pair<double, double> checksums(const std::vector<float>& values) {
  double magnitude = 0, with_sign = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    magnitude += std::abs(static_cast<double>(values[i])) * (1 + static_cast<double>(i % 13) / 13);
    with_sign += values[i] * (static_cast<double>(i * 7919 % 101) / 50 - 1);
  }
  double count = static_cast<double>(std::max<size_t>(1, values.size()));
  return {magnitude / count, with_sign / count};
}

}  // namespace workloads
