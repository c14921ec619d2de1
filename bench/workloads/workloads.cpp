#include "bench/workloads/workloads.h"

#include "bench/workloads/forward.h"
#include "bench/workloads/models.h"
#include "frontend/ballast_frontend.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

namespace workloads {
namespace {

using namespace ballast;

// Steps of one sunk run: fewer where a step takes long.
uint64_t sink_steps(const std::string& name) { return name.rfind("vit_", 0) == 0 ? 5 : 100; }

constexpr float kLearningRate = 0.01f, kMomentum = 0.9f, kAdamLearningRate = 1e-4f;

using TrainStep = std::function<Tensor(const Tensor&, const Tensor&)>;

// The parameters of the training workloads.
const std::map<std::string, Names>& trainings() {
  static const std::map<std::string, Names> kAll = {
      {"mlp_train", mlp_parameters()}, {"linreg_train", {"w", "b"}},
      {"dense1024_train", {"w", "b"}}, {"eager_mlp_train", mlp_parameters()},
      {"vit_train", vit_parameters()},
  };
  return kAll;
}

template <class T>
const T& found_in(const std::map<std::string, T>& all, const std::string& name, const char* what) {
  const auto found = all.find(name);
  if (found != all.end()) return found->second;
  fail(BALLAST_NOT_FOUND, "[workloads] no {} is named {}", what, name);
}

const Tensor& array_of(const Arrays& arrays, const std::string& name) {
  return found_in(arrays, name, ".npy file of the inputs");
}

bool is_eager_workload(const std::string& name) { return name.rfind("eager_", 0) == 0; }

Tensor loss_of(const std::string& name, const std::vector<Parameter>& parameters, const Tensor& x,
               const Tensor& y) {
  const Tensors p(parameters.begin(), parameters.end());
  if (name == "linreg_train") return nn::MSELoss()(dense(x, p[0], p[1]), y);
  if (name == "dense1024_train") return nn::MSELoss()(ops::relu(dense(x, p[0], p[1])), y);
  return nn::CrossEntropyLoss()(name == "vit_train" ? vit(p, x) : mlp(p, x), y);
}

std::vector<Parameter> make_parameters(const std::string& name, const Arrays& arrays) {
  std::vector<Parameter> parameters;
  for (const std::string& array : found_in(trainings(), name, "training workload")) {
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
  const Forward& definition = found_in(forwards(), name, "workload");
  Tensors inputs;
  for (const std::string& array : definition.arrays) inputs.push_back(array_of(arrays, array));
  Run run;
  if (mode == Mode::kSink) {
    auto of_x = [forward = definition.run, inputs](const Tensor& x) {
      Tensors all = inputs;
      all[0] = x;
      return forward(all)[0];
    };
    auto last = std::make_shared<Tensor>();
    const uint64_t steps = run.steps_per_call = sink_steps(name);
    run.call = [loop = sink(jit(of_x)), last, inputs, steps]() mutable {
      *last = loop(steps, repeat(inputs[0]));
      synchronize();
    };
    run.outputs = [last, steps] {
      const std::vector<float> all = last->to_host<float>();
      const std::vector<float> of_last(all.end() - all.size() / steps, all.end());
      return std::vector<std::vector<float>>{of_last};
    };
    return run;
  }
  std::function<Tensors(const Tensors&)> forward = definition.run;
  if (mode == Mode::kJit) forward = jit(forward);
  auto last = std::make_shared<Tensors>();
  run.call = [forward, last, inputs] {
    *last = forward(inputs);
    synchronize();
  };
  run.outputs = [last] {
    std::vector<std::vector<float>> values;
    for (const Tensor& tensor : *last) values.push_back(tensor.to_host<float>());
    return values;
  };
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
  for (const auto& [name, forward] : forwards()) all.push_back(name);
  for (const auto& [name, parameters] : trainings()) all.push_back(name);
  return all;
}

bool is_training(const std::string& name) { return trainings().count(name) > 0; }

std::string why_not(const std::string& name, Mode mode) {
  if (is_eager_workload(name) && mode != Mode::kEager) return "for the eager mode";
  if (mode != Mode::kSink || is_training(name)) return "";
  const bool can_sink = found_in(forwards(), name, "workload").can_sink;
  return can_sink ? "" : "one large result per step";
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

std::pair<double, double> checksums(const std::vector<std::vector<float>>& arrays) {
  std::pair<double, double> sums;
  for (const std::vector<float>& values : arrays) {
    double magnitude = 0, with_sign = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      magnitude +=
          std::abs(static_cast<double>(values[i])) * (1 + static_cast<double>(i % 13) / 13);
      with_sign += values[i] * (static_cast<double>(i * 7919 % 101) / 50 - 1);
    }
    const double count = static_cast<double>(std::max<size_t>(1, values.size()));
    sums.first += magnitude / count;
    sums.second += with_sign / count;
  }
  return sums;
}

}  // namespace workloads
