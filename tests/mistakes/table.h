// The table of mistakes: rows with code that makes one, and the exact message it gives. A row is
//   MISTAKE(CODE, "title", "message", code...)
// CODE is the ABI's without BALLAST_. In the message {line} stands for the row's own file and line,
// where the whole of `code` lies; other words in braces are mistakes_test.cpp's. The same text,
// code and all, makes docs/mistakes.md.
#pragma once

#include "frontend/ballast_frontend.h"

#include <string>
#include <vector>

namespace ballast::tests {

struct Mistake {
  std::string file;  // "shapes.cpp"
  int line;
  int32_t code;
  std::string title, message, source;
  void (*make)();
};

std::ostream& operator<<(std::ostream& out, const Mistake& row);

// All rows, in no order.
std::vector<Mistake>& mistakes();

// Adds a row where it is defined.
struct MistakeRow {
  MistakeRow(const char* file, int line, int32_t code, const char* title, const char* message,
             const char* source, void (*make)());
};

#define BALLAST_JOIN_(a, b) a##b
#define BALLAST_JOIN(a, b) BALLAST_JOIN_(a, b)
#define MISTAKE(error_code, title, message, ...)                   \
  const ::ballast::tests::MistakeRow BALLAST_JOIN(row_, __LINE__)( \
      __FILE__, __LINE__, BALLAST_##error_code, title, message, #__VA_ARGS__, [] { __VA_ARGS__ })

}  // namespace ballast::tests
