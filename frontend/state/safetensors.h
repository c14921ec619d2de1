// Files in the safetensors format (version 0.8 of its specification): a header in JSON with the
// name, element type, shape and place of every tensor, then their bytes. Written so that any
// reader of the format takes them; read with nothing believed: the whole header is checked against
// the file before a tensor is made of it. Errors name the file and the tensor.
#pragma once

#include "frontend/tensor/tensor.h"

#include <cstdint>
#include <fstream>
#include <map>
#include <string>

namespace ballast {

using TensorMap = std::map<std::string, Tensor>;
using Metadata = std::map<std::string, std::string>;

// Atomic: the file is the old one until it is the whole new one.
void write_safetensors(const std::string& path, const TensorMap& tensors, const Metadata& metadata);

class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::string& path);

  const std::map<std::string, TensorType>& types() const { return types_; }
  const Metadata& metadata() const { return metadata_; }
  // One of types(), in host memory.
  Tensor read(const std::string& name);

 private:
  struct Header;
  [[noreturn]] void refuse(const std::string& why) const;

  std::string path_;
  std::ifstream file_;
  std::map<std::string, TensorType> types_;
  std::map<std::string, uint64_t> positions_;  // in the file
  Metadata metadata_;
};

}  // namespace ballast
