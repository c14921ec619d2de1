// IDX, .npz and CSV files, packed and not: what is in order is read, what is not is refused with
// the file's name and the place.
#include "frontend/data/csv.h"
#include "frontend/data/idx.h"
#include "frontend/data/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <utility>

namespace ballast::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* name = testing::UnitTest::GetInstance()->current_test_info()->name();
    path_ = (std::filesystem::temp_directory_path() /
             fmt::format("ballast_reader_{}_{}", name, getpid()))
                .string();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void write(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  void write_packed(const std::string& bytes) {
    gzFile file = gzopen(path_.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
  }
  std::string read() {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  template <class Load>
  std::string error_of(Load&& load) {
    try {
      load(path_);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  std::string idx_error() { return error_of(load_idx); }
  std::string npz_error() { return error_of(load_npz); }
  std::string csv_error(const std::string& text, const CsvOptions& options = {}) {
    write(text);
    return error_of([&](const std::string& path) { load_csv(path, options); });
  }

  std::string path_;
};

const std::string kIdx("\0\0\x0c\2\0\0\0\2\0\0\0\1\0\0\1\2\xff\xff\xff\xff", 20);

TEST_F(ReaderTest, IdxPlainAndPacked) {
  for (const bool is_packed : {false, true}) {
    is_packed ? write_packed(kIdx) : write(kIdx);
    const Tensor read = load_idx(path_);
    EXPECT_EQ(read.shape(), (Shape{2, 1}));
    EXPECT_EQ(read.to_host<int32_t>(), (std::vector<int32_t>{258, -1}));
  }
  write(std::string("\0\0\x08\1\0\0\0\3\1\2\3", 11));
  EXPECT_EQ(load_idx(path_).to_host<uint8_t>(), (std::vector<uint8_t>{1, 2, 3}));
}

TEST_F(ReaderTest, ATruncatedIdxNamesFileAndOffset) {
  for (size_t size = 0; size < kIdx.size(); ++size) {
    write(kIdx.substr(0, size));
    EXPECT_THAT(idx_error(), AllOf(HasSubstr("[load_idx] " + path_),
                                   HasSubstr(fmt::format("offset {}", size)), HasSubstr("ends")));
  }
  write_packed(kIdx);
  const std::string packed = read();
  for (size_t size = 3; size < packed.size(); ++size) {
    write(packed.substr(0, size));
    EXPECT_NE(idx_error(), "no error") << size;
  }
}

TEST_F(ReaderTest, AMalformedIdxSaysWhatIsWrong) {
  auto with = [this](size_t at, char byte) {
    std::string changed = kIdx;
    changed[at] = byte;
    write(changed);
    return idx_error();
  };
  EXPECT_THAT(with(0, 1), HasSubstr("does not begin with two zeros"));
  EXPECT_THAT(with(2, 9), HasSubstr("element type 0x09 is not supported"));
  EXPECT_THAT(with(3, 99), HasSubstr("99 axes are too many"));
  EXPECT_THAT(with(4, '\xff'), HasSubstr("ends"));
  EXPECT_THAT(with(7, 1), HasSubstr("bytes after the last element"));
  write(std::string("\0\0\x08\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16));
  EXPECT_THAT(idx_error(), HasSubstr("too large"));
  std::filesystem::remove(std::exchange(path_, "/nowhere/x.idx"));
  EXPECT_THAT(idx_error(), HasSubstr("[load_idx] cannot open /nowhere/x.idx"));
}

class NpzTest : public ReaderTest {
 protected:
  // An archive of these entries.
  void pack(const std::map<std::string, std::string>& entries, int method) {
    std::filesystem::remove(path_);
    zip_t* archive = zip_open(path_.c_str(), ZIP_CREATE, nullptr);
    for (const auto& [name, bytes] : entries) {
      zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
      const zip_int64_t number = zip_file_add(archive, name.c_str(), source, 0);
      zip_set_file_compression(archive, static_cast<zip_uint64_t>(number), method, 0);
    }
    zip_close(archive);
  }
  std::string npy(const Tensor& tensor) {
    const std::string kept = path_;
    path_ += ".npy";
    save_npy(path_, tensor);
    std::string bytes = read();
    std::filesystem::remove(path_);
    path_ = kept;
    return bytes;
  }
};

TEST_F(NpzTest, StoredAndDeflated) {
  const Tensor x = Tensor::on_host(std::vector<float>(1000, 2.5f), {10, 100});
  const std::map<std::string, std::string> entries = {
      {"x.npy", npy(x)}, {"y.npy", npy(Tensor::on_host<int32_t>({7}, {1}))}};
  for (const int method : {ZIP_CM_STORE, ZIP_CM_DEFLATE}) {
    pack(entries, method);
    const auto arrays = load_npz(path_);
    ASSERT_EQ(arrays.size(), 2u);
    EXPECT_EQ(arrays.at("x").to_host<float>(), x.to_host<float>());
    EXPECT_EQ(arrays.at("y").to_host<int32_t>(), (std::vector<int32_t>{7}));
  }
}

TEST_F(NpzTest, DamageIsRefused) {
  const std::string good = npy(Tensor::on_host(std::vector<float>(50, 1.25f), {50}));
  pack({{"a.npy", good.substr(0, good.size() - 4)}}, ZIP_CM_DEFLATE);
  EXPECT_THAT(npz_error(), AllOf(HasSubstr("[load_npz] " + path_ + ":a.npy"), HasSubstr("ends")));
  pack({{"a.txt", "hello"}}, ZIP_CM_STORE);
  EXPECT_THAT(npz_error(), HasSubstr(":a.txt"));
  pack({{"a.npy", good}}, ZIP_CM_STORE);
  std::string whole = read();
  const size_t element = whole.find(std::string("\0\0\xa0\x3f", 4));
  ASSERT_NE(element, std::string::npos);
  for (size_t size = 0; size < whole.size(); size += 7) {
    write(whole.substr(0, size));
    EXPECT_NE(npz_error(), "no error") << size;
  }
  whole[element] = 1;  // the checksum does not fit
  write(whole);
  EXPECT_THAT(npz_error(), HasSubstr("damaged"));
  std::filesystem::remove(std::exchange(path_, "/nowhere/x.npz"));
  EXPECT_THAT(npz_error(), HasSubstr("/nowhere/x.npz: No such file"));
}

TEST_F(ReaderTest, CsvOfFloatsAndIntegers) {
  write("1,2.5,-3e2\n+4,\"5\", 6 \r\n");
  CsvTable table = load_csv(path_);
  EXPECT_EQ(table.values.shape(), (Shape{2, 3}));
  EXPECT_EQ(table.values.to_host<float>(), (std::vector<float>{1, 2.5f, -300, 4, 5, 6}));
  CsvOptions options;
  options.has_header = true;
  options.delimiter = ';';
  options.dtype = DType::kI64;
  write_packed("a;\"b;c\"\n1;-9007199254740993\n");
  table = load_csv(path_, options);
  EXPECT_THAT(table.names, ElementsAre("a", "b;c"));
  EXPECT_EQ(table.values.to_host<int64_t>(), (std::vector<int64_t>{1, -9007199254740993}));
}

TEST_F(ReaderTest, AMalformedCsvNamesLineAndColumn) {
  EXPECT_THAT(csv_error("1,2\n3,x\n"),
              HasSubstr(path_ + ", line 2: column 2 is \"x\", expected a number of f32"));
  EXPECT_THAT(csv_error("1,2\n3\n"), HasSubstr("line 2: 1 fields, the first row has 2"));
  EXPECT_THAT(csv_error("1,\n"), HasSubstr("line 1: column 2 is \"\""));
  EXPECT_THAT(csv_error("1,\"2\n"), HasSubstr("line 1: "));
  EXPECT_THAT(csv_error("1,2\"3\n"), HasSubstr("line 1: "));
  EXPECT_THAT(csv_error("1e99\n"), HasSubstr("\"1e99\", expected a number of f32"));
  CsvOptions options;
  options.dtype = DType::kI32;
  EXPECT_THAT(csv_error("1.5\n", options), HasSubstr("expected a number of i32"));
  options.dtype = DType::kBF16;
  EXPECT_THAT(csv_error("1\n", options), HasSubstr("bf16 cannot be read"));
  write_packed("1,2\n");
  const std::string packed = read();
  write(packed.substr(0, packed.size() - 9));
  EXPECT_THAT(error_of([](const std::string& path) { load_csv(path); }), HasSubstr("end early"));
}

}  // namespace
}  // namespace ballast::data
