// Bytes by name in a folder that several processes share. A file carries a checksum: one that is
// damaged, truncated or of another format counts as absent and is removed. Failing to write is a
// warning, not an error. Thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace ballast::device {

class DiskCache {
 public:
  // BALLAST_CACHE_DIR, else $XDG_CACHE_HOME/ballast, else ~/.cache/ballast; "off", or no home:
  // a cache that holds nothing.
  static DiskCache from_environment();
  static bool is_asked_for();  // whether BALLAST_CACHE_DIR names a folder
  explicit DiskCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  bool is_off() const { return folder_.empty(); }
  std::optional<std::string> load(const std::string& name) const;
  // Written to a temporary name and renamed: readers see all of a file or none.
  void store(const std::string& name, const std::string& bytes) const;
  void remove(const std::string& name) const;

 private:
  std::filesystem::path folder_;  // empty: off
};

}  // namespace ballast::device
