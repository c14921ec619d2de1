// ByteReader: bytes of a file in order, for parsers that believe nothing. Whatever is missing or
// wrong is an Error that names the call, the file and the offset. Files that gzip has packed are
// unpacked on the way.
#pragma once

#include "frontend/tensor/tensor.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ballast::data {

class ByteReader {
 public:
  // Reads up to so many bytes; 0 at the end, negative for damage.
  using Read = std::function<int64_t(void* target, size_t size)>;

  ByteReader(std::string call, std::string name, Read read)
      : call_(std::move(call)), name_(std::move(name)), read_(std::move(read)) {}
  // NOT_FOUND where the file cannot be opened.
  static ByteReader open(const std::string& call, const std::string& path);

  void read(void* target, size_t size, const std::string& what);
  // The elements of a tensor. Memory grows with what is really there.
  std::vector<uint8_t> read_elements(const TensorType& type);
  void expect_end();

  [[noreturn]] void refuse(const std::string& why) const;
  void rewind_offset() { offset_ = 0; }  // for messages about the file's beginning

 private:
  size_t read_some(void* target, size_t size);

  std::string call_, name_;
  Read read_;
  uint64_t offset_ = 0;
};

}  // namespace ballast::data
