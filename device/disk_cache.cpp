#include "device/disk_cache.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>

namespace ballast::device {
namespace {

namespace fs = std::filesystem;

struct Header {
  char magic[8] = {'B', 'A', 'L', 'L', 'A', 'S', 'T', '1'};  // the last one is the format's version
  uint64_t size = 0;
  uint64_t checksum = 0;
};

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

bool DiskCache::is_asked_for() {
  const char* folder = environment("BALLAST_CACHE_DIR");
  return folder != nullptr && std::strcmp(folder, "off") != 0;
}

DiskCache DiskCache::from_environment() {
  if (const char* folder = environment("BALLAST_CACHE_DIR")) {
    return DiskCache(is_asked_for() ? fs::path(folder) : fs::path());
  }
  if (const char* folder = environment("XDG_CACHE_HOME"))
    return DiskCache(fs::path(folder) / "ballast");
  if (const char* home = environment("HOME"))
    return DiskCache(fs::path(home) / ".cache" / "ballast");
  return DiskCache(fs::path());
}

std::optional<std::string> DiskCache::load(const std::string& name) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream file(folder_ / name, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  Header header;
  const bool has_header = all.size() >= sizeof(header);
  if (has_header) std::memcpy(&header, all.data(), sizeof(header));
  if (has_header && std::memcmp(header.magic, Header().magic, sizeof(header.magic)) == 0 &&
      header.size == all.size() - sizeof(header) &&
      header.checksum == XXH3_64bits(all.data() + sizeof(header), header.size)) {
    return all.substr(sizeof(header));
  }
  spdlog::warn("[cache] {} is damaged; it is removed and built anew", (folder_ / name).string());
  remove(name);
  return std::nullopt;
}

void DiskCache::store(const std::string& name, const std::string& bytes) const {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  static std::atomic<uint64_t> counter{0};
  const fs::path temporary = folder_ / fmt::format("{}.{}.{}.tmp", name, getpid(), ++counter);
  Header header;
  header.size = bytes.size();
  header.checksum = XXH3_64bits(bytes.data(), bytes.size());
  {
    std::ofstream file(temporary, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file && !error) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) fs::rename(temporary, folder_ / name, error);
  if (error) {
    spdlog::warn("[cache] cannot write {}: {}", (folder_ / name).string(), error.message());
    fs::remove(temporary, error);
  }
}

void DiskCache::remove(const std::string& name) const {
  std::error_code ignored;  // another process may have been first
  if (!folder_.empty()) fs::remove(folder_ / name, ignored);
}

}  // namespace ballast::device
