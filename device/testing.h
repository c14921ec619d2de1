// Shared by this folder's tests: the device under test (BALLAST_DEVICE) and small moves on it.
#pragma once

#include "device/command_list.h"
#include "device/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace ballast::device::testing {

inline DevicePtr open_device(const DeviceOptions& options = {}) {
  return Device::open("", options);
}

template <class T>
BufferPtr upload(const DevicePtr& device, const std::vector<T>& values) {
  BufferPtr buffer = Buffer::create(device, values.size() * sizeof(T));
  device->default_stream().write(*buffer, 0, values.data(), values.size() * sizeof(T));
  return buffer;
}

template <class T>
std::vector<T> download(Stream& stream, Buffer& buffer) {
  std::vector<T> values(buffer.size() / sizeof(T));
  stream.read(values.data(), buffer, 0, values.size() * sizeof(T));
  return values;
}
template <class T>
std::vector<T> download(const BufferPtr& buffer) {
  return download<T>(buffer->device()->default_stream(), *buffer);
}

inline Arg buffer_arg(uint32_t slot) { return {Arg::Kind::kBuffer, 0, slot, 0}; }
template <class T>
Arg scalar_arg(T value) {
  Arg arg{Arg::Kind::kScalar, sizeof(T), 0, 0};
  std::memcpy(&arg.bits, &value, sizeof(T));
  return arg;
}
inline Arg local_arg(uint64_t bytes) { return {Arg::Kind::kLocal, 0, 0, bytes}; }

// Written as Halide writes its kernels: a prelude, address spaces as macros, restrict, a trailing
// __local argument.
inline const char* const kPrelude = R"(
/*OpenCL C test*/
#pragma OPENCL FP_CONTRACT ON
inline float float_from_bits(unsigned int x) {return as_float(x);}
#define halide_maybe_unused(x)
__kernel void _at_least_one_kernel(int x) { }
)";

// out[i] = a[i] * scale + b[i], groups of `local` items.
inline Launch axpy(uint32_t n, float scale, uint64_t local = 1) {
  static const SourcePtr source = make_source(std::string(kPrelude) + R"(
// Address spaces for axpy
#define __address_space__a __global
#define __address_space__out __global
__kernel void axpy(
 __address_space__a const float *restrict _a,
 __address_space__a const float *restrict _b,
 __address_space__out float *restrict _out,
 const float _scale,
 __local int16* __shared)
{
 int _x = get_group_id(0) * get_local_size(0) + get_local_id(0);
 _out[_x] = _a[_x] * _scale + _b[_x];
} // kernel axpy
#undef __address_space__a
#undef __address_space__out
)");
  return {source,
          "axpy",
          "axpy_f32",
          {n, 1, 1},
          {local, 1, 1},
          {buffer_arg(0), buffer_arg(1), buffer_arg(2), scalar_arg(scale), local_arg(0)}};
}

// out[y] = sum_x exp(in[y * n + x]), one work-item per row; the row number comes from dimension 1.
inline Launch row_sum_exp(uint32_t rows, int32_t n) {
  static const SourcePtr source = make_source(std::string(kPrelude) + R"(
#define __address_space__in __global
#define __address_space__out __global
__kernel void row_sum_exp(
 __address_space__in const float *restrict _in,
 __address_space__out float *restrict _out,
 const int _n,
 __local int16* __shared)
{
 int _y = get_group_id(1);
 float _sum = float_from_bits(0 /* 0 */);
 for (int _x = 0; _x < _n; _x++) { _sum = _sum + exp(_in[_y * _n + _x]); }
 _out[_y] = _sum;
}
#undef __address_space__in
#undef __address_space__out
)");
  return {source,       "row_sum_exp", "row_sum_exp_f32",
          {1, rows, 1}, {1, 1, 1},     {buffer_arg(0), buffer_arg(1), scalar_arg(n), local_arg(0)}};
}

// Spins for `rounds` additions, then writes `value` to out[0]: work that takes a while.
inline Launch slow_store(int32_t rounds, int32_t value) {
  static const SourcePtr source = make_source(R"(
__kernel void slow_store(__global int* out, const int rounds, const int value) {
  volatile int sink = 0;
  for (int i = 0; i < rounds; ++i) sink += i;
  out[0] = value;
})");
  return {source,    "slow_store", "slow_store",
          {1, 1, 1}, {1, 1, 1},    {buffer_arg(0), scalar_arg(rounds), scalar_arg(value)}};
}

// Expects `statement` to throw Error of `code` whose message matches `matcher`.
#define EXPECT_ERROR(statement, expected_code, matcher)     \
  try {                                                     \
    statement;                                              \
    ADD_FAILURE() << #statement " did not throw";           \
  } catch (const ::ballast::device::Error& error) {         \
    EXPECT_EQ(error.code(), expected_code) << error.what(); \
    EXPECT_THAT(std::string(error.what()), matcher);        \
  }

}  // namespace ballast::device::testing
