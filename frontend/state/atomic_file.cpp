#include "frontend/state/atomic_file.h"

#include "frontend/error.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace ballast {

AtomicFile::AtomicFile(std::string path, std::string call)
    : path_(std::move(path)), call_(std::move(call)) {
  static std::atomic<unsigned> count{0};
  temporary_ = fmt::format("{}.{}-{}.tmp", path_, getpid(), count++);
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) refuse("cannot be created");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::refuse(const char* what) const {
  const std::string why = std::generic_category().message(errno);
  fail(BALLAST_INVALID_ARGUMENT, "[{}] {} {}: {}", call_, path_, what, why);
}

void AtomicFile::write(const void* data, size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, bytes, size);
    if (written < 0) {
      if (errno == EINTR) continue;
      refuse("cannot be written");
    }
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

void AtomicFile::commit() {
  if (fsync(descriptor_) != 0) refuse("cannot be written");
  const int closed = close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) refuse("cannot be written");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) refuse("cannot be replaced");
  temporary_.clear();
  // The rename itself lasts only once the folder is on the disk.
  std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (folder.empty()) folder = ".";
  const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) refuse("lies in a folder that cannot be opened");
  const int synced = fsync(directory);
  close(directory);
  // Some file systems have no fsync of folders.
  if (synced != 0 && errno != EINVAL) refuse("lies in a folder that cannot be synced");
}

}  // namespace ballast
