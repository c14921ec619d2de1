// Errors inside the plugin: one exception type, thrown where a fault is seen and turned into a
// ballast_error by plugin_api/guard.h, the only place that catches.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace ballast::device {

// The values are the ABI's (include/ballast/base.h).
enum class Code : int {
  kInvalidArgument = 1,
  kFailedPrecondition = 2,
  kNotFound = 3,
  kUnimplemented = 4,
  kOutOfDeviceMemory = 5,
  kOutOfHostMemory = 6,
  kDeviceLost = 7,
  kAbiMismatch = 8,
  kBuildFailed = 9,
  kCancelled = 10,
  kInternal = 11,
};

class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

// fail(Code::kInvalidArgument, "[add] input 0: {}", ...) throws.
template <class... Args>
[[noreturn]] void fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace ballast::device
