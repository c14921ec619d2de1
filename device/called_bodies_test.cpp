#include "device/called_bodies.h"

#include "device/testing.h"

#include <fmt/format.h>

namespace ballast::device {
namespace {

using testing::buffer_arg;
using testing::download;
using ::testing::HasSubstr;
using testing::local_arg;
using ::testing::Not;
using testing::open_device;
using testing::scalar_arg;

TEST(CalledBodiesTest, TakesABodyOut) {
  const std::string text = call_bodies(
      "inline int twice(int x) {return 2 * x;}\n"
      "__kernel void f(__global float* restrict out, const int n, __local int16* __shared) {\n"
      "  // get_global_id(0)\n"
      "  int g = get_group_id( 1 ); int l = get_local_id(0);\n"
      "  out[g] = twice(n) + l;\n"
      "}\n");
  EXPECT_THAT(text, HasSubstr("inline int twice(int x) {return 2 * x;}\n"));
  EXPECT_THAT(text, HasSubstr("static BALLAST_CALLED void _body_f(const size_t _bg1,const size_t "
                              "_bl0,__global float* restrict out, const int n, __local int16* "
                              "__shared) {\n"));
  EXPECT_THAT(text, HasSubstr("int g = _bg1; int l = _bl0;\n"));
  EXPECT_THAT(text, HasSubstr("__kernel void f(__global float* restrict out, const int n, __local "
                              "int16* __shared)  { _body_f(get_group_id(1), get_local_id(0), out, "
                              "n, __shared); }\n"));
}

TEST(CalledBodiesTest, LeavesOtherKernelsAlone) {
  const std::string head = "__kernel void f(__global int* out, __local int* shared) ";
  for (const char* body :
       {"{ out[get_global_id(0)] = 1; }", "{ out[get_group_id(0)] = get_num_groups(0); }",
        "{ int d = 1; out[0] = get_group_id(d); }", "{ __local int x[4]; out[0] = 1; }",
        "{ const local int* x = shared; out[0] = 1; }",
        "{ barrier(CLK_GLOBAL_MEM_FENCE); out[0] = 1; }", "{ out[0] = get_local_size(0); }"}) {
    const std::string text = call_bodies(head + body);
    EXPECT_THAT(text, HasSubstr(head + body));
    EXPECT_THAT(text, Not(HasSubstr("_body_f")));
  }
  for (const char* text : {"__kernel void f(__global int* out) { ", "__kernel void f(int (*x)) { }",
                           "__kernel int f(int x) { }"}) {
    EXPECT_EQ(call_bodies(text), text) << "not understood";
  }
}

// A kernel with attributes, of several items and dimensions, with arguments of all kinds, which
// asks for ids itself, in a macro and in a function: what it wrote as words. Without a barrier its
// body is called; PoCL's programs are changed when they are built.
std::vector<uint32_t> results(bool is_called) {
  static constexpr uint32_t kItems = 4, kGroups = 6, kColumns = 3;
  const std::string text = fmt::format(
      "#define COLUMNS {}\n"
      "#define COLUMN get_group_id(1)\n"
      "typedef float16 wide;\n"
      "__constant float kept[2] = {{1.5f, 2.5f}};\n"
      "inline wide scaled(wide x, float s) {{ return x * s; }}\n"
      "inline uint own() {{ return get_local_id(0); }}\n"
      "__kernel __attribute__((reqd_work_group_size({}, 1, 1))) void all_kinds(\n"
      " __global uint* restrict out, const uchar small, const ulong large, const float s,\n"
      " __local int16* __shared)\n"
      "{{\n"
      "  uint column = COLUMN, item = get_group_id(0) * {} + own();\n"
      "  float on_stack[16];\n"
      "  vstore16(scaled((wide)(item + kept[column & 1]), s), 0, on_stack);\n"
      "  float sum = 0;\n"
      "  for (int i = 0; i < 16; ++i) sum += on_stack[i] * i;\n"
      "  ((__local float*)__shared)[own()] = sum;\n"
      "  sum = *(( __local const float*)__shared + own());\n"
      "  out[item * COLUMNS + column] = as_uint(sum) + small + (uint)(large >> 32);{}\n"
      "}}\n",
      kColumns, kItems, kItems, is_called ? "" : " barrier(CLK_LOCAL_MEM_FENCE);");
  const std::string called = call_bodies(text);
  EXPECT_EQ(called.find("_body_") != std::string::npos, is_called);
  const DevicePtr device = open_device();
  const uint32_t count = kItems * kGroups * kColumns;
  const BufferPtr out = Buffer::create(device, count * sizeof(uint32_t));
  Buffer* const buffers[] = {out.get()};
  const Launch launch{make_source(device->info().is_pocl() ? text : called),
                      "all_kinds",
                      "all_kinds",
                      {kItems * kGroups, kColumns, 1},
                      {kItems, 1, 1},
                      {buffer_arg(0), scalar_arg(uint8_t{200}), scalar_arg(uint64_t{7} << 32),
                       scalar_arg(0.37f), local_arg(64)}};
  device->default_stream().submit(launch, buffers, 1);
  return download<uint32_t>(out);
}

TEST(CalledBodiesTest, ComputesTheSame) {
  const std::vector<uint32_t> plain = results(false);
  EXPECT_EQ(results(true), plain);
  EXPECT_NE(plain.front(), plain.back());
}

}  // namespace
}  // namespace ballast::device
