#include "device/packed_scalars.h"

#include "device/testing.h"

#include <fmt/format.h>

namespace ballast::device {
namespace {

using testing::buffer_arg;
using testing::download;
using testing::local_arg;
using testing::open_device;
using testing::scalar_arg;

TEST(PackedScalarsTest, MovesScalarsBehindTheOtherParameters) {
  EXPECT_EQ(
      pack_scalars("__kernel void f(\n const int _a,\n __global float *restrict _x,\n"
                   " const uchar _b,\n const float _c,\n __local int16* __shared)\n{\n}\n"),
      "__kernel void f(\n __global float *restrict _x,\n const uchar _b,\n"
      " __local int16* __shared, const int16 _packed0)\n{\n"
      " const int _a = as_int(_packed0.s0);\n const float _c = as_float(_packed0.s1);\n\n}\n");
}

TEST(PackedScalarsTest, LeavesOneScalarAlone) {
  const std::string text = "__kernel void f(int x) { }\n__kernel void g(__global int* p) { }\n";
  EXPECT_EQ(pack_scalars(text), text);
}

// out[i] = the i-th of 20 scalars of 4 bytes, among arguments of other kinds; the last is a byte.
Launch store_scalars(bool is_packed, uint32_t start) {
  std::string parameters, body;
  Launch launch;
  for (uint32_t i = 0; i < 20; ++i) {
    const char* type = i % 3 == 0 ? "int" : i % 3 == 1 ? "uint" : "float";
    parameters += fmt::format(" const {} _a{},", type, i);
    body += fmt::format("  out[{}] = as_uint(_a{});\n", i, i);
    launch.args.push_back(scalar_arg(start + i * 0x01010101u));
    if (i != 9) continue;
    parameters += " __global uint* restrict out, const uchar small,";
    launch.args.push_back(buffer_arg(0));
    launch.args.push_back(scalar_arg<uint8_t>(200));
  }
  launch.args.push_back(local_arg(1));
  launch.source = make_source(
      fmt::format(
          "__kernel void store_scalars({} __local int16* shared)\n{{\n{}  out[20] = small;\n}}\n",
          parameters, body),
      "", is_packed);
  launch.kernel = launch.label = "store_scalars";
  return launch;
}

TEST(PackedScalarsTest, EveryScalarArrives) {
  const DevicePtr device = open_device();
  const BufferPtr out = Buffer::create(device, 21 * sizeof(uint32_t));
  Buffer* const buffers[] = {out.get()};
  // A second launch with one new value sets that vector again, a third sets none.
  for (const uint32_t start : {5u, 0x7f000000u, 0x7f000000u}) {
    for (const bool is_packed : {false, true}) {
      device->default_stream().fill(*out, 0, out->size(), "", 1);
      device->default_stream().submit(store_scalars(is_packed, start), buffers, 1);
      const auto values = download<uint32_t>(out);
      for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(values[i], start + i * 0x01010101u) << i;
      EXPECT_EQ(values[20], 200u);
    }
  }
}

TEST(PackedScalarsTest, RecordedLaunchesKeepTheirOwn) {
  const DevicePtr device = open_device();
  CommandList list(device);
  std::vector<BufferPtr> outs;
  for (uint32_t start : {1u, 1000u}) {
    outs.push_back(Buffer::create(device, 21 * sizeof(uint32_t)));
    list.append(store_scalars(true, start), {Operand{outs.back()}});
  }
  list.freeze(Replay::kList);
  list.replay(device->default_stream(), {});
  EXPECT_EQ(download<uint32_t>(outs[0])[19], 1u + 19 * 0x01010101u);
  EXPECT_EQ(download<uint32_t>(outs[1])[19], 1000u + 19 * 0x01010101u);
}

}  // namespace
}  // namespace ballast::device
