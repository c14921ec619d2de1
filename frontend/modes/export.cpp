#include "frontend/modes/export.h"

#include "frontend/backend/binding.h"
#include "frontend/backend/plugin.h"
#include "frontend/modes/lower.h"
#include "frontend/state/atomic_file.h"

#include <xxhash.h>

#include <mutex>

namespace ballast {

namespace {

constexpr char kCall[] = "export_function";

// The program with states in place of what it captured.
Program without_captures(Program program) {
  size_t number = 0;
  for (const auto& captured : program.captured) {
    if (captured.value.is_traced()) {
      fail(BALLAST_FAILED_PRECONDITION,
           "[{}] the function takes a traced {} from outside: it has no value to store", kCall,
           to_string(captured.value.type()));
    }
    const std::string name = "captured" + std::to_string(number++);
    program.states.push_back({captured.var, Parameter(captured.value, name, false)});
  }
  program.captured.clear();
  return program;
}

const ballast_graph_api& graph_api() { return *plugin().graph; }

}  // namespace

void export_program(const std::string& path, const Program& program) {
  if (Trace::current()) {
    fail(BALLAST_FAILED_PRECONDITION, "[{}] called inside a traced function", kCall);
  }
  const GraphText graph = graph_text(without_captures(program));
  std::vector<std::vector<uint8_t>> states;
  uint64_t state_bytes = 0;
  for (const Parameter& state : graph.states) {
    states.push_back(state.value().to_host_bytes());
    state_bytes += states.back().size();
  }
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> checksum(XXH3_createState(),
                                                                          XXH3_freeState);
  XXH3_64bits_reset(checksum.get());
  XXH3_64bits_update(checksum.get(), graph.text.data(), graph.text.size());
  for (const auto& bytes : states) XXH3_64bits_update(checksum.get(), bytes.data(), bytes.size());
  const std::string head =
      fmt::format("ballast.function 1\ngraph {} states {} checksum {:016x}\n", graph.text.size(),
                  state_bytes, XXH3_64bits_digest(checksum.get()));

  AtomicFile file(path, kCall);
  file.write(head.data(), head.size());
  file.write(graph.text.data(), graph.text.size());
  for (const auto& bytes : states) file.write(bytes.data(), bytes.size());
  file.commit();
}

struct LoadedFunction::Impl {
  std::shared_ptr<Device> device;
  std::vector<TensorType> inputs, outputs;
  ballast_executable* executable = nullptr;
  std::mutex mutex;

  ~Impl() {
    if (!executable) return;
    const ballast_api& api = plugin();
    if (ballast_error* error = api.graph->executable_release(executable)) api.error_destroy(error);
  }

  std::vector<TensorType> describe(int32_t kind, uint64_t count) const {
    std::vector<TensorType> types;
    for (uint64_t i = 0; i < count; ++i) {
      ballast_tensor_desc desc = BALLAST_INIT(ballast_tensor_desc);
      check(graph_api().executable_describe(executable, kind, i, &desc, nullptr));
      types.push_back(from_abi(desc));
    }
    return types;
  }
};

const std::vector<TensorType>& LoadedFunction::inputs() const { return impl_->inputs; }
const std::vector<TensorType>& LoadedFunction::outputs() const { return impl_->outputs; }

std::vector<Tensor> LoadedFunction::operator()(const std::vector<Tensor>& arguments) const {
  std::lock_guard lock(impl_->mutex);
  if (types_of(arguments) != impl_->inputs) {
    std::string given, taken;
    for (const TensorType& type : types_of(arguments)) given += " " + to_string(type);
    for (const TensorType& type : impl_->inputs) taken += " " + to_string(type);
    fail(BALLAST_INVALID_ARGUMENT, "[load_function] the arguments are{}, the function takes{}",
         given.empty() ? " none" : given, taken.empty() ? " none" : taken);
  }
  InputBindings<ballast_binding> inputs;
  for (const Tensor& argument : arguments) inputs.add(argument);
  std::vector<Tensor> results;
  std::vector<ballast_binding> outputs;
  for (const TensorType& type : impl_->outputs) {
    results.push_back(Tensor::of_buffer(type, impl_->device->allocate(type.bytes())));
    outputs.push_back(BALLAST_INIT(ballast_binding));
    outputs.back().buffer = results.back().buffer()->handle();
  }
  check(graph_api().executable_run(impl_->executable, impl_->device->stream(), inputs.data(),
                                   inputs.size(), sizeof(ballast_binding), outputs.data(),
                                   outputs.size(), sizeof(ballast_binding)));
  return results;
}

LoadedFunction load_function(const std::string& path, const JitOptions& options) {
  LoadedFunction loaded;
  loaded.impl_ = std::make_shared<LoadedFunction::Impl>();
  LoadedFunction::Impl& impl = *loaded.impl_;
  impl.device = device();
  const ballast_compile_options abi = to_abi(options);
  check(graph_api().executable_load(impl.device->handle(), to_abi(path), &abi, &impl.executable));
  ballast_executable_info info = BALLAST_INIT(ballast_executable_info);
  check(graph_api().executable_info(impl.executable, &info));
  impl.inputs = impl.describe(BALLAST_INPUT, info.input_count);
  impl.outputs = impl.describe(BALLAST_OUTPUT, info.output_count);
  return loaded;
}

}  // namespace ballast
