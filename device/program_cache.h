// Built programs: in memory per device, and on disk under BALLAST_CACHE_DIR (default
// $XDG_CACHE_HOME/ballast or ~/.cache/ballast; "off" disables the disk). PoCL has a cache of its
// own (POCL_CACHE_DIR): of its programs none are kept here, unless BALLAST_CACHE_DIR asks for it or
// POCL_KERNEL_CACHE=0 switches that off.
//
// A file's name is a hash of source, options, device, driver version and our format version. Files
// are written to a temporary name and renamed, so several processes can share the folder. A file
// that is truncated or damaged (it carries a checksum) is a miss: it is removed and rebuilt.
#pragma once

#include "device/cl.h"
#include "device/launch.h"

#include <memory>
#include <string>

namespace ballast::device {

class Device;

class ProgramCache {
 public:
  explicit ProgramCache(Device& device);
  ~ProgramCache();
  // Thread-safe; the program lives as long as the cache. Two threads that ask for one source build
  // it once. Throws kBuildFailed with the compiler's log and the kernel's name.
  cl_program get(const SourcePtr& source);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ballast::device
