#include "frontend/state/atomic_file.h"

#include "frontend/tensor/error.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace ballast {

AtomicFile::AtomicFile(std::string path, std::string call)
    : path_(std::move(path)), call_(std::move(call)) {
  while (!create()) close(descriptor_);
}

bool AtomicFile::create() {
  static std::atomic<unsigned> count{0};
  temporary_ = fmt::format("{}.{}-{}.tmp", path_, getpid(), count++);
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) refuse("cannot be created");
  // Before it is locked another process may take it for a leftover. Where there are no locks no one
  // takes anything.
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat status {};
  return fstat(descriptor_, &status) == 0 && status.st_nlink > 0;
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
  if (rename(temporary_.c_str(), path_.c_str()) != 0) refuse("cannot be replaced");
  temporary_.clear();
  close(descriptor_);  // only now: with it goes the lock
  descriptor_ = -1;
  // The rename itself lasts only once the folder is on the disk.
  std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (folder.empty()) folder = ".";
  const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) refuse("lies in a folder that cannot be opened");
  const int synced = fsync(directory);
  close(directory);
  // Some file systems have no fsync of folders.
  if (synced != 0 && errno != EINVAL) refuse("lies in a folder that cannot be synced");
  remove_leftovers();
}

namespace {

// Whether `text` is ".<number>-<number>.tmp", what create() puts after the name.
bool is_temporary_suffix(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  const size_t first = std::min(text.find_first_not_of(kDigits, 1), text.size());
  const size_t second = std::min(text.find_first_not_of(kDigits, first + 1), text.size());
  return text.substr(0, 1) == "." && first > 1 && text.substr(first, 1) == "-" &&
         second > first + 1 && text.substr(second) == ".tmp";
}

}  // namespace

// The file itself is whole, so nothing that fails here is an error.
void AtomicFile::remove_leftovers() const {
  const std::filesystem::path path(path_);
  const std::string name = path.filename().string();
  std::error_code error;
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string other = entry.path().filename().string();
    const bool is_ours = other.compare(0, name.size(), name) == 0 &&
                         is_temporary_suffix(std::string_view(other).substr(name.size()));
    if (!is_ours) continue;
    const int descriptor = open(entry.path().c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) continue;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) unlink(entry.path().c_str());
    close(descriptor);
  }
}

}  // namespace ballast
