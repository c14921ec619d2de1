// The frontend's one exception. Codes are the ABI's (BALLAST_INVALID_ARGUMENT, ...).
#pragma once

#include "frontend/types.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace ballast {

class Error : public std::runtime_error {
 public:
  Error(int32_t code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int32_t code() const { return code_; }

 private:
  int32_t code_;
};

// Throws; messages start with the op or call in brackets: "[reshape] ...".
template <class... Args>
[[noreturn]] void fail(int32_t code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace ballast
