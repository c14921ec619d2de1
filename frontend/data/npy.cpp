#include "frontend/data/npy.h"

#include "frontend/data/byte_reader.h"

#include <zip.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>

namespace ballast::data {

namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicSize = 6;

struct Description {
  const char* npy;
  DType dtype;
};
constexpr Description kDescriptions[] = {
    {"<f4", DType::kF32}, {"<f8", DType::kF64},  {"<i4", DType::kI32}, {"<i8", DType::kI64},
    {"|u1", DType::kU8},  {"|b1", DType::kBool}, {"<f2", DType::kF16},
};

class Reader {
 public:
  explicit Reader(ByteReader bytes) : bytes_(std::move(bytes)) {}

  Tensor read() {
    TensorType type = read_header();
    std::vector<uint8_t> elements = bytes_.read_elements(type);
    bytes_.expect_end();
    return Tensor::on_host_bytes(std::move(elements), std::move(type));
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { bytes_.refuse(why); }
  void read_bytes(void* target, size_t size, const std::string& what) {
    bytes_.read(target, size, what);
  }

  TensorType read_header() {
    uint8_t start[kMagicSize + 2];
    read_bytes(start, sizeof(start), "the magic number");
    if (std::memcmp(start, kMagic, kMagicSize) != 0) {
      bytes_.rewind_offset();
      refuse("the file does not begin with numpy's magic number");
    }
    uint8_t version = start[kMagicSize];
    if (version < 1 || version > 3) refuse(fmt::format("format version {} is unknown", version));
    uint8_t length[4] = {};
    read_bytes(length, version == 1 ? 2 : 4, "the header's length");
    size_t size = length[0] | length[1] << 8 | length[2] << 16 | size_t{length[3]} << 24;
    constexpr size_t kLargestHeader = 1 << 20;  // a damaged length must not allocate gigabytes
    if (size > kLargestHeader) refuse(fmt::format("the header claims {} bytes", size));
    std::string header(size, '\0');
    read_bytes(header.data(), size, "the header");
    return parse(header);
  }

  // What follows "'key':" in the header's Python dictionary.
  size_t value_of(const std::string& header, const std::string& key) const {
    size_t at = header.find("'" + key + "'");
    size_t colon = at == std::string::npos ? at : header.find(':', at);
    size_t value = colon == std::string::npos ? colon : header.find_first_not_of(' ', colon + 1);
    if (value == std::string::npos) refuse("the header has no " + key);
    return value;
  }

  TensorType parse(const std::string& header) const {
    size_t order = value_of(header, "fortran_order");
    if (header.compare(order, 5, "False") != 0) refuse("the array is not in C order");
    return {parse_dtype(header), parse_shape(header)};
  }

  DType parse_dtype(const std::string& header) const {
    std::string text = header.substr(value_of(header, "descr"), 5);
    for (const Description& row : kDescriptions) {
      if (text == fmt::format("'{}'", row.npy)) return row.dtype;
    }
    refuse(fmt::format("element type {} is not supported", text));
  }

  Shape parse_shape(const std::string& header) const {
    size_t begin = value_of(header, "shape");
    size_t end = header.find(')', begin);
    if (header[begin] != '(' || end == std::string::npos) refuse("the shape is no tuple");
    Shape shape;
    uint64_t elements = 1;
    for (size_t at = begin + 1; at < end;) {
      if (header[at] == ' ' || header[at] == ',') {
        ++at;
        continue;
      }
      constexpr uint64_t kLargest = uint64_t{1} << 40;
      uint64_t extent = 0;
      size_t first = at;
      while (header[at] >= '0' && header[at] <= '9' && extent < kLargest) {
        extent = extent * 10 + static_cast<uint64_t>(header[at++] - '0');
      }
      elements *= std::max<uint64_t>(1, extent);
      if (at == first || elements >= kLargest) refuse("the shape is malformed");
      shape.push_back(static_cast<int64_t>(extent));
    }
    if (shape.size() > BALLAST_MAX_RANK) refuse("the array has too many axes");
    return shape;
  }

  ByteReader bytes_;
};

}  // namespace

Tensor load_npy(const std::string& path) {
  return Reader(ByteReader::open("load_npy", path)).read();
}

std::map<std::string, Tensor> load_npz(const std::string& path) {
  int failure = 0;
  const std::unique_ptr<zip_t, void (*)(zip_t*)> archive(
      zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &failure), zip_discard);
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, failure);
    const std::string why = zip_error_strerror(&error);
    zip_error_fini(&error);
    fail(failure == ZIP_ER_NOENT ? BALLAST_NOT_FOUND : BALLAST_INVALID_ARGUMENT,
         "[load_npz] {}: {}", path, why);
  }
  std::map<std::string, Tensor> arrays;
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_uint64_t number = 0; number < static_cast<zip_uint64_t>(count); ++number) {
    std::string name = zip_get_name(archive.get(), number, 0);
    const std::shared_ptr<zip_file_t> entry(zip_fopen_index(archive.get(), number, 0),
                                            [](zip_file_t* opened) {
                                              if (opened) zip_fclose(opened);
                                            });
    ByteReader bytes("load_npz", path + ":" + name, [entry](void* target, size_t size) -> int64_t {
      return zip_fread(entry.get(), target, size);
    });
    if (!entry) bytes.refuse(zip_strerror(archive.get()));
    const std::string suffix = ".npy";
    if (name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix) {
      name.resize(name.size() - suffix.size());
    }
    if (!arrays.emplace(name, Reader(std::move(bytes)).read()).second) {
      fail(BALLAST_INVALID_ARGUMENT, "[load_npz] {}: the name {} appears twice", path, name);
    }
  }
  return arrays;
}

void save_npy(const std::string& path, const Tensor& tensor) {
  const char* description = nullptr;
  for (const Description& row : kDescriptions) {
    if (row.dtype == tensor.dtype()) description = row.npy;
  }
  if (!description) {
    fail(BALLAST_UNIMPLEMENTED, "[save_npy] {} cannot be saved", to_string(tensor.type()));
  }
  std::string shape;
  for (int64_t extent : tensor.shape()) shape += std::to_string(extent) + ",";
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", description, shape);
  // The elements begin at a multiple of 64.
  size_t start = kMagicSize + 4;
  header.append(63 - (start + header.size()) % 64, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file.write(kMagic, kMagicSize);
  const char rest[] = {1, 0, static_cast<char>(header.size() & 0xff),
                       static_cast<char>(header.size() >> 8)};
  file.write(rest, sizeof(rest));
  file << header;
  std::vector<uint8_t> bytes = tensor.to_host_bytes();
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) fail(BALLAST_INVALID_ARGUMENT, "[save_npy] cannot write {}", path);
}

}  // namespace ballast::data
