#include "device/build_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace ballast::device {

BuildLock::BuildLock(uint64_t key) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) folder = "/tmp";  // TMPDIR names no folder
  const std::string path = (folder / fmt::format("ballast-{}.lock", getuid())).string();
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  // A byte of the file stands for a key. The lock belongs to this open file, so threads exclude
  // each other too.
  struct flock byte = {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = static_cast<off_t>(key >> 34);
  byte.l_len = 1;
  int status = file_ < 0 ? -1 : 0;
  while (status == 0 && fcntl(file_, F_OFD_SETLKW, &byte) != 0) {
    if (errno != EINTR) status = -1;
  }
  if (status != 0) spdlog::debug("[build] cannot lock {}: {}", path, std::strerror(errno));
}

BuildLock::~BuildLock() {
  if (file_ >= 0) close(file_);
}

}  // namespace ballast::device
