#include "frontend/tensor/generator.h"

#include "frontend/program/trace.h"

#include <mutex>

namespace ballast {

struct Generator::Impl {
  std::mutex mutex;
  uint64_t seed = 0;
  Parameter parameter;  // undefined until it is needed
};

namespace {

Parameter make_parameter(const std::vector<int64_t>& state) {
  return {Tensor::from_host(state, {2}), "generator", /*requires_grad=*/false};
}

}  // namespace

Generator::Generator(uint64_t seed) : impl_(std::make_shared<Impl>()) { impl_->seed = seed; }

Parameter Generator::parameter() const {
  Parameter& parameter = impl_->parameter;
  if (!parameter.defined()) {
    parameter = make_parameter({static_cast<int64_t>(impl_->seed), 0});
  } else if (const BufferPtr held = parameter.bound_buffer(false); held->device() != device()) {
    // The current device is another one since: the sequence goes on there.
    parameter = make_parameter(Tensor::of_buffer(parameter.type(), held).to_host<int64_t>());
  }
  return parameter;
}

void Generator::set_seed(uint64_t seed) {
  std::lock_guard lock(impl_->mutex);
  impl_->seed = seed;
  if (!impl_->parameter.defined()) return;
  parameter().assign(Tensor::on_host(std::vector<int64_t>{static_cast<int64_t>(seed), 0}, {2}));
}

Tensor Generator::state() const {
  std::lock_guard lock(impl_->mutex);
  return parameter().value();
}

void Generator::set_state(const Tensor& state) {
  std::lock_guard lock(impl_->mutex);
  parameter().assign(state);
}

Tensor Generator::next(int64_t elements) {
  std::lock_guard lock(impl_->mutex);  // from the read to the assignment
  const Parameter state = parameter();
  Tensor key = state.value();
  state.assign(
      apply_primitive("random_advance", {key}, {{"blocks", (elements + 3) / 4}}, Where::here())[0]);
  return key;
}

Generator& default_generator() {
  static auto* generator = new Generator;  // never destroyed: the driver may go first
  return *generator;
}

}  // namespace ballast
