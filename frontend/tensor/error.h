// The frontend's one exception. Codes are the ABI's (BALLAST_INVALID_ARGUMENT, ...). A message
// starts with the op or call in brackets, names the user's line where one is known, and ends with a
// hint how to mend it where frontend/tensor/hints.cpp has one:
//   [matmul] inner extents differ: ... (at train.cpp:12)
//     hint: ...
#pragma once

#include "frontend/tensor/types.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace ballast {

class Error : public std::runtime_error {
 public:
  Error(int32_t code, const std::string& message);
  int32_t code() const { return code_; }

 private:
  int32_t code_;
};

// The error with the user's line, unless it names one already.
Error located(const Error& error, const Where& where);

// What `body` returns; its errors are located at the line.
template <class Body>
auto at_line(const Where& where, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw located(error, where);
  }
}

// Throws. A hint of its own comes last in `format`, after "\n  hint: ".
template <class... Args>
[[noreturn]] void fail(int32_t code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace ballast
