// The file format: what is written is read again, and whatever a damaged or hostile file says is
// refused with the file's and the tensor's name.
#include "frontend/state/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ballast {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class SafetensorsTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* name = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("ballast_safetensors_{}_{}", name, getpid());
    std::filesystem::create_directory(folder_);
    path_ = (folder_ / "x.safetensors").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  std::string read() {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // A file of this header and `data` bytes.
  void write_file(const std::string& header, size_t data) {
    std::string bytes;
    for (size_t i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> 8 * i);
    write(bytes + header + std::string(data, '\1'));
  }
  std::string error() {
    try {
      SafetensorsReader reader(path_);
      for (const auto& [name, type] : reader.types()) reader.read(name);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  std::string error_of(const std::string& header, size_t data = 8) {
    write_file(header, data);
    const std::string message = error();
    EXPECT_THAT(message, testing::AnyOf("no error", HasSubstr("[load_checkpoint] " + path_)));
    return message;
  }

  std::filesystem::path folder_;
  std::string path_;
};

TensorMap samples() {
  return {
      {"a.weight", Tensor::on_host<float>({1.5f, -2, 3, 4, 5, 6}, {2, 3})},
      {"b", Tensor::on_host<bool>({true, false, true}, {3})},
      {"count", Tensor::on_host<int64_t>({-(int64_t{1} << 40)}, {})},
      {"empty", Tensor::on_host<int32_t>({}, {0, 5})},
      {"half", Tensor::on_host_bytes({0x80, 0x3f, 0x00, 0xc0}, {DType::kBF16, {2}})},
      {"name with \"quotes\" and \xc3\xa9", Tensor::on_host<uint8_t>({7}, {1})},
  };
}

TEST_F(SafetensorsTest, RoundTripsTypesAndMetadata) {
  const TensorMap tensors = samples();
  const Metadata metadata = {{"epoch", "3"}, {"note", "\xe4\xbd\xa0"}};
  write_safetensors(path_, tensors, metadata);
  SafetensorsReader reader(path_);
  EXPECT_EQ(reader.metadata(), metadata);
  ASSERT_EQ(reader.types().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(reader.read(name).type(), tensor.type()) << name;
    EXPECT_EQ(reader.read(name).to_host_bytes(), tensor.to_host_bytes()) << name;
  }
}

TEST_F(SafetensorsTest, HoldsNothingButTheFile) {
  write_safetensors(path_, {}, {});
  EXPECT_EQ(read().substr(8), "{}      ");
  EXPECT_THAT(SafetensorsReader(path_).types(), IsEmpty());
}

TEST_F(SafetensorsTest, AFailedWriteLeavesTheOldFile) {
  write_safetensors(path_, samples(), {});
  const std::string before = read();
  EXPECT_THROW(write_safetensors(path_, {{"x", Tensor()}}, {}), Error);
  EXPECT_THROW(write_safetensors(path_, {{"\xff", Tensor::scalar(1)}}, {}), Error);
  EXPECT_THROW(write_safetensors(path_, {{"__metadata__", Tensor::scalar(1)}}, {}), Error);
  EXPECT_EQ(read(), before);
  // A folder in its place cannot be replaced; the temporary file goes.
  std::filesystem::create_directory(folder_ / "taken");
  EXPECT_THROW(write_safetensors((folder_ / "taken").string(), samples(), {}), Error);
  EXPECT_THROW(write_safetensors((folder_ / "no" / "x").string(), samples(), {}), Error);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) files += entry.exists();
  EXPECT_EQ(files, 2u);
}

TEST_F(SafetensorsTest, ATruncatedFileIsRefusedWhereverItEnds) {
  write_safetensors(path_, samples(), {{"k", "v"}});
  const std::string whole = read();
  for (size_t size = 0; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    EXPECT_THAT(error(), HasSubstr("[load_checkpoint] " + path_)) << size;
  }
  write(whole + "x");
  EXPECT_THAT(error(), HasSubstr("1 bytes after the last tensor"));
}

TEST_F(SafetensorsTest, ADamagedByteIsRefusedOrHarmless) {
  write_safetensors(path_, samples(), {});
  const std::string whole = read();
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ "\1\x10\x80"[at % 3]);
    write(damaged);
    error();  // no crash, no endless allocation
  }
}

TEST_F(SafetensorsTest, LengthsOfTheHeader) {
  write("\xff\xff\xff\xff\xff\xff\xff\xff{}");
  EXPECT_THAT(error(), HasSubstr("a header of 18446744073709551615 bytes"));
  write(std::string("\x03\0\0\0\0\0\0\0{}", 10));
  EXPECT_THAT(error(), HasSubstr("a header of 3 bytes in a file of 10: the file is truncated"));
  write("abc");
  EXPECT_THAT(error(), HasSubstr("3 bytes are too few"));
  path_ = "/nowhere/x.safetensors";
  EXPECT_THAT(error(), HasSubstr("/nowhere/x.safetensors: there is no such file"));
  path_ = folder_.string();
  EXPECT_THAT(error(), HasSubstr("cannot be read"));
}

TEST_F(SafetensorsTest, HeadersThatAreNoHeader) {
  EXPECT_THAT(error_of("", 0), HasSubstr("does not begin with {"));
  EXPECT_THAT(error_of("[]", 0), HasSubstr("does not begin with {"));
  EXPECT_THAT(error_of("{", 0), HasSubstr("the header is no JSON"));
  EXPECT_THAT(error_of("{} x", 0), HasSubstr("the header is no JSON"));
  EXPECT_THAT(error_of("{\"\xff\":1}", 0), AllOf(HasSubstr("no JSON"), HasSubstr("UTF-8")));
  EXPECT_THAT(error_of("{\"a\":" + std::string(100000, '['), 0), HasSubstr("nested too deep"));
  EXPECT_THAT(error_of(R"({"a":1})"), HasSubstr("tensor \"a\": no dtype"));
  EXPECT_THAT(error_of(R"({"__metadata__":1})", 0), HasSubstr("no map of strings"));
  EXPECT_THAT(error_of(R"({"__metadata__":{"k":1}})", 0), HasSubstr("\"k\" is no string"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"),
              HasSubstr("the key \"a\" appears twice"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})"),
              HasSubstr("the key \"shape\" appears twice"));
}

TEST_F(SafetensorsTest, TypesAndShapes) {
  auto with = [this](const std::string& dtype, const std::string& shape) {
    return error_of(
        fmt::format(R"({{"a.b":{{"dtype":{},"shape":{},"data_offsets":[0,8]}}}})", dtype, shape));
  };
  EXPECT_EQ(with("\"F32\"", "[2]"), "no error");
  EXPECT_THAT(with("\"F3\"", "[2]"), HasSubstr("tensor \"a.b\": dtype \"F3\" is not one of F32"));
  EXPECT_THAT(with("\"I16\"", "[4]"), HasSubstr("dtype \"I16\" is not one of"));
  EXPECT_THAT(with("7", "[2]"), HasSubstr("dtype 7 is not one of"));
  EXPECT_THAT(with("\"F32\"", "[-2]"), HasSubstr("shape is [-2], expected a list of whole"));
  EXPECT_THAT(with("\"F32\"", "[2.0]"), HasSubstr("shape is [2.0], expected"));
  EXPECT_THAT(with("\"F32\"", "2"), HasSubstr("shape is 2, expected"));
  EXPECT_THAT(with("\"F32\"", "{\"x\":2}"), HasSubstr("expected a list of whole"));
  EXPECT_THAT(with("\"F32\"", "[99999999999999999999]"), HasSubstr("expected a list of whole"));
  EXPECT_THAT(with("\"F32\"", "[4294967296,4294967296]"), HasSubstr("is too large"));
  EXPECT_THAT(with("\"F32\"", "[0,9223372036854775807,8]"), HasSubstr("is too large"));
  EXPECT_THAT(with("\"F32\"", "[18446744073709551615]"), HasSubstr("is too large"));
  EXPECT_THAT(with("\"F32\"", "[1,1,1,1,1,1,1,1,2]"), HasSubstr("9 axes, the most is 8"));
  EXPECT_THAT(with("\"F32\"", "[3]"), HasSubstr("8 bytes at [0, 8], f32[3] needs 12"));
}

TEST_F(SafetensorsTest, PlacesOfTheBytes) {
  auto two = [this](const std::string& a, const std::string& b, size_t data = 16) {
    const char* form = R"({{"a":{{"dtype":"F32","shape":[2],"data_offsets":{}}},)"
                       R"("b":{{"dtype":"F32","shape":[2],"data_offsets":{}}}}})";
    return error_of(fmt::format(fmt::runtime(form), a, b), data);
  };
  EXPECT_EQ(two("[8,16]", "[0,8]"), "no error");
  EXPECT_THAT(two("[0,8]", "[4,12]"), HasSubstr("tensor \"b\": data_offsets [4, 12] overlap"));
  EXPECT_THAT(two("[0,8]", "[0,8]"), HasSubstr("overlap another"));
  EXPECT_THAT(two("[0,8]", "[12,20]", 20), HasSubstr("[12, 20] leave a hole after byte 8"));
  EXPECT_THAT(two("[0,8]", "[8,16]", 12), HasSubstr("[8, 16] end beyond the 12 bytes of data"));
  EXPECT_THAT(two("[0,8]", "[16,8]"), HasSubstr("data_offsets [16, 8] are no range"));
  EXPECT_THAT(two("[0,8]", "[8]"), HasSubstr("data_offsets [8] are no range"));
  EXPECT_THAT(two("[0,8]", "[-8,0]"), HasSubstr("data_offsets is [-8,0], expected a list"));
  EXPECT_THAT(two("[0,8]", "[18446744073709551608,0]"), HasSubstr("are no range"));
}

TEST_F(SafetensorsTest, ABoolIsZeroOrOne) {
  write_file(R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2);
  EXPECT_EQ(error(), "no error");
  std::string bytes = read();
  bytes.back() = '\5';
  write(bytes);
  EXPECT_THAT(error(), HasSubstr("tensor \"a\": element 1 of a BOOL is 5"));
}

}  // namespace
}  // namespace ballast
