#include "frontend/data/byte_reader.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

namespace ballast::data {

ByteReader ByteReader::open(const std::string& call, const std::string& path) {
  const std::shared_ptr<gzFile_s> file(gzopen(path.c_str(), "rb"), [](gzFile_s* opened) {
    if (opened) gzclose(opened);
  });
  if (!file) fail(BALLAST_NOT_FOUND, "[{}] cannot open {}", call, path);
  return {call, path, [file](void* target, size_t size) -> int64_t {
            const int64_t got = gzread(file.get(), target, static_cast<unsigned>(size));
            int failure = Z_OK;
            gzerror(file.get(), &failure);
            // Z_BUF_ERROR: a packed file was cut short; what came before its end may be used up.
            return failure == Z_OK || (failure == Z_BUF_ERROR && got > 0) ? got : -1;
          }};
}

void ByteReader::refuse(const std::string& why) const {
  fail(BALLAST_INVALID_ARGUMENT, "[{}] {}, offset {}: {}", call_, name_, offset_, why);
}

size_t ByteReader::read_some(void* target, size_t size) {
  constexpr size_t kMost = size_t{1} << 24;
  const int64_t got = read_(target, std::min(size, kMost));
  if (got < 0) refuse("the compressed data are damaged or end early");
  offset_ += static_cast<uint64_t>(got);
  return static_cast<size_t>(got);
}

void ByteReader::read(void* target, size_t size, const std::string& what) {
  auto* bytes = static_cast<char*>(target);
  while (size > 0) {
    const size_t got = read_some(bytes, size);
    if (got == 0) refuse(fmt::format("the file ends {} bytes early, within {}", size, what));
    bytes += got;
    size -= got;
  }
}

std::vector<uint8_t> ByteReader::read_elements(const TensorType& type) {
  constexpr uint64_t kPiece = uint64_t{1} << 24;
  const uint64_t size = type.bytes();
  const std::string what = "the elements of " + to_string(type);
  std::vector<uint8_t> bytes;
  while (bytes.size() < size) {
    const uint64_t piece = std::min(kPiece, size - bytes.size());
    bytes.resize(bytes.size() + piece);
    uint8_t* target = bytes.data() + bytes.size() - piece;
    for (uint64_t done = 0; done < piece;) {
      const size_t got = read_some(target + done, piece - done);
      done += got;
      if (got == 0) {
        refuse(fmt::format("the file ends {} bytes early, within {}",
                           size - bytes.size() + piece - done, what));
      }
    }
  }
  return bytes;
}

void ByteReader::expect_end() {
  char extra;
  if (read_some(&extra, 1) != 0) refuse("bytes after the last element");
}

}  // namespace ballast::data
