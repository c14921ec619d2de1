// Reading and writing the ABI's sized structs and strings.
#pragma once

#include "ballast/ballast.h"
#include "device/error.h"
#include "graph/op.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace ballast::plugin_api {

// Size of each struct in the first release, frozen: what every caller has at least.
template <class T>
struct FirstSize;
#define BALLAST_FIRST_SIZE(type, size)                        \
  template <>                                                 \
  struct FirstSize<type> {                                    \
    static constexpr uint64_t value = size;                   \
    static_assert(sizeof(type) >= size, "structs only grow"); \
  }
BALLAST_FIRST_SIZE(ballast_tensor_desc, 88);
BALLAST_FIRST_SIZE(ballast_attr, 88);
BALLAST_FIRST_SIZE(ballast_device_info, 104);
BALLAST_FIRST_SIZE(ballast_device_options, 32);
BALLAST_FIRST_SIZE(ballast_memory_stats, 80);
BALLAST_FIRST_SIZE(ballast_buffer_info, 24);
BALLAST_FIRST_SIZE(ballast_op_call, 80);
BALLAST_FIRST_SIZE(ballast_op_info, 48);
BALLAST_FIRST_SIZE(ballast_launch, 56);
BALLAST_FIRST_SIZE(ballast_compile_options, 24);
BALLAST_FIRST_SIZE(ballast_executable_info, 120);
BALLAST_FIRST_SIZE(ballast_binding, 32);
BALLAST_FIRST_SIZE(ballast_sink_options, 24);
BALLAST_FIRST_SIZE(ballast_queue_binding, 40);
BALLAST_FIRST_SIZE(ballast_sink_info, 56);
BALLAST_FIRST_SIZE(ballast_counters, 96);
BALLAST_FIRST_SIZE(ballast_profile_row, 56);
BALLAST_FIRST_SIZE(ballast_host, 32);
BALLAST_FIRST_SIZE(ballast_plugin_info, 64);
#undef BALLAST_FIRST_SIZE

void check_header(uint64_t struct_size, uint64_t first_size, const ballast_chain* next,
                  const char* what);

// A whole T from a caller's struct of any size: fields it lacks are zero, a tail is ignored.
template <class T>
T read_struct(const T* given, const char* what) {
  if (given == nullptr) device::fail(device::Code::kInvalidArgument, "{} is NULL", what);
  check_header(given->struct_size, FirstSize<T>::value,
               given->struct_size >= FirstSize<T>::value ? given->next : nullptr, what);
  T result{};
  std::memcpy(static_cast<void*>(&result), given,
              std::min<uint64_t>(given->struct_size, sizeof(T)));
  return result;
}

// Optional structs: NULL is all zeros.
template <class T>
T read_optional(const T* given, const char* what) {
  return given == nullptr ? T{} : read_struct(given, what);
}

// A count beyond reason is a mistake that memory would be asked for.
inline void check_count(uint64_t count, const char* what) {
  constexpr uint64_t kMost = 1 << 24;
  if (count <= kMost) return;
  device::fail(device::Code::kInvalidArgument, "{}: {} elements, at most {} are possible", what,
               count, kMost);
}

template <class T>
std::vector<T> read_array(const T* first, uint64_t count, uint64_t stride, const char* what) {
  if (count > 0 && first == nullptr) {
    device::fail(device::Code::kInvalidArgument, "{} is NULL", what);
  }
  check_count(count, what);
  std::vector<T> result;
  result.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const auto* bytes = reinterpret_cast<const char*>(first) + i * stride;
    result.push_back(read_struct(reinterpret_cast<const T*>(bytes), what));
    if (stride < result.back().struct_size) {
      device::fail(device::Code::kInvalidArgument, "{}: stride {} is below struct_size {}", what,
                   stride, result.back().struct_size);
    }
  }
  return result;
}

// Fills a caller's struct of any size; struct_size and next stay the caller's.
template <class T>
void write_struct(T* out, T value, const char* what) {
  if (out == nullptr) device::fail(device::Code::kInvalidArgument, "{} is NULL", what);
  const uint64_t size = out->struct_size;
  check_header(size, FirstSize<T>::value, size >= FirstSize<T>::value ? out->next : nullptr, what);
  value.struct_size = size;
  value.next = out->next;
  std::memcpy(static_cast<void*>(out), &value, std::min<uint64_t>(size, sizeof(T)));
}

std::string to_string(ballast_str text);
inline ballast_str to_str(const std::string& text) { return {text.data(), text.size()}; }

kernels::TensorType to_type(const ballast_tensor_desc& desc, const char* what);
ballast_tensor_desc to_desc(const kernels::TensorType& type);
graph::Attrs to_attrs(const ballast_op_call& call);

}  // namespace ballast::plugin_api
