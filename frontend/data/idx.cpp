#include "frontend/data/idx.h"

#include "frontend/data/byte_reader.h"

#include <algorithm>

namespace ballast::data {

namespace {

DType dtype_of_code(const ByteReader& reader, uint8_t code) {
  switch (code) {
    case 0x08:
      return DType::kU8;
    case 0x0c:
      return DType::kI32;
    case 0x0d:
      return DType::kF32;
    case 0x0e:
      return DType::kF64;
    default:
      reader.refuse(fmt::format("element type {:#04x} is not supported", code));
  }
}

}  // namespace

Tensor load_idx(const std::string& path) {
  ByteReader reader = ByteReader::open("load_idx", path);
  uint8_t magic[4];
  reader.read(magic, sizeof(magic), "the magic number");
  if (magic[0] != 0 || magic[1] != 0) {
    reader.rewind_offset();
    reader.refuse("the file does not begin with two zeros");
  }
  TensorType type{dtype_of_code(reader, magic[2]), {}};
  if (magic[3] > BALLAST_MAX_RANK) reader.refuse(fmt::format("{} axes are too many", magic[3]));
  uint64_t elements = 1;
  for (uint8_t axis = 0; axis < magic[3]; ++axis) {
    uint8_t bytes[4];
    reader.read(bytes, sizeof(bytes), "the extents");
    const uint32_t extent = uint32_t{bytes[0]} << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
    constexpr uint64_t kLargest = uint64_t{1} << 40;
    elements *= std::max<uint64_t>(1, extent);
    if (elements > kLargest) reader.refuse("the extents are too large");
    type.shape.push_back(extent);
  }
  std::vector<uint8_t> bytes = reader.read_elements(type);
  reader.expect_end();
  const auto size = static_cast<std::ptrdiff_t>(size_of(type.dtype));
  for (auto at = bytes.begin(); size > 1 && at != bytes.end(); at += size) {
    std::reverse(at, at + size);
  }
  return Tensor::on_host_bytes(std::move(bytes), std::move(type));
}

}  // namespace ballast::data
