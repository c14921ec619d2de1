#include "graph/exported.h"

#include "graph/test_support.h"
#include "graph/text.h"

#include <xxhash.h>

#include <unistd.h>

#include <fstream>

namespace ballast::graph {
namespace {

using namespace testing;
using device::Code;

// A file as its head describes it, right or not.
std::string exported(const std::string& text, const std::string& states) {
  const std::string body = text + states;
  return fmt::format("ballast.function 1\ngraph {} states {} checksum {:016x}\n", text.size(),
                     states.size(), XXH3_64bits(body.data(), body.size())) +
         body;
}

std::shared_ptr<Executable> load(const std::string& bytes) {
  const std::string path = ::testing::TempDir() + fmt::format("exported_test_{}", getpid());
  std::ofstream(path, std::ios::binary) << bytes;
  return load_exported(test_device(), path, {});
}

const char* const kText =
    "ballast.graph 1\ninput %0 \"x\": f32[2]\nstate %1 \"w\": f32[2]\nstate %2 \"n\": f32[]\n"
    "%3 = mul(%0, %1) : f32[2]\n%4 = add(%2, %2) : f32[]\nupdate %2 = %4\noutput %3, %4\n";
const float kStates[] = {2, 3, 5};

TEST(Exported, RunsWithTheFilesStates) {
  const std::string states(reinterpret_cast<const char*>(kStates), sizeof(kStates));
  const auto exe = load(exported(kText, states));
  const auto product = upload({0, 0}), sum = upload({0});
  for (const float expected : {10.0f, 20.0f}) {
    exe->run(test_device()->default_stream(), {{upload({10, 100}), nullptr}}, {product, sum});
    EXPECT_EQ(download(product), (std::vector<float>{20, 300}));
    EXPECT_EQ(download(sum)[0], expected);
  }
}

TEST(Exported, WhatDoesNotFitIsRefused) {
  const std::string states(reinterpret_cast<const char*>(kStates), sizeof(kStates));
  auto refuses = [](const std::string& bytes, const std::string& part) {
    expect_error(Code::kInvalidArgument, part, [&] { load(bytes); });
  };
  refuses(exported(kText, states.substr(4)), "holds 8 bytes of states, the graph's are 12");
  refuses(exported("ballast.graph 1\noutput %3\n", ""), "%3 is not defined");
  refuses(exported("ballast.graph 1\nstate %0 \"w\": f32[1, 1, 1, 1, 1, 1, 1, 1, 1]\n", states),
          "rank 9, at most 8 is possible");
  refuses(exported("ballast.graph 1\nstate %0 \"w\": f32[2305843009213693952]\n", states),
          "is too large");
  refuses(exported("ballast.graph 1\n%0 = nothing() : f32[]\n", ""), "unknown op");
  std::string deep = "ballast.graph 1\ninput %0 \"p\": bool[]\n";
  for (int i = 0; i < 100000; ++i) deep += "%1 = cond(%0, %0) : bool[] {\ninput %0 \"p\": bool[]\n";
  refuses(exported(deep, ""), "more than 64 regions within regions");
  refuses("ballast.function 1\ngraph 99999999999999999999 states 0 checksum 0\n", "damaged head");
  refuses("ballast.function 1\ngraph 18446744073709551615 states 1 checksum 0\n",
          "holds 0 bytes after its head, which names 18446744073709551615 and 1");
  refuses("ballast.function 1\ngraph 0 states 0 checksum 0\n", "the checksum is another one");
}

}  // namespace
}  // namespace ballast::graph
