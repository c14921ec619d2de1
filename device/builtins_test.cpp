#include "device/builtins.h"

#include "device/testing.h"

#include <fmt/format.h>

namespace ballast::device {
namespace {

using testing::buffer_arg;
using testing::download;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::open_device;
using testing::upload;

// out[i] = the i-th expression of x, y and z, floats or vectors of them, as 16 words.
std::string evaluate(const std::vector<std::string>& expressions) {
  std::string body;
  for (size_t i = 0; i < expressions.size(); ++i) {
    body += fmt::format("  out[{}] = as_uint16({});\n", i, expressions[i]);
  }
  return "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n"
         "__kernel void evaluate(__global const float16* in, __global uint16* out)\n{\n"
         "  const float16 x = in[0], y = in[1], z = in[2];\n"
         "  const int16 i = convert_int16(x), j = convert_int16(y);\n" +
         body + "}\n";
}

std::vector<uint32_t> values_of(const DevicePtr& device, const std::string& text, size_t count) {
  std::vector<float> in(48);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * i % 47) * 0.37f - 4.0f;
  in[20] = std::numeric_limits<float>::quiet_NaN();
  const BufferPtr x = upload(device, in), out = Buffer::create(device, count * 64);
  Buffer* const buffers[] = {x.get(), out.get()};
  const Launch launch{make_source(text), "evaluate", "evaluate",
                      {1, 1, 1},         {1, 1, 1},  {buffer_arg(0), buffer_arg(1)}};
  device->default_stream().submit(launch, buffers, 2);
  return download<uint32_t>(out);
}

const std::vector<std::string> kExpressions = {
    "exp(x)",
    "log(y)",
    "sqrt(z)",
    "tanh(x)",
    "erf(y)",
    "rint(x)",
    "fabs(x)",
    "floor(y)",
    "pow(x, y)",
    "fmod(x, z)",
    "fmax(x, y)",
    "fma(x, y, z)",
    "min(x, y)",
    "max(x, y.s0)",
    "clamp(x, -1.0f, z.s1)",
    "isless(x, y)",
    "isnan(y)",
    "select(x, y, isequal(x, z))",
    "select(x, y, as_uint16(i))",
    "abs(i)",
    "mul_hi(i, j)",
    "(int16)(any(i < j) + 2 * all(convert_char16(i) < convert_char16(j)))",
    "(int16)(any(convert_long16(i) < convert_long16(j)))",
    "clz(as_uint16(i))",
    "add_sat(i, j)",
    "rotate(i, j)",
    "min(i, j)",
    "convert_int16_rte(x)",
    "convert_float16(convert_uchar16_sat(x))",
    "convert_int16(max(convert_long16(x), convert_long16(y)))",
    "convert_float16(sqrt(convert_double16(x)))",
    "(int16)(isless((double)x.s3, 1.0))",
    "(float16)(max((short)x.s3, (short)y.s4))",
    "(int16)((int)get_global_size(0))",
    "(int16)((int)get_work_dim())",
    "(int16)((int)atom_xchg((volatile __global ulong*)out, 7ul))",
    "(int16)((int)atom_inc((volatile __global ulong*)out))",
    "(int16)((int)atom_cmpxchg((volatile __global ulong*)out, 8ul, 9ul))"};

TEST(BuiltinsTest, ProgramsComputeTheSameWithAndWithoutTheHeader) {
  const DevicePtr device = open_device();
  const std::string text = evaluate(kExpressions);
  ASSERT_TRUE(declare_builtins(text));
  const std::string with_header = text + "// half\n";
  ASSERT_FALSE(declare_builtins(with_header)) << "halves are not among the declarations";
  EXPECT_EQ(values_of(device, text, kExpressions.size()),
            values_of(device, with_header, kExpressions.size()));
}

// Tells that no call of the text needs the header, without which a build could also succeed.
TEST(BuiltinsTest, PoclBuildsWhatIsDeclared) {
  const DevicePtr device = open_device();
  if (!device->info().is_pocl()) GTEST_SKIP() << "PoCL's header";
  const std::string text = evaluate(kExpressions);
  const SourcePtr alone = make_source(*declare_builtins(text) + text + "// half\n", kWithoutHeader);
  EXPECT_NE(device->make_kernel(alone, "evaluate"), nullptr);
  const SourcePtr nothing = make_source(text + "// half\n", kWithoutHeader);
  EXPECT_ERROR(device->make_kernel(nothing, "evaluate"), Code::kBuildFailed, HasSubstr("exp"));
}

TEST(BuiltinsTest, OtherFunctionsAreTakenFromTheHeader) {
  const std::string text = evaluate({"smoothstep(x, y, z)"});
  EXPECT_THAT(*declare_builtins(text), Not(HasSubstr("smoothstep")));
  EXPECT_EQ(values_of(open_device(), text, 1), values_of(open_device(), text + "// half\n", 1));
}

TEST(BuiltinsTest, DeclaresWhatIsCalled) {
  EXPECT_EQ(*declare_builtins("int f(int x) { return x; } // sqrt, fma"), "");
  const std::string declarations = *declare_builtins("x = abs(y); z = convert_float4 (w);");
  EXPECT_THAT(declarations,
              HasSubstr("ushort8 __attribute__((overloadable, const)) abs(short8);\n"));
  EXPECT_THAT(declarations, Not(HasSubstr("float")));
}

}  // namespace
}  // namespace ballast::device
