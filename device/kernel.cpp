#include "device/kernel.h"

#include <cstring>

namespace ballast::device {

Geometry geometry_of(const Launch& launch) {
  Geometry geometry;
  for (size_t i = 0; i < 3; ++i) {
    const uint64_t global = launch.global[i];
    const uint64_t local = launch.local[i];
    if (global == 0 || local == 0 || global % local != 0) {
      fail(Code::kInvalidArgument, "[{}] {} work-items in groups of {} along dimension {}",
           launch.label, global, local, i);
    }
    geometry.global[i] = global;
    geometry.local[i] = local;
    if (global > 1) geometry.dimensions = static_cast<cl_uint>(i + 1);
  }
  return geometry;
}

// True if the argument holds `value` already; else notes that it will. PoCL sets an argument in
// about 5 ns, Intel's runtime in about 50: comparing costs less than either.
bool Kernel::holds(cl_uint index, uint64_t value) {
  if (index >= held_.size()) held_.resize(index + 1);
  Held& held = held_[index];
  if (held.is_set && held.value == value) return true;
  held = {value, true};
  return false;
}

void Kernel::set_buffer(cl_uint index, const Buffer& buffer) {
  if (holds(index, buffer.serial())) return;
  const cl_mem mem = buffer.mem();
  const cl_int code = clSetKernelArg(get(), index, sizeof(mem), &mem);
  if (code != CL_SUCCESS) held_[index].is_set = false;
  cl_check(code, "clSetKernelArg");
}

void Kernel::set_scalar(cl_uint index, const void* value, size_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, value, size);
  if (holds(index, bits)) return;
  const cl_int code = clSetKernelArg(get(), index, size, value);
  if (code != CL_SUCCESS) held_[index].is_set = false;
  cl_check(code, "clSetKernelArg");
}

void Kernel::set_values(const Launch& launch) {
  for (cl_uint i = 0; i < launch.args.size(); ++i) {
    const Arg& arg = launch.args[i];
    if (arg.kind == Arg::Kind::kScalar) {
      set_scalar(i, &arg.bits, arg.size);
    } else if (arg.kind == Arg::Kind::kLocal) {
      // Zero bytes of local memory cannot be asked for.
      const size_t bytes = arg.bits == 0 ? 1 : arg.bits;
      if (holds(i, bytes)) continue;
      const cl_int code = clSetKernelArg(get(), i, bytes, nullptr);
      if (code != CL_SUCCESS) held_[i].is_set = false;
      cl_check(code, "clSetKernelArg");
    }
  }
}

}  // namespace ballast::device
