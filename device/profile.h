// Times of every kernel by label, from the events of a profiling queue.
#pragma once

#include "device/cl.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ballast::device {

struct ProfileRow {
  std::string kernel;
  uint64_t count = 0, total_ns = 0, min_ns = 0;
};

class Profile {
 public:
  Profile();
  ~Profile();
  void add(const std::string& label, EventHandle event);  // thread-safe; read when done
  // All finished kernels, most expensive first; clears the table. Call after a sync.
  std::vector<ProfileRow> drain();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ballast::device
