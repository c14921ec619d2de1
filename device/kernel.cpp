#include "device/kernel.h"

#include <algorithm>
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

void Kernel::check_set(cl_uint index, cl_int code, const char* call) {
  if (code != CL_SUCCESS) held_[index].is_set = false;
  cl_check(code, call);
}

void Kernel::set(cl_uint index, const void* value, size_t size) {
  check_set(index, clSetKernelArg(get(), index, size, value), "clSetKernelArg");
}

void Kernel::set_buffer(cl_uint argument, const Buffer& buffer) {
  const cl_uint index = index_of(argument);
  if (holds(index, buffer.serial())) return;
  if (const char* const shared = buffer.shared()) {
    return check_set(index, clSetKernelArgSVMPointer(get(), index, shared),
                     "clSetKernelArgSVMPointer");
  }
  const cl_mem mem = buffer.mem();
  set(index, &mem, sizeof(mem));
}

void Kernel::set_scalar(cl_uint argument, const void* value, size_t size) {
  values_of_ = 0;
  const cl_uint index = index_of(argument);
  uint64_t bits = 0;
  std::memcpy(&bits, value, size);
  if (!holds(index, bits)) set(index, value, size);
}

void Kernel::set_packed(const Launch& launch) {
  const std::vector<size_t>& packed = where_->packed;
  const bool is_first = lanes_.empty();
  lanes_.resize((packed.size() + kPackedLanes - 1) / kPackedLanes * kPackedLanes);
  for (size_t from = 0; from < packed.size(); from += kPackedLanes) {
    bool has_changed = is_first;
    for (size_t i = from; i < std::min(from + kPackedLanes, packed.size()); ++i) {
      const auto bits = static_cast<uint32_t>(launch.args[packed[i]].bits);
      has_changed |= lanes_[i] != bits;
      lanes_[i] = bits;
    }
    if (!has_changed) continue;
    const auto index = where_->first_vector + static_cast<cl_uint>(from / kPackedLanes);
    const cl_int code =
        clSetKernelArg(get(), index, kPackedLanes * sizeof(uint32_t), &lanes_[from]);
    if (code != CL_SUCCESS) lanes_.clear();
    cl_check(code, "clSetKernelArg");
  }
}

void Kernel::set_values(const Launch& launch) {
  if (launch.serial != 0 && launch.serial == values_of_) return;
  values_of_ = 0;
  if (where_ && !where_->packed.empty()) set_packed(launch);
  const cl_uint first_packed = where_ ? where_->first_vector : ~cl_uint{0};
  for (cl_uint i = 0; i < launch.args.size(); ++i) {
    const Arg& arg = launch.args[i];
    const cl_uint index = index_of(i);
    if (arg.kind == Arg::Kind::kBuffer || index >= first_packed) continue;
    if (arg.kind == Arg::Kind::kScalar) {
      set_scalar(i, &arg.bits, arg.size);
    } else {
      // Zero bytes of local memory cannot be asked for.
      const size_t bytes = arg.bits == 0 ? 1 : arg.bits;
      if (!holds(index, bytes)) set(index, nullptr, bytes);
    }
  }
  values_of_ = launch.serial;
}

}  // namespace ballast::device
