// Reads a text from front to end, token by token. Ends of lines count, other blanks do not. Every
// complaint names line and column. Borrows the text; a copy looks ahead.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ballast {

class TextReader {
 public:
  // `call` begins the messages: "[parse_program] line 1, ...".
  TextReader(const std::string& text, const char* call) : text_(text), call_(call) {}

  size_t position();  // of the next character that is no blank
  [[noreturn]] void complain(const std::string& what, size_t at) const;  // INVALID_ARGUMENT
  [[noreturn]] void complain(const std::string& what) const { complain(what, position_); }

  char peek();  // the next character, NUL at the end
  bool accept(const std::string& token);
  bool accept_word(const std::string& word);  // one that ends there
  void expect(const std::string& token);
  bool at_line_end();
  void end_line();  // and empty lines after it
  void skip_lines();
  bool at_end();

  // Letters, digits and what else is in `others`; `what` says what was expected.
  std::string word(const char* what, const std::string& others);
  std::string quoted();
  int64_t integer();
  double real();
  std::string number();             // either's text
  std::vector<int64_t> integers();  // [1, 2]

 private:
  unsigned char byte() const { return static_cast<unsigned char>(text_[position_]); }

  const std::string& text_;
  const char* call_;
  size_t position_ = 0;
};

}  // namespace ballast
