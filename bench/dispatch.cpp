// What one call costs the calling thread, layer by layer: OpenCL's own launch, the plugin's (ABI),
// the frontend's. The work itself is tiny, and waited for outside of the measured time.
//
// `own_ns` is the time outside of OpenCL: what a layer and those below it add to the device's
// launch; `opencl_ns` the rest. The latter is no constant: the longer a caller takes between two
// launches, the more often a driver's worker has gone to sleep and is woken by the next.
#include "bench/opencl_time.h"
#include "frontend/backend/plugin.h"
#include "frontend/ballast_frontend.h"
#include "frontend/modes/lower.h"

#include <benchmark/benchmark.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <chrono>
#include <cstdlib>

namespace {

using namespace ballast;

constexpr int kBurst = 64;  // calls between two waits; few enough that the queue never fills
constexpr int64_t kElements = 16;

// Times bursts of `call`, the mean of each as one iteration.
template <class Call, class Wait>
void run_bursts(benchmark::State& state, Call&& call, Wait&& wait) {
  for (int i = 0; i < kBurst; ++i) call();
  wait();
  double seconds = 0, opencl_ns = 0;
  for (auto _ : state) {
    const uint64_t opencl_before = bench::opencl_nanoseconds();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kBurst; ++i) call();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    opencl_ns += static_cast<double>(bench::opencl_nanoseconds() - opencl_before);
    seconds += taken.count();
    state.SetIterationTime(taken.count() / kBurst);
    wait();
  }
  const double calls = kBurst * static_cast<double>(state.iterations());
  state.counters["opencl_ns"] = opencl_ns / calls;
  state.counters["own_ns"] = (seconds * 1e9 - opencl_ns) / calls;
}

Tensor sample() { return Tensor::ones({kElements}); }

void require(cl_int status, const char* what) {
  if (status == CL_SUCCESS) return;
  fail(BALLAST_INTERNAL, "[dispatch] {} gave OpenCL status {}", what, status);
}

cl_device_id find_cl_device(const std::string& wanted) {
  cl_platform_id platforms[16];
  cl_uint platform_count = 0;
  require(clGetPlatformIDs(16, platforms, &platform_count), "clGetPlatformIDs");
  for (cl_uint p = 0; p < platform_count; ++p) {
    cl_device_id devices[16];
    cl_uint count = 0;
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 16, devices, &count)) continue;
    for (cl_uint d = 0; d < count; ++d) {
      char name[256] = {};
      require(clGetDeviceInfo(devices[d], CL_DEVICE_NAME, sizeof name, name, nullptr), "its name");
      if (wanted == name) return devices[d];
    }
  }
  fail(BALLAST_NOT_FOUND, "[dispatch] OpenCL has no device {}", wanted);
}

// A kernel of three buffers, launched as directly as OpenCL allows.
void opencl_launch(benchmark::State& state) {
  const char* source =
      "kernel void add(global const float* a, global const float* b, global float* c) {"
      "  c[get_global_id(0)] = a[get_global_id(0)] + b[get_global_id(0)]; }";
  cl_int status = CL_SUCCESS;
  cl_device_id device = find_cl_device(device_info().name);
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  require(status, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
  require(status, "clCreateCommandQueue");
  cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &status);
  require(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  cl_kernel kernel = clCreateKernel(program, "add", &status);
  cl_mem memory[3];
  for (cl_mem& m : memory) {
    m = clCreateBuffer(context, CL_MEM_READ_WRITE, kElements * sizeof(float), nullptr, &status);
    require(status, "clCreateBuffer");
  }
  auto call = [&] {
    for (cl_uint i = 0; i < 3; ++i) clSetKernelArg(kernel, i, sizeof(cl_mem), &memory[i]);
    const size_t global = kElements;
    cl_event event;
    require(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &global, 0, nullptr, &event),
            "clEnqueueNDRangeKernel");
    clReleaseEvent(event);
  };
  run_bursts(state, call, [&] { clFinish(queue); });
  for (cl_mem m : memory) clReleaseMemObject(m);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
}

// op_launch with buffers at hand.
void abi_op_launch(benchmark::State& state) {
  const Tensor a = sample(), b = sample();
  const auto where = device();
  ballast_tensor_desc descs[2] = {BALLAST_INIT(ballast_tensor_desc),
                                  BALLAST_INIT(ballast_tensor_desc)};
  for (ballast_tensor_desc& desc : descs) {
    desc.dtype = BALLAST_F32;
    desc.rank = 1;
    desc.dims[0] = kElements;
  }
  ballast_op_call call = BALLAST_INIT(ballast_op_call);
  call.name = {"add", 3};
  call.inputs = descs;
  call.input_count = 2;
  call.input_stride = sizeof(ballast_tensor_desc);
  ballast_op* op = nullptr;
  check(plugin().op->op_prepare(where->handle(), &call, &op));
  const BufferPtr result = where->allocate(kElements * sizeof(float));
  ballast_buffer* inputs[] = {a.buffer()->handle(), b.buffer()->handle()};
  ballast_buffer* outputs[] = {result->handle()};
  ballast_launch launch = BALLAST_INIT(ballast_launch);
  launch.inputs = inputs;
  launch.input_count = 2;
  launch.outputs = outputs;
  launch.output_count = 1;
  run_bursts(
      state, [&] { check(plugin().op->op_launch(op, where->stream(), &launch)); },
      [] { synchronize(); });
  check(plugin().op->op_release(op));
}

void eager_add(benchmark::State& state) {
  const Tensor a = sample(), b = sample();
  run_bursts(
      state, [&] { benchmark::DoNotOptimize(a + b); }, [] { synchronize(); });
}

Tensor two_ops(const Tensor& a, const Tensor& b) { return ops::tanh(a + b); }

void abi_executable_run(benchmark::State& state) {
  const Tensor a = sample(), b = sample();
  const auto where = device();
  const Program program =
      trace([](const std::vector<Tensor>& args) { return std::vector{two_ops(args[0], args[1])}; },
            types_of({a, b}));
  ballast_executable* executable = lower(program, *where, {}).executable;
  const BufferPtr result = where->allocate(kElements * sizeof(float));
  ballast_binding inputs[2] = {BALLAST_INIT(ballast_binding), BALLAST_INIT(ballast_binding)};
  inputs[0].buffer = a.buffer()->handle();
  inputs[1].buffer = b.buffer()->handle();
  ballast_binding output = BALLAST_INIT(ballast_binding);
  output.buffer = result->handle();
  auto call = [&] {
    check(plugin().graph->executable_run(executable, where->stream(), inputs, 2, sizeof *inputs,
                                         &output, 1, sizeof output));
  };
  run_bursts(state, call, [] { synchronize(); });
  check(plugin().graph->executable_release(executable));
}

void jit_call(benchmark::State& state) {
  const Tensor a = sample(), b = sample();
  auto fn = jit(two_ops);
  run_bursts(
      state, [&] { benchmark::DoNotOptimize(fn(a, b)); }, [] { synchronize(); });
}

void options(benchmark::internal::Benchmark* row) {
  row->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(1000)->Repetitions(5);
}
BENCHMARK(opencl_launch)->Apply(options);
BENCHMARK(abi_op_launch)->Apply(options);
BENCHMARK(eager_add)->Apply(options);
BENCHMARK(abi_executable_run)->Apply(options);
BENCHMARK(jit_call)->Apply(options);

}  // namespace

BENCHMARK_MAIN();
