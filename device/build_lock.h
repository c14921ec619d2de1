// Keeps processes of one user from building the same program at the same time: PoCL's own cache of
// half-built programs is not safe against that, and crashes. Held from construction to destruction;
// a process that dies lets go. Without a writable temporary folder nothing is locked. Any thread.
#pragma once

#include <cstdint>

namespace ballast::device {

class BuildLock {
 public:
  explicit BuildLock(uint64_t key);  // waits for whoever holds the same key
  ~BuildLock();
  BuildLock(const BuildLock&) = delete;
  BuildLock& operator=(const BuildLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace ballast::device
