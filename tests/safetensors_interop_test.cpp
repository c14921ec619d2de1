// What we write, Python's safetensors reads, and the other way round.
#include "frontend/state/checkpoint.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace ballast::tests {
namespace {

std::string quoted(const std::string& text) { return "'" + text + "'"; }

TEST(SafetensorsInteropTest, PythonReadsChangesAndWritesBack) {
  const std::string python = BALLAST_SOURCE_DIR "/.venv/bin/python";
  if (std::system((python + " -c 'import safetensors, numpy' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "Python has no safetensors: run tools/setup.sh test";
  }
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("ballast_interop_{}", getpid());
  std::filesystem::create_directory(folder);
  const std::string ours = folder / "ours.safetensors", theirs = folder / "theirs.safetensors";

  auto narrow = [](std::vector<uint16_t> bits, DType dtype) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(bits.data());
    return Tensor::on_host_bytes({bytes, bytes + 2 * bits.size()},
                                 {dtype, {static_cast<int64_t>(bits.size())}});
  };
  const TensorMap tensors = {
      {"weight", Tensor::on_host<float>({1.5f, -2.25f, 3e30f, -0.0f, 5, 6}, {2, 3})},
      {"double", Tensor::on_host_bytes(encode(0.1, DType::kF64), {DType::kF64, {}})},
      {"half", narrow({0x3c00, 0xc100, 0x0400}, DType::kF16)},    // 1, -2.5, 2^-14
      {"brain", narrow({0x3f80, 0xc020, 0x7e80}, DType::kBF16)},  // 1, -2.5, 2^126
      {"index", Tensor::on_host<int32_t>({-3, 1 << 20}, {2, 1})},
      {"step", Tensor::on_host<int64_t>({int64_t{1} << 40}, {1})},
      {"byte", Tensor::on_host<uint8_t>({0, 7, 127}, {3})},
      {"mask", Tensor::on_host<bool>({true, false, true}, {3})},
      {"none", Tensor::on_host<float>({}, {0, 4})},
      {"caf\xc3\xa9 \"x\"", Tensor::on_host<float>({42}, {1, 1, 1})},
  };
  save_checkpoint(ours, tensors, {{"epoch", "3"}, {"note", "\xe4\xbd\xa0\xe5\xa5\xbd"}});
  const std::string command = python + " " BALLAST_SOURCE_DIR "/tests/safetensors_interop.py " +
                              quoted(ours) + " " + quoted(theirs);
  ASSERT_EQ(std::system(command.c_str()), 0);

  const Checkpoint read = load_checkpoint(theirs);
  EXPECT_EQ(read.metadata,
            (Metadata{{"epoch", "3"}, {"note", "\xe4\xbd\xa0\xe5\xa5\xbd"}, {"python", "yes"}}));
  ASSERT_EQ(read.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const Tensor& changed = read.tensors.at(name);
    ASSERT_EQ(changed.type(), tensor.type()) << name;
    const std::vector<uint8_t> before = tensor.to_host_bytes(), after = changed.to_host_bytes();
    for (size_t at = 0; at < before.size(); at += size_of(tensor.dtype())) {
      const double value = decode(&before[at], tensor.dtype());
      const double expected = tensor.dtype() == DType::kBool ? 1 - value : 2 * value;
      EXPECT_EQ(decode(&after[at], tensor.dtype()), expected) << name;
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ballast::tests
